//! The kernel's information about this process and itself: its threads, and the kernel's release.

use std::ffi::CStr;
use std::ops::ControlFlow;

use super::file;

/// Returns the current number of threads in the process; `None` without `/proc`.
///
/// The link count of `/proc/self/task` is 2 plus the number of threads. It takes one system call,
/// while parsing `/proc/self/stat` takes three and makes the kernel add up CPU times. Other
/// implementations of `/proc` (gVisor) are less precise, so an impossible count is replaced by the
/// one in `/proc/self/stat`.
pub(crate) fn threads() -> Option<u32> {
    // Miri has no files.
    // #[gamma::skip(reason = "of Miri")]
    if cfg!(miri) {
        return threads_from_stat();
    }
    let mut info = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path is a terminated string and `info` has room for the answer.
    if unsafe { libc::stat(c"/proc/self/task".as_ptr(), info.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so it filled the structure.
    let info = unsafe { info.assume_init() };
    #[allow(clippy::unnecessary_cast, reason = "its type is another on each architecture")]
    let links = info.st_nlink as u32;
    if links > 2 { Some(links - 2) } else { threads_from_stat() }
}

/// Returns the field `num_threads` (the twentieth) of `/proc/self/stat`.
fn threads_from_stat() -> Option<u32> {
    // The second field is the program's name in parentheses and may contain anything, even spaces
    // and parentheses: fields are counted from the last closing one.
    let (mut spaces, mut number) = (0, None);
    file::for_each_byte(c"/proc/self/stat", |byte| {
        match byte {
            b')' => (spaces, number) = (0, None),
            b' ' => spaces += 1,
            digit @ b'0'..=b'9' if spaces == 18 => {
                number = Some(number.unwrap_or(0) * 10 + u32::from(digit - b'0'));
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    })?;
    number
}

/// Returns the calling thread's number, which is unique among the machine's threads as long as it
/// exists.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Returns `true` if this process has a thread of this number, or if the kernel does not report
/// that, for example because a sandbox refuses the call.
pub(crate) fn has_thread(number: u32) -> bool {
    // Miri does not support the call. No process forks there.
    // #[gamma::skip(reason = "of Miri")]
    if cfg!(miri) {
        return true;
    }
    // SAFETY: signal 0 is not delivered; the call only looks the thread up.
    let found = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), number, 0) };
    found == 0 || crate::sys::errno() != libc::ESRCH
}

/// Returns the auxiliary value of `kind` (`AT_...`) that the kernel passed at program start; 0 if
/// there is none.
pub(crate) fn auxiliary(kind: libc::c_ulong) -> libc::c_ulong {
    // Miri passes none.
    // #[gamma::skip(reason = "of Miri")]
    if cfg!(miri) {
        return 0;
    }
    // SAFETY: the call only reads the auxiliary vector.
    unsafe { libc::getauxval(kind) }
}

/// A kernel release, such as 6.18.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Release {
    /// Returns the running kernel's release.
    pub(crate) fn running() -> Option<Release> {
        with_uname(|name| Release::parse(name.to_bytes()))?
    }

    fn parse(text: &[u8]) -> Option<Release> {
        let mut numbers = text.split(|byte| !byte.is_ascii_digit());
        let mut next = || std::str::from_utf8(numbers.next()?).ok()?.parse().ok();
        Some(Release { major: next()?, minor: next()? })
    }
}

/// Passes the running kernel's release string to `body`.
pub(crate) fn with_uname<T>(body: impl FnOnce(&CStr) -> T) -> Option<T> {
    let mut name = std::mem::MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: `name` has room for the answer.
    if unsafe { libc::uname(name.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: all zero is a valid value; the call succeeded, so every field is a terminated string.
    let name = unsafe { name.assume_init() };
    // SAFETY: the call filled the field with a terminated string, which exists as long as `name`.
    Some(body(unsafe { CStr::from_ptr(name.release.as_ptr()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has one way only")]
    fn both_ways_of_counting_threads_agree() {
        let hold = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| hold.wait());
            }
            // Other tests start and end threads during this one, so the two values may differ, but
            // hardly in every second attempt: by chance in all of them once in 2^1000.
            let agree = (0..1000).any(|_| threads().is_some() && threads() == threads_from_stat());
            let counted = threads();
            hold.wait();
            assert!(agree && counted >= Some(4), "{counted:?}");
        });
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn the_name_of_the_program_may_be_anything() {
        let place = "/proc/self/comm";
        let name = std::fs::read(place).expect("a name");
        std::fs::write(place, ") 1 2 (3").expect("renamed");
        let counted = (0..1000).any(|_| threads().is_some() && threads() == threads_from_stat());
        std::fs::write(place, name).expect("renamed");
        assert!(counted);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_thread_exists_until_it_ends() {
        let (there, end) = (thread_id(), std::thread::spawn(thread_id).join().expect("no panic"));
        assert!(has_thread(there));
        // The thread has been joined, and leaves the process's list a moment later: this test ends
        // then.
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(600);
        while has_thread(end) {
            assert!(std::time::Instant::now() < patience);
            std::thread::yield_now();
        }
        assert!(!has_thread(1) || std::process::id() == 1, "another process's");
    }

    /// A sandbox that forbids the call has not reported that the thread is gone.
    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_thread_exists_where_the_question_is_refused() {
        let statement = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let mut filter = [
            // The number of the call; EPERM for tgkill.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            statement(libc::BPF_JMP | libc::BPF_JEQ, 0, 1, libc::SYS_tgkill as u32),
            statement(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
            statement(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let refused = std::thread::spawn(move || {
            let program =
                libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            // SAFETY: the program is valid; both concern this thread only.
            let confined = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
            };
            !confined || has_thread(u32::MAX >> 1)
        });
        assert!(refused.join().expect("no panic"));
    }

    #[test]
    fn releases() {
        let release = |text: &str| Release::parse(text.as_bytes());
        assert_eq!(release("6.18.44-fc"), Some(Release { major: 6, minor: 18 }));
        assert_eq!(release("5.10.0-30-amd64"), Some(Release { major: 5, minor: 10 }));
        assert_eq!(release("7.0-rc1"), Some(Release { major: 7, minor: 0 }));
        assert_eq!(release("next"), None);
        assert!(Release { major: 6, minor: 9 } < Release { major: 6, minor: 13 });
    }
}
