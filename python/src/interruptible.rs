//! Long work without the interpreter's lock, which Ctrl-C can stop.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use percid_sim::run_control::RunControl;
use pyo3::prelude::*;

use crate::errors;
use crate::threads;

/// The interval between two checks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// Runs `work` on a thread of its own, without the interpreter's lock, and returns its result.
/// After Ctrl-C, on Python's main thread, the control requests a stop, and the exception is raised
/// within about 20 ms. Work that cannot be stopped continues to its end, and its result is dropped.
///
/// # Errors
///
/// The exception of a signal handler; a panic of `work`, as `RunError`.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    control: Arc<RunControl>,
    work: impl FnOnce(&RunControl) -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    let shared = Arc::clone(&control);
    thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| threads::run(|| work(&shared))));
        // The receiver is dropped after Ctrl-C.
        let _ = sender.send(result.map_err(|_| ()));
    });
    // A receiver can be moved to the thread that is detached from the interpreter, but not
    // borrowed.
    let mut receiver = Some(receiver);
    loop {
        let Some(own) = receiver.take() else { unreachable!("it comes back each time") };
        let (own, received) = py.detach(move || {
            let received = own.recv_timeout(LOOK);
            (own, received)
        });
        receiver = Some(own);
        match received {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(())) | Err(RecvTimeoutError::Disconnected) => {
                let why = "it ended by a panic, which was printed".to_owned();
                return Err(errors::named(py, "RunError", why));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals() {
                    control.stop.store(true, Relaxed);
                    return Err(raised);
                }
            }
        }
    }
}
