//! Ctrl-C, or SIGTERM: ends the measurement early, not the program; what was measured is still
//! printed.
//!
//! The signal's handler sets a flag and writes one byte into a socket that is never read. Sleeping
//! threads wait on that socket, so all of them wake at once and no helper thread disturbs the CPUs
//! that are being measured.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::Failure;

/// Whether Ctrl-C was pressed, and a sleep that ends when it is.
#[derive(Clone, Debug)]
pub struct Interrupt {
    pressed: Arc<AtomicBool>,
    wake: Arc<UnixStream>,
}

impl Interrupt {
    /// Starts listening. A second one ends the program at once, with status 130 or, by SIGTERM,
    /// 143.
    pub fn listen() -> Result<Self, Failure> {
        Self::install().map_err(|cause| Failure::new("cannot listen for Ctrl-C", cause))
    }

    fn install() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        let pressed = Arc::new(AtomicBool::new(false));
        // The order matters: at the first signal the flag is still unset, so the first action does
        // nothing.
        for signal in [SIGINT, SIGTERM] {
            let status = 128 + signal;
            signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&pressed))?;
            signal_hook::flag::register(signal, Arc::clone(&pressed))?;
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(Interrupt { pressed, wake: Arc::new(wake) })
    }

    /// Whether Ctrl-C was pressed.
    pub fn pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// Sleeps for `duration` in one piece, or until Ctrl-C is pressed.
    pub fn sleep(&self, duration: Duration) {
        let mut wake = libc::pollfd { fd: self.wake.as_raw_fd(), events: libc::POLLIN, revents: 0 };
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
