//! What concerns the whole process: the source of IDs, and the calling thread's ID.

use std::ffi::{CStr, c_char, c_int};
use std::fmt::{self, Write};

use crate::barrier::guard;

/// Where concurrency IDs come from. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The kernel's own: `mm_cid` of the rseq area (Linux 6.3 and later).
    Kernel = 1,
    /// percid's table from CPU to ID (Linux 5.10 and later).
    Table = 2,
    /// None: the CPU number is a mere hint, and every update is one atomic instruction.
    Atomic = 3,
}

impl Source {
    fn of(source: percid::Source) -> Source {
        match source {
            percid::Source::Kernel => Source::Kernel,
            percid::Source::Table => Source::Table,
            percid::Source::Atomic => Source::Atomic,
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

/// The source of a number that C passes, unless there is none of that number.
pub(crate) fn source(number: c_int) -> Option<percid::Source> {
    percid::Source::ALL.into_iter().find(|&source| Source::of(source) as c_int == number)
}

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version contains no zero byte"),
    };

/// The version of the library that the program runs with, such as "0.1.0". Never NULL.
///
/// Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Chooses the source of IDs for this process at the first call; later calls return the same.
///
/// Every operation that needs it does it, so programs need not. Calling it early in main(), before
/// threads are started, makes the registration for the kernel's fence cheap: 2 us instead of 20 ms.
/// The environment variable PERCID_SOURCE (kernel, table or atomic) overrides the choice; a wish
/// that cannot be granted is answered by one line on standard error. A program with more rights than
/// its caller (set-user-ID, file capabilities) ignores it.
///
/// While another thread (or the code that a signal handler interrupted) is choosing, the answer is
/// PERCID_SOURCE_ATOMIC; objects that are used meanwhile lose nothing by it. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn percid_init() -> Source {
    guard(Source::Atomic, || Source::of(percid::init().source))
}

/// The name of a source: "kernel", "table" or "atomic"; NULL if no source has this number.
///
/// Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_source_name(source: c_int) -> *const c_char {
    self::source(source).map_or(std::ptr::null(), |source| Source::of(source).name().as_ptr())
}

/// Writes one line for people into `text`: why the process uses the source that percid_init()
/// returns.
///
/// Writes at most `size` bytes, the last of them a zero, and returns the length of the whole line
/// without the zero, as snprintf() does: a line that did not fit is cut off. With `size` 0 nothing
/// is written and `text` may be NULL. 512 bytes are enough for every line of this version.
///
/// Async-signal-safe; costs a microsecond.
///
/// # Safety
///
/// `text` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_reason(text: *mut c_char, size: usize) -> usize {
    guard(0, || {
        let mut line = Line { text, room: if text.is_null() { 0 } else { size }, length: 0 };
        // `Line` takes everything.
        let _ = write!(line, "{}", percid::init().reason);
        line.end();
        line.length
    })
}

/// The ID of the calling thread, 0 or more, or -EAGAIN if it can have none at the moment.
///
/// A hint: the thread may be moved to another CPU before the caller looks at the answer, and
/// another thread may have the ID then. Good for choosing among copies that are protected
/// otherwise. With PERCID_SOURCE_ATOMIC it is a recent CPU number.
///
/// Async-signal-safe; costs some 15 ns once the CPU has an ID.
#[unsafe(no_mangle)]
pub extern "C" fn percid_current_id() -> c_int {
    guard(-libc::EAGAIN, || {
        let id = percid::init().source.current_id();
        id.and_then(|id| c_int::try_from(id).ok()).unwrap_or(-libc::EAGAIN)
    })
}

/// Makes the process's IDs dense again, on request: takes back IDs at or above min(allowed CPUs,
/// threads), and those that no CPU has renewed for 100 ms. CPUs that still use theirs fetch one
/// again at their next operation.
///
/// Returns how many were taken back; always 0 if the source is not PERCID_SOURCE_TABLE, whose IDs
/// are percid's own. Costs one fence of all CPUs, some 10 us. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn percid_compact() -> u32 {
    guard(0, percid::compact)
}

/// Says how many IDs there may be while the process's threads wander over more CPUs than there are
/// threads.
///
/// Once ten IDs for each thread were taken from other CPUs within 100 ms, percid hands out extra
/// ones, up to the CPUs visited within 100 ms: memory for the time of a steal per move, about 1 us.
/// `most` is a limit for them; UINT32_MAX sets none, as at first, and 0 keeps the IDs below
/// min(allowed CPUs, threads) at any time. When the threads have stayed where they are for 200 ms,
/// the next time that any CPU asks for an ID ends the extra ones.
///
/// It holds for the whole process; sources other than PERCID_SOURCE_TABLE ignore it.
/// Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_set_density(most: u32) {
    percid::set_density(match most {
        0 => percid::Density::Strict,
        u32::MAX => percid::Density::Relaxed,
        most => percid::Density::AtMost(most),
    });
}

/// A line of text in the caller's memory, cut off where that ends.
struct Line {
    text: *mut c_char,
    room: usize,
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let free = self.room.saturating_sub(1).saturating_sub(self.length);
        let copied = part.len().min(free);
        if copied > 0 {
            // SAFETY: the caller of `percid_reason` gives `room` bytes, of which `length` and
            // `copied` together leave one over.
            unsafe {
                let end = self.text.add(self.length).cast::<u8>();
                end.copy_from_nonoverlapping(part.as_ptr(), copied);
            }
        }
        self.length += part.len();
        Ok(())
    }
}

impl Line {
    /// Writes the zero.
    fn end(&mut self) {
        if let Some(last) = self.room.checked_sub(1) {
            // SAFETY: below `room`.
            unsafe { *self.text.add(last.min(self.length)) = 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_fixed_numbers_and_names() {
        for (number, name) in [(1, c"kernel"), (2, c"table"), (3, c"atomic")] {
            // SAFETY: names are terminated strings.
            assert_eq!(unsafe { CStr::from_ptr(percid_source_name(number)) }, name);
            let source = source(number).expect("a source of this number");
            assert_eq!(source.to_string().as_bytes(), name.to_bytes());
        }
        assert!([-1, 0, 4].into_iter().all(|number| percid_source_name(number).is_null()));
    }

    #[test]
    fn a_reason_is_cut_off_where_the_memory_ends() {
        // SAFETY: nothing is written.
        let length = unsafe { percid_reason(std::ptr::null_mut(), 0) };
        assert!((10..512).contains(&length));
        let whole = reason_in(512, length);
        for size in 1..=length + 1 {
            assert_eq!(reason_in(size, length), whole[..whole.len().min(size - 1)], "{size}");
        }
        assert_eq!(whole, percid::init().reason.to_string().into_bytes());
    }

    /// The line that `size` bytes hold, having checked that nothing lies beyond.
    fn reason_in(size: usize, length: usize) -> Vec<u8> {
        let mut memory = [0x55_u8; 513];
        // SAFETY: `memory` is larger than `size`.
        assert_eq!(unsafe { percid_reason(memory.as_mut_ptr().cast(), size) }, length);
        assert!(memory[size..].iter().all(|&byte| byte == 0x55));
        let text = CStr::from_bytes_until_nul(&memory[..size]).expect("a zero within the size");
        text.to_bytes().to_vec()
    }
}
