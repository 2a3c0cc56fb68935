//! A policy's notes about threads.

use super::policy::Thread;

/// A value for each thread; the default value for threads without an access so far.
#[derive(Debug, Default)]
pub(super) struct Threads<T>(Vec<T>);

impl<T: Default> Threads<T> {
    /// Returns the note about `thread`. Allocates only at the first access to a thread.
    pub(super) fn get_mut(&mut self, thread: Thread) -> &mut T {
        let index = thread as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, T::default);
        }
        &mut self.0[index]
    }

    /// Returns the note about `thread`, if there is one.
    pub(super) fn get(&self, thread: Thread) -> Option<&T> {
        self.0.get(thread as usize)
    }

    /// Returns all notes.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }

    /// Removes the notes about all threads.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
