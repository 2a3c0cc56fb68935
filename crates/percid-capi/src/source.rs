//! Sources of IDs: their names, their availability on this machine, and the reasons against them.

use std::ffi::{CStr, c_char, c_int};

use crate::barrier::guard;
use crate::errno;
use crate::text;

/// The sources of concurrency IDs. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The kernel's own: `mm_cid` of the rseq area (Linux 6.3 and later).
    Kernel = 1,
    /// percid's table from CPU to ID (Linux 5.10 and later).
    Table = 2,
    /// No IDs: the CPU number is a mere hint, and every update is one atomic instruction.
    Atomic = 3,
}

const _: () = assert!(percid::Source::ALL.len() == 3, "every source has a number");

impl Source {
    pub(crate) fn from_percid(source: percid::Source) -> Source {
        match source {
            percid::Source::Kernel => Source::Kernel,
            percid::Source::Table => Source::Table,
            percid::Source::Atomic => Source::Atomic,
            _ => unreachable!("this library is built with the crate of its version"),
        }
    }

    fn name(self) -> &'static CStr {
        match self {
            Source::Kernel => c"kernel",
            Source::Table => c"table",
            Source::Atomic => c"atomic",
        }
    }
}

/// The reason why a source cannot be used. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceError {
    /// It can be used.
    None = 0,
    /// No registered rseq area: see `registration` in percid_machine.
    NoRseq = 1,
    /// The rseq area holds no mm_cid: a kernel before Linux 6.3.
    NoKernelIds = 2,
    /// The rseq area is shared with another library: in threads that are not registered its mm_cid
    /// is 0.
    SharedArea = 3,
    /// The kernel has no fence for critical sections: a kernel before Linux 5.10.
    NoMembarrier = 4,
    /// The kernel has the fence, but refuses it to this process.
    MembarrierRefused = 5,
    /// The kernel does not abort critical sections when it must, so updates would be lost.
    SectionsNotAborted = 6,
    /// The time of a first use was too short to determine if the kernel aborts critical sections.
    /// The next use tries again, longer.
    SectionsNotProbed = 7,
    /// A child process was refused, which is needed to determine if the kernel aborts critical
    /// sections.
    ProbeRefused = 8,
    /// The memory for the table, or for the shards of all structures, is not available.
    NoMemory = 9,
    /// A reason for which this version of the interface has no number.
    Other = 10,
}

impl SourceError {
    fn from_percid(why: percid::id::SourceError) -> SourceError {
        use percid::id::SourceError as Why;
        match why {
            Why::NoRseq(_) => SourceError::NoRseq,
            Why::NoKernelIds => SourceError::NoKernelIds,
            Why::SharedArea => SourceError::SharedArea,
            Why::NoMembarrier => SourceError::NoMembarrier,
            Why::MembarrierRefused(_) => SourceError::MembarrierRefused,
            Why::SectionsNotAborted => SourceError::SectionsNotAborted,
            Why::SectionsNotProbed => SourceError::SectionsNotProbed,
            Why::ProbeRefused(_) => SourceError::ProbeRefused,
            Why::NoMemory => SourceError::NoMemory,
            _ => SourceError::Other,
        }
    }
}

/// Returns the source with a number from C; `None` if there is none.
pub(crate) fn source(number: c_int) -> Option<percid::Source> {
    percid::Source::ALL
        .iter()
        .copied()
        .find(|&source| Source::from_percid(source) as c_int == number)
}

/// Returns the name of a source: "kernel", "table" or "atomic"; NULL if no source has this number.
///
/// Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_source_name(source: c_int) -> *const c_char {
    self::source(source)
        .map_or(std::ptr::null(), |source| Source::from_percid(source).name().as_ptr())
}

/// Returns the source with a name: one of enum percid_source; -EINVAL for NULL or another name.
///
/// Async-signal-safe; costs a call.
///
/// # Safety
///
/// `name` is NULL or a string that ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_source_by_name(name: *const c_char) -> c_int {
    if name.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees a NUL-terminated string, and it is not NULL.
    let name = unsafe { CStr::from_ptr(name) };
    let sources = percid::Source::ALL.iter().copied().map(Source::from_percid);
    sources
        .into_iter()
        .find(|source| source.name() == name)
        .map_or(-libc::EINVAL, |found| found as c_int)
}

/// Prepares the process to use a source, independently of the selected one, and so determines if it
/// can.
///
/// Returns 0 if it can; -EINVAL if no source has this number; otherwise an error for the reason,
/// which percid_source_unavailable() and percid_source_reason() return: -ENOSYS, -ENOTSUP, -EPERM
/// or another errno of the kernel's, -EAGAIN if the next call may determine more, or -ENOMEM.
///
/// The first call for PERCID_SOURCE_TABLE registers the process for the kernel's fence: 2 us while
/// the process has one thread, about 20 ms afterwards. After a success it costs a call.
/// Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn percid_source_prepare(source: c_int) -> c_int {
    prepare(source).map_or_else(|error| error, |why| why.map_or(0, errno::of_source_error))
}

/// Returns the reason why a source cannot be used: one of enum percid_source_error, which is 0 if it
/// can be used; or -EINVAL if no source has this number. Has the effects of
/// percid_source_prepare().
#[unsafe(no_mangle)]
pub extern "C" fn percid_source_unavailable(source: c_int) -> c_int {
    let kind = |why: Option<_>| why.map_or(SourceError::None, SourceError::from_percid) as c_int;
    prepare(source).map_or_else(|error| error, kind)
}

/// Writes one line into `text` that explains why a source cannot be used. It is empty if it can be
/// used, or if no source has this number.
///
/// Writes at most `size` bytes, the last of them a zero, and returns the length of the whole line
/// without the zero, as percid_reason() does. Has the effects of percid_source_prepare().
///
/// # Safety
///
/// `text` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_source_reason(
    source: c_int,
    text: *mut c_char,
    size: usize,
) -> usize {
    let why = prepare(source).unwrap_or(None);
    // SAFETY: the caller guarantees memory of this size, or NULL.
    guard(0, || unsafe {
        match why {
            Some(why) => text::write(text, size, why),
            None => text::write(text, size, ""),
        }
    })
}

/// Returns the current ID of the calling thread from a source, independently of the selected one:
/// like percid_current_id(), and -EINVAL if no source has this number.
///
/// Async-signal-safe; costs about 15 ns once the CPU has an ID.
#[unsafe(no_mangle)]
pub extern "C" fn percid_source_current_id(source: c_int) -> c_int {
    let Some(source) = self::source(source) else { return -libc::EINVAL };
    guard(-libc::EAGAIN, || {
        source.current_id().and_then(|id| c_int::try_from(id).ok()).unwrap_or(-libc::EAGAIN)
    })
}

/// Returns a number that is above all IDs of a source that the process has ever used; 0 if no
/// source has this number.
///
/// A program needs at least this many entries for data that it keeps for each ID; another ID may
/// appear at any time. Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_source_id_count(source: c_int) -> u32 {
    guard(0, || self::source(source).map_or(0, percid::Source::id_count))
}

/// Returns the reason why the source with a number cannot be used; `None` if it can.
///
/// # Errors
///
/// Fails if there is no source with this number.
fn prepare(number: c_int) -> Result<Option<percid::id::SourceError>, c_int> {
    let source = source(number).ok_or(-libc::EINVAL)?;
    guard(Err(-libc::EFAULT), || Ok(source.prepare().err()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_fixed_numbers_and_names() {
        for (number, name) in [(1, c"kernel"), (2, c"table"), (3, c"atomic")] {
            // SAFETY: names are NUL-terminated strings.
            assert_eq!(unsafe { CStr::from_ptr(percid_source_name(number)) }, name);
            // SAFETY: names are NUL-terminated strings.
            assert_eq!(unsafe { percid_source_by_name(name.as_ptr()) }, number);
            let source = source(number).expect("a source of this number");
            assert_eq!(source.to_string().as_bytes(), name.to_bytes());
        }
        assert!([-1, 0, 4].into_iter().all(|number| percid_source_name(number).is_null()));
        for name in [c"", c"tabl", c"tables"] {
            // SAFETY: the name is a NUL-terminated string.
            assert_eq!(unsafe { percid_source_by_name(name.as_ptr()) }, -libc::EINVAL);
        }
    }

    #[test]
    fn what_cannot_be_used_has_a_reason_and_an_error() {
        use percid::id::SourceError as Why;
        let all = [
            Why::NoRseq(percid::machine::Registration::Occupied),
            Why::NoKernelIds,
            Why::SharedArea,
            Why::NoMembarrier,
            Why::MembarrierRefused(libc::EPERM),
            Why::SectionsNotAborted,
            Why::SectionsNotProbed,
            Why::ProbeRefused(libc::EPERM),
            Why::NoMemory,
        ];
        for (number, why) in (1..).zip(all) {
            assert_eq!(SourceError::from_percid(why) as c_int, number);
            assert!(errno::of_source_error(why) < 0);
        }
    }
}
