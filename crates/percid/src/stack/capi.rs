//! Drains for C functions, which may end the thread or jump, and must not do so across percid's frames.

use super::Stack;
use super::drain::Drain;

impl<T: Send> Stack<T> {
    /// Begins a drain that returns one item after the other. Returns `None` inside a drain of this
    /// stack by this thread.
    #[doc(hidden)]
    pub fn drain_iter(&self) -> Option<Drain<'_, T>> {
        self.begin_drain()
    }
}
