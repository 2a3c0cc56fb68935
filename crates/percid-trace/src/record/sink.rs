//! Where events go while they are recorded.

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
    /// Why nothing can be recorded.
    fn begin(&mut self, origin: &Origin) -> Result<(), String>;

    /// Takes the next events; called several times a second, also when there are none. Answers
    /// [`ControlFlow::Break`] if it wants no more: these, then, are not recorded either.
    ///
    /// # Errors
    ///
    /// Why the recording must end.
    fn take(&mut self, piece: &Piece<'_>) -> Result<ControlFlow<()>, String>;
}

/// Events that follow those of the piece before.
///
/// They are sorted by time and CPU. Should the kernel have held something back for longer than is
/// waited for, it comes with a later piece: so the times of each CPU never go back, and those of
/// different CPUs hardly ever.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The schedule.
    pub events: &'a [Event],
    /// What NUMA balancing did.
    pub numa: &'a [numa::Event],
    /// What was counted in turns of threads that have ended.
    pub counted: &'a [Counted],
    /// How many counters these have.
    pub counters: usize,
    /// The texts of the events; of no other piece.
    pub texts: &'a Interner,
    /// How many events were lost since the beginning.
    pub lost: u64,
    /// When the kernel was asked, on the clock of the events.
    pub asked: u64,
    /// Until when this and the pieces before have everything; of the last piece the largest number.
    pub until: u64,
}

impl Piece<'_> {
    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.numa.is_empty() && self.counted.is_empty()
    }
}
