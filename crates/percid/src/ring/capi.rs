//! Polls for C functions, which may end the thread or jump, and must not do so across percid's frames.

use super::consumer::{Consumer, Event, Poll};

impl Consumer<'_> {
    /// Begins a poll that returns one record after the other.
    #[doc(hidden)]
    pub fn begin(&self) -> Poll {
        self.begin_poll()
    }

    /// Returns the next record of a poll that this consumer has begun.
    #[doc(hidden)]
    pub fn next(&mut self, poll: &mut Poll) -> Option<Event<'_>> {
        self.next_of(poll)
    }

    /// Ends a poll early, so that writers can use the room of the records that were read.
    #[doc(hidden)]
    pub fn end(&mut self, poll: Poll) {
        if let Some((_, reading)) = poll.reading {
            reading.finish();
        }
    }

    /// Ends a consumer whose ring is gone, without touching the ring: C determines when that is the
    /// case.
    #[doc(hidden)]
    pub fn abandon(self) {
        let Consumer { record, _turn: turn, .. } = self;
        std::mem::forget(turn);
        drop(record);
    }
}
