//! Receivers of events while they are recorded.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::counters::Counted;
use crate::event::Event;
use crate::interner::Interner;
use crate::numa;
use crate::trace::Origin;

/// About how long before a recorder is killed its last events are that reached the [`Sink`].
pub const UNWRITTEN: Duration = Duration::from_millis(250);

/// Takes events while they are recorded.
pub trait Sink {
    /// Called once, when everything is ready and before the first event, with what is known by then of
    /// where the trace comes from.
    ///
    /// # Errors
    ///
    /// Returned if nothing can be recorded.
    fn begin(&mut self, origin: &Origin) -> Result<(), String>;

    /// Takes the next events; called several times a second, also when there are none. Returns
    /// [`ControlFlow::Break`] if it wants no more: these events are then not recorded either.
    ///
    /// # Errors
    ///
    /// Returned if the recording must end.
    fn take(&mut self, piece: &Piece<'_>) -> Result<ControlFlow<()>, String>;
}

/// Events that follow those of the piece before.
///
/// They are sorted by time and CPU. If the kernel holds something back for longer than the recorder
/// waits, it comes with a later piece. So the times of each CPU never go back, and those of
/// different CPUs rarely.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The schedule.
    pub events: &'a [Event],
    /// Events of NUMA balancing.
    pub numa: &'a [numa::Event],
    /// Counter values of turns that have ended.
    pub counted: &'a [Counted],
    /// Number of counters in each of these.
    pub counters: usize,
    /// The texts of the events; of no other piece.
    pub texts: &'a Interner,
    /// Number of events lost since the beginning.
    pub lost: u64,
    /// Time at which the kernel was asked, on the clock of the events.
    pub asked: u64,
    /// Time until which this and the earlier pieces are complete; for the last piece the largest
    /// number.
    pub until: u64,
}

impl Piece<'_> {
    /// Returns `true` if the piece has no events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.numa.is_empty() && self.counted.is_empty()
    }
}
