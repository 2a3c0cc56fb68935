//! The choice of the ID source, made once per process.

use std::fmt;

use super::probe;
use super::source::{Source, UnknownSource};
use super::try_once::TryOnce;
use super::unavailable::Unavailable;
use crate::sys::atomic::AtomicU64;
use crate::sys::cell::UnsafeCell;
use crate::sys::{environment, holder, stderr};

/// The ID source of the process, and the reason for it.
///
/// ```
/// let choice = percid::init();
/// println!("{}, because {}", choice.source, choice.reason);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The source.
    pub source: Source,
    /// The reason for this source.
    pub reason: Reason,
}

/// The reason for a source.
///
/// ```
/// use percid::id::Reason;
///
/// if let Reason::TableUnavailable(why) = percid::init().reason {
///     eprintln!("every update is one atomic instruction here: {why}");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// `PERCID_SOURCE` requested it.
    Requested,
    /// The table works here: the default.
    TableAvailable,
    /// The table does not work here.
    TableUnavailable(Unavailable),
    /// Another thread, or the code that this signal handler interrupted, is currently choosing.
    Selecting,
    /// It is not known yet whether the kernel aborts critical sections; a later use tries again.
    ProbeInconclusive,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Requested => f.write_str("PERCID_SOURCE asks for it"),
            Reason::TableAvailable => f.write_str(
                "the kernel can fence critical sections and, as far as is known, aborts them",
            ),
            Reason::TableUnavailable(why) => write!(f, "percid's table cannot be used: {why}"),
            Reason::Selecting => f.write_str("the source is being chosen at this moment"),
            Reason::ProbeInconclusive => Unavailable::SectionsNotProbed.fmt(f),
        }
    }
}

/// The choice of this process.
static CHOICE: TryOnce<Choice> = TryOnce { state: AtomicU64::new(0), value: UnsafeCell::new(None) };

/// Returns the choice, which is made now unless it was made before; `None` while another thread
/// makes it, or if it cannot be made yet.
pub(crate) fn get() -> Option<Choice> {
    get_from(&CHOICE, probe::is_resting, decide)
}

fn get_from(
    place: &TryOnce<Choice>,
    is_resting: impl FnOnce() -> bool,
    decide: impl FnOnce() -> Option<Choice>,
) -> Option<Choice> {
    // Until the kernel is probed again, every operation of every thread calls this.
    match place.get() {
        None if is_resting() => None,
        None => place.get_or_decide(holder::me, holder::exists, decide),
        choice => choice,
    }
}

/// Returns the choice that applies until one is made.
pub(crate) fn pending() -> Choice {
    let reason = if probe::is_unanswered() { Reason::ProbeInconclusive } else { Reason::Selecting };
    Choice { source: Source::Atomic, reason }
}

/// Makes the choice. Returns `None` if it is not known yet whether critical sections can be
/// trusted, which every source but one needs.
fn decide() -> Option<Choice> {
    let automatic = || automatic(Source::Table.prepare());
    match requested() {
        Some(source) => on_request(source, source.prepare(), automatic),
        None => automatic(),
    }
}

/// Returns the requested source, if it could be prepared.
fn on_request(
    source: Source,
    prepared: Result<(), Unavailable>,
    automatic: impl FnOnce() -> Option<Choice>,
) -> Option<Choice> {
    match prepared {
        Ok(()) => Some(Choice { source, reason: Reason::Requested }),
        Err(Unavailable::SectionsNotProbed) => None,
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
/// (docs/aba.md); those before 6.13 and from 6.19 on are cold or exceed their bound.
fn automatic(table: Result<(), Unavailable>) -> Option<Choice> {
    match table {
        Ok(()) => Some(Choice { source: Source::Table, reason: Reason::TableAvailable }),
        Err(Unavailable::SectionsNotProbed) => None,
        Err(why) => {
            // This cannot fail.
            let _ = Source::Atomic.prepare();
            Some(Choice { source: Source::Atomic, reason: Reason::TableUnavailable(why) })
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

    const ATOMIC: Choice = Choice { source: Source::Atomic, reason: Reason::Requested };

    #[test]
    fn the_table_where_it_works() {
        let automatic = |table| automatic(table).map(|choice| choice.source);
        assert_eq!(automatic(Ok(())), Some(Source::Table));
        assert_eq!(automatic(Err(Unavailable::SectionsNotAborted)), Some(Source::Atomic));
        assert_eq!(automatic(Err(Unavailable::SectionsNotProbed)), None, "not known yet");
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_wish_where_it_is_possible() {
        let wish = |prepared, automatic| on_request(Source::Atomic, prepared, || automatic);
        assert_eq!(wish(Ok(()), None), Some(ATOMIC));
        assert_eq!(wish(Err(Unavailable::SectionsNotProbed), Some(ATOMIC)), None, "not known yet");
        assert_eq!(wish(Err(Unavailable::NoMemory), Some(ATOMIC)), Some(ATOMIC));
    }

    #[test]
    fn while_the_probe_rests_nothing_is_decided_and_what_was_decided_stays() {
        let place = TryOnce { state: AtomicU64::new(0), value: UnsafeCell::new(None) };
        assert_eq!(get_from(&place, || true, || unreachable!("it rests")), None);
        assert_eq!(get_from(&place, || false, || None), None);
        assert_eq!(get_from(&place, || false, || Some(ATOMIC)), Some(ATOMIC));
        assert_eq!(get_from(&place, || true, || unreachable!("it is decided")), Some(ATOMIC));
    }
}
