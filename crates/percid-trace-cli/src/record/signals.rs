//! The signals of a recording beside Ctrl-C and SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use percid_command::exit::Failure;

/// A request to write the last events.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Starts listening. Also catches SIGXFSZ, so that a file that may not grow (`ulimit -f`) does
    /// not end the program: the system returns an error instead.
    pub(super) fn listen() -> Result<Signals, Failure> {
        let signals = Signals::default();
        signals.install().map_err(|cause| Failure::new("cannot listen for signals", cause))?;
        Ok(signals)
    }

    #[cfg(unix)]
    fn install(&self) -> std::io::Result<()> {
        use signal_hook::flag::register;

        register(libc::SIGUSR1, Arc::clone(&self.0))?;
        register(libc::SIGXFSZ, Arc::default())?;
        Ok(())
    }

    #[cfg(not(unix))]
    fn install(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Returns `true` if SIGUSR1 has come since the last call.
    pub(super) fn dump(&self) -> bool {
        self.0.swap(false, Relaxed)
    }
}
