//! The signals of a recording beside Ctrl-C and SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use percid_command::exit::Failure;

/// Whether the last events shall be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Starts listening. By a file that may not grow (`ulimit -f`) the program is not ended: the
    /// system says then that it is too large.
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

    /// Whether SIGUSR1 has come since this was asked last.
    pub(super) fn dump(&self) -> bool {
        self.0.swap(false, Relaxed)
    }
}
