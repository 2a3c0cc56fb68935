//! A socket into which the signal handler writes one byte, and which is never read. A waiting
//! thread sleeps in one piece with nanosecond precision, and all of them wake at once.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Wake {
    wait: UnixStream,
    wake: UnixStream,
}

impl Wake {
    pub(super) fn new() -> io::Result<Wake> {
        let (wait, wake) = UnixStream::pair()?;
        Ok(Wake { wait, wake })
    }

    /// Makes this signal end all sleeps.
    pub(super) fn by(&self, signal: i32) -> io::Result<()> {
        signal_hook::low_level::pipe::register(signal, self.wake.try_clone()?).map(|_| ())
    }

    /// Sleeps for a time, or until a signal has arrived.
    pub(super) fn sleep(&self, duration: Duration, _come: &AtomicBool) {
        let mut wake = libc::pollfd { fd: self.wait.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let wait = libc::timespec {
            tv_sec: duration.as_secs() as libc::time_t,
            tv_nsec: duration.subsec_nanos() as libc::c_long,
        };
        // SAFETY: `wake` is one valid pollfd whose descriptor is open as long as `self` exists;
        // `wait` outlives the call; a null signal mask is allowed. A signal may end the wait early,
        // so the result is not needed.
        unsafe { libc::ppoll(&mut wake, 1, &wait, std::ptr::null()) };
    }
}
