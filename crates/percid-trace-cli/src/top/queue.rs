//! Intervals on their way from the recorder, which must not wait, to the thread that shows them.

use std::ops::ControlFlow;
use std::sync::mpsc::{SyncSender, TrySendError};

use percid_trace::spool::Interval;

/// An interval that has ended, and the number of intervals before it that were not taken.
pub(super) type Next = (Interval, u64);

/// Intervals on their way to the thread that shows them. Showing one may take longer than an
/// interval.
pub(super) struct Queue {
    send: SyncSender<Next>,
    /// Number of intervals that remain to be shown.
    left: Option<u64>,
    /// The last one, if there was no room for it.
    waiting: Option<Next>,
}

impl Queue {
    /// Makes a queue that takes this number of intervals, or all.
    pub(super) fn new(send: SyncSender<Next>, left: Option<u64>) -> Queue {
        Queue { send, left, waiting: None }
    }

    /// Passes an interval on, and does not wait. Returns whether more are wanted.
    pub(super) fn pass_on(&mut self, mut interval: Interval) -> ControlFlow<()> {
        let mut skipped = 0;
        if let Some((before, skipped_before)) = self.waiting.take() {
            skipped = skipped_before + 1;
            // Events lost in an interval that is not shown must still be reported.
            interval.trace.origin.lost += before.trace.origin.lost;
        }
        match self.send.try_send((interval, skipped)) {
            Ok(()) => {
                self.left = self.left.map(|left| left.saturating_sub(1));
                if self.left == Some(0) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            }
            Err(TrySendError::Full(next)) => {
                self.waiting = Some(next);
                ControlFlow::Continue(())
            }
            Err(TrySendError::Disconnected(_)) => ControlFlow::Break(()),
        }
    }

    /// Waits until the last interval is taken: nothing is recorded any more.
    pub(super) fn finish(self) {
        if let Some(next) = self.waiting {
            // If it is not taken, the showing thread reports why.
            let _ = self.send.send(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use percid_trace::Trace;
    use percid_trace::trace::Origin;
    use percid_trace::window::Window;

    use super::*;

    fn interval(since: u64) -> Interval {
        let trace = Trace { origin: Origin { lost: 1, ..Origin::default() }, ..Trace::default() };
        Interval { trace, window: Window::default(), since, until: since + 1, left_out: 0 }
    }

    #[test]
    fn what_is_not_taken_in_time_is_skipped_and_its_losses_are_not() {
        let (send, receive) = sync_channel(1);
        let mut queue = Queue::new(send, None);
        assert!((0..4).all(|nr| queue.pass_on(interval(nr)).is_continue()));
        let finish = thread::spawn(|| queue.finish());
        let told =
            |(interval, skipped): Next| (interval.since, skipped, interval.trace.origin.lost);
        let taken: Vec<_> = receive.iter().map(told).collect();
        assert_eq!(taken, [(0, 0, 1), (3, 2, 3)]);
        finish.join().expect("it ends");
    }

    #[test]
    fn enough_is_enough_and_nobody_wants_none() {
        let (send, receive) = sync_channel(3);
        let mut queue = Queue::new(send, Some(2));
        let more = [0, 1].map(|nr| queue.pass_on(interval(nr)).is_continue());
        assert_eq!(more, [true, false]);
        drop(receive);
        let mut queue = Queue { left: None, ..queue };
        assert!(queue.pass_on(interval(2)).is_break());
    }
}
