//! What a policy notes about each thread.

use super::Thread;

/// A value for each thread, the default for threads that were not mentioned yet.
#[derive(Debug, Default)]
pub(super) struct Threads<T>(Vec<T>);

impl<T: Default> Threads<T> {
    /// The note about `thread`. Allocates at the first mention of a thread only.
    pub(super) fn of(&mut self, thread: Thread) -> &mut T {
        let index = thread as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, T::default);
        }
        &mut self.0[index]
    }

    /// The note about `thread`, if it was mentioned.
    pub(super) fn get(&self, thread: Thread) -> Option<&T> {
        self.0.get(thread as usize)
    }

    /// All notes.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }

    /// Forgets all threads.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
