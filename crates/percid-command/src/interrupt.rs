//! Ctrl-C, or SIGTERM: ends the measurement early, not the program; the measurements until then are
//! still printed.
//!
//! The signal handler sets a flag, and ends all sleeps (`Wake`) without a helper thread, which
//! would disturb the CPUs that are being measured.

#[cfg_attr(not(target_os = "linux"), path = "interrupt/look.rs")]
#[cfg_attr(target_os = "linux", path = "interrupt/socket.rs")]
mod wake;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::Failure;
use wake::Wake;

/// The Ctrl-C flag, and a sleep that ends when it is set.
#[derive(Clone, Debug)]
pub struct Interrupt {
    pressed: Arc<AtomicBool>,
    wake: Arc<Wake>,
}

impl Interrupt {
    /// Starts catching the signals. A second signal ends the program at once, with status 130 or,
    /// for SIGTERM, 143.
    pub fn listen() -> Result<Self, Failure> {
        Self::install().map_err(|cause| Failure::new("cannot listen for Ctrl-C", cause))
    }

    fn install() -> io::Result<Self> {
        let wake = Wake::new()?;
        let pressed = Arc::new(AtomicBool::new(false));
        // The order matters: at the first signal the flag is still unset, so the first action does
        // nothing.
        for signal in [SIGINT, SIGTERM] {
            let status = 128 + signal;
            signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&pressed))?;
            signal_hook::flag::register(signal, Arc::clone(&pressed))?;
            wake.by(signal)?;
        }
        Ok(Interrupt { pressed, wake: Arc::new(wake) })
    }

    /// Returns `true` if Ctrl-C was pressed.
    pub fn pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// Sleeps for `duration` in one piece, or until Ctrl-C is pressed.
    pub fn sleep(&self, duration: Duration) {
        self.wake.sleep(duration, &self.pressed);
    }
}
