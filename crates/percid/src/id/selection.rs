//! The selection of the ID source, made once per process.

use std::fmt;

use super::probe;
use super::source::{Source, UnknownSource};
use super::source_error::SourceError;
use super::try_once::TryOnce;
use crate::sys::atomic::AtomicU64;
use crate::sys::cell::UnsafeCell;
use crate::sys::{environment, holder, stderr};

/// The ID source of the process, and the reason for it.
///
/// ```
/// let selection = percid::init();
/// println!("{selection}"); // such as "table, because the kernel can fence ..."
/// println!("{}, because {}", selection.source, selection.reason);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SourceSelection {
    /// The source.
    pub source: Source,
    /// The reason for this source.
    pub reason: SelectionReason,
}

impl fmt::Display for SourceSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, because {}", self.source, self.reason)
    }
}

/// The reason for a source.
///
/// ```
/// use percid::id::SelectionReason;
///
/// if let SelectionReason::TableUnavailable(why) = percid::init().reason {
///     eprintln!("every update is one atomic instruction here: {why}");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SelectionReason {
    /// `PERCID_SOURCE` requested it.
    Requested,
    /// The table works here: the default.
    TableAvailable,
    /// The table does not work here.
    TableUnavailable(SourceError),
    /// Another thread, or the code that this signal handler interrupted, is currently choosing.
    Selecting,
    /// It is not known yet whether the kernel aborts critical sections; a later use tries again.
    ProbeInconclusive,
}

impl fmt::Display for SelectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectionReason::Requested => f.write_str("PERCID_SOURCE asks for it"),
            SelectionReason::TableAvailable => f.write_str(
                "the kernel can fence critical sections and, as far as is known, aborts them",
            ),
            SelectionReason::TableUnavailable(why) => {
                write!(f, "percid's table cannot be used: {why}")
            }
            SelectionReason::Selecting => f.write_str("the source is being chosen at this moment"),
            SelectionReason::ProbeInconclusive => SourceError::SectionsNotProbed.fmt(f),
        }
    }
}

/// The selection of this process.
static CHOICE: TryOnce<SourceSelection> =
    TryOnce { state: AtomicU64::new(0), value: UnsafeCell::new(None) };

/// Returns the selection, which is made now unless it was made before; `None` while another thread
/// makes it, or if it cannot be made yet.
pub(crate) fn get() -> Option<SourceSelection> {
    get_from(&CHOICE, probe::is_resting, decide)
}

fn get_from(
    place: &TryOnce<SourceSelection>,
    is_resting: impl FnOnce() -> bool,
    decide: impl FnOnce() -> Option<SourceSelection>,
) -> Option<SourceSelection> {
    // Until the kernel is probed again, every operation of every thread calls this.
    match place.get() {
        None if is_resting() => None,
        None => place.get_or_decide(holder::me, holder::exists, decide),
        choice => choice,
    }
}

/// Returns the selection that applies until one is made.
pub(crate) fn pending() -> SourceSelection {
    let reason = if probe::is_unanswered() {
        SelectionReason::ProbeInconclusive
    } else {
        SelectionReason::Selecting
    };
    SourceSelection { source: Source::Atomic, reason }
}

/// Makes the selection. Returns `None` if it is not known yet whether critical sections can be
/// trusted, which every source but one needs.
fn decide() -> Option<SourceSelection> {
    let automatic = || automatic(Source::Table.prepare());
    match requested() {
        Some(source) => on_request(source, source.prepare(), automatic),
        None => automatic(),
    }
}

/// Returns the requested source, if it could be prepared.
fn on_request(
    source: Source,
    prepared: Result<(), SourceError>,
    automatic: impl FnOnce() -> Option<SourceSelection>,
) -> Option<SourceSelection> {
    match prepared {
        Ok(()) => Some(SourceSelection { source, reason: SelectionReason::Requested }),
        Err(SourceError::SectionsNotProbed) => None,
        Err(why) => {
            stderr::say(format_args!("PERCID_SOURCE={source} is not possible: {why}"));
            automatic()
        }
    }
}

/// Chooses percid's table if it works, otherwise the atomic source; `None` if that is not known
/// yet.
///
/// The kernel's IDs are never chosen. Those of Linux 6.4 to 6.18 can be assigned twice
/// (docs/explanation/kernel-id-bug.md); those before 6.13 and from 6.19 on are cold or exceed their bound.
fn automatic(table: Result<(), SourceError>) -> Option<SourceSelection> {
    match table {
        Ok(()) => {
            Some(SourceSelection { source: Source::Table, reason: SelectionReason::TableAvailable })
        }
        Err(SourceError::SectionsNotProbed) => None,
        Err(why) => {
            // This cannot fail.
            let _ = Source::Atomic.prepare();
            Some(SourceSelection {
                source: Source::Atomic,
                reason: SelectionReason::TableUnavailable(why),
            })
        }
    }
}

/// Returns the source that `PERCID_SOURCE` requests; prints a message if there is no such source.
fn requested() -> Option<Source> {
    let value = environment::source()?;
    let source = value.to_str().unwrap_or_default().parse::<Source>();
    if let Err(UnknownSource) = source {
        stderr::say(format_args!("PERCID_SOURCE={value:?} ignored: {UnknownSource}"));
    }
    source.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::atomic::Ordering::Relaxed;

    const ATOMIC: SourceSelection =
        SourceSelection { source: Source::Atomic, reason: SelectionReason::Requested };

    #[test]
    fn the_table_where_it_works() {
        let automatic = |table| automatic(table).map(|choice| choice.source);
        assert_eq!(automatic(Ok(())), Some(Source::Table));
        assert_eq!(automatic(Err(SourceError::SectionsNotAborted)), Some(Source::Atomic));
        assert_eq!(automatic(Err(SourceError::SectionsNotProbed)), None, "not known yet");
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_wish_where_it_is_possible() {
        let wish = |prepared, automatic| on_request(Source::Atomic, prepared, || automatic);
        assert_eq!(wish(Ok(()), None), Some(ATOMIC));
        assert_eq!(wish(Err(SourceError::SectionsNotProbed), Some(ATOMIC)), None, "not known yet");
        assert_eq!(wish(Err(SourceError::NoMemory), Some(ATOMIC)), Some(ATOMIC));
    }

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(any(miri, percid_elsewhere))))]
    fn what_is_requested_is_used_or_a_message_says_why_not() {
        let said_for = |value: &std::ffi::CStr, body: fn()| {
            stderr::said_by(|| {
                // SAFETY: this is a child with one thread.
                unsafe { libc::setenv(c"PERCID_SOURCE".as_ptr(), value.as_ptr(), 1) };
                body();
            })
        };
        let report = || stderr::say(format_args!("{:?}", decide()));
        let text = said_for(c"atomic", report);
        assert!(text.contains("source: Atomic, reason: Requested"), "{text}");
        let text = said_for(c"", report);
        assert!(text.lines().count() == 1 && !text.contains("Requested"), "{text}");
        let text = said_for(c"none", report);
        assert!(text.starts_with("percid: PERCID_SOURCE=\"none\" ignored: no such"), "{text}");
        assert!(text.lines().count() == 2 && !text.contains("Requested"), "{text}");
        let text = said_for(c"", || {
            on_request(Source::Kernel, Err(SourceError::NoMemory), || None);
        });
        let expected = "percid: PERCID_SOURCE=kernel is not possible: no address space";
        assert!(text.starts_with(expected), "{text}");
    }

    fn place(state: u64) -> TryOnce<SourceSelection> {
        TryOnce { state: AtomicU64::new(state), value: UnsafeCell::new(None) }
    }

    #[test]
    fn one_thread_decides_and_one_that_is_gone_is_replaced() {
        let not_asked = |_: u64| -> bool { unreachable!("this thread exists") };
        let nothing = || -> Option<SourceSelection> { unreachable!("it is not this thread's") };
        let busy = place(8);
        let other_exists = |exists| move |other| other == 8 && exists;
        assert_eq!(busy.get_or_decide(|| 7, other_exists(true), nothing), None);
        assert_eq!(busy.get_or_decide(|| 8, not_asked, nothing), None, "interrupted by a handler");
        assert_eq!(busy.get_or_decide(|| 7, other_exists(false), || None), None, "not known yet");
        assert_eq!(busy.state.load(Relaxed), 0);
        let decided = || {
            assert_eq!(busy.state.load(Relaxed), 7);
            Some(ATOMIC)
        };
        assert_eq!(busy.get_or_decide(|| 7, not_asked, decided), Some(ATOMIC));
        let again = busy.get_or_decide(|| unreachable!("it is decided"), not_asked, nothing);
        assert_eq!((again, busy.get()), (Some(ATOMIC), Some(ATOMIC)));
        let raced = place(8);
        let other_comes = |_| {
            raced.state.store(9, Relaxed);
            false
        };
        assert_eq!(raced.get_or_decide(|| 7, other_comes, nothing), None);
        assert_eq!(raced.state.load(Relaxed), 9);
    }

    #[test]
    fn while_the_probe_rests_nothing_is_decided_and_what_was_decided_stays() {
        let place = place(0);
        assert_eq!(get_from(&place, || true, || unreachable!("it rests")), None);
        assert_eq!(get_from(&place, || false, || None), None);
        assert_eq!(get_from(&place, || false, || Some(ATOMIC)), Some(ATOMIC));
        assert_eq!(get_from(&place, || true, || unreachable!("it is decided")), Some(ATOMIC));
    }
}
