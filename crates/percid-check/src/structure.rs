//! The structures that are checked.

use crate::random::Random;

/// A structure with its accounts: the operations, and the check that they lost nothing.
///
/// An operation notes beside the structure, in plain atomics, what must be in it.
/// [`audit`](Structure::audit) compares when no operation runs.
///
/// ```
/// use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
///
/// use percid::Counter;
/// use percid_check::{Random, Structure};
///
/// struct Counted {
///     counter: Counter,
///     expected: AtomicI64,
/// }
///
/// impl Structure for Counted {
///     fn operate(&self, random: &mut Random) {
///         let n = random.below(10) as i64;
///         self.counter.add(n);
///         self.expected.fetch_add(n, Relaxed);
///     }
///
///     fn audit(&self) -> Result<(), String> {
///         let (sum, expected) = (self.counter.sum(), self.expected.load(Relaxed));
///         if sum == expected { Ok(()) } else { Err(format!("{sum} instead of {expected}")) }
///     }
/// }
/// ```
///
/// # Contract
///
/// `operate` may run in several threads at once, and in a thread while an operation of another
/// thread is interrupted inside a critical section. So it must not hold a lock during an operation
/// on the structure: the check would wait for itself, and reports that after a minute.
pub trait Structure: Sync {
    /// Does an operation or a few, which `random` selects. A panic is a failure of the check.
    fn operate(&self, random: &mut Random);

    /// Operates in a signal handler, which interrupts `operate` at any instruction. Must be
    /// async-signal-safe; a panic may end the process. Does nothing unless it is implemented.
    fn interrupt(&self, random: &mut Random) {
        let _ = random;
    }

    /// Visits or drains the structure, while other threads operate on it. Does nothing unless it is
    /// implemented.
    fn visit(&self) {}

    /// Compares the structure with what operations have noted. No thread uses it during the call.
    ///
    /// # Errors
    ///
    /// A text with the difference.
    fn audit(&self) -> Result<(), String>;
}
