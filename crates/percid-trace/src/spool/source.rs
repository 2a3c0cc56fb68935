//! Sources that have recorded events and hand them out, repeatedly.

use crate::error::Error;
use crate::trace::{Origin, Trace};

/// Recorded events.
pub trait Source {
    /// Returns the origin of the events, as it was known at the beginning.
    fn origin(&self) -> &Origin;

    /// Hands out all events in their order, as parts of a trace of some ten thousand events.
    ///
    /// # Errors
    ///
    /// The system refuses, or `take` returns an error.
    fn each(&self, take: &mut dyn FnMut(&Trace) -> Result<(), Error>) -> Result<Tail, Error>;
}

/// The end of what was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tail {
    /// Number of events that the kernel had lost.
    pub lost: u64,
    /// `true` if the recording did not come to its end.
    pub cut_off: bool,
    /// Number of bytes left out after the last whole frame.
    pub left_out: u64,
}

/// A part of a trace that is handed out when it has grown.
#[derive(Debug, Default)]
pub(super) struct Part(pub(super) Trace);

/// Events of a part.
const MIN_PART_EVENTS: usize = 1 << 15;

impl Part {
    /// Hands it out if it has enough events, or at the end if it has any.
    pub(super) fn pass_on(
        &mut self,
        is_end: bool,
        take: &mut dyn FnMut(&Trace) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let count = self.0.events.len() + self.0.numa.len() + self.0.counted.len();
        if count < MIN_PART_EVENTS && !(is_end && count > 0) {
            return Ok(());
        }
        take(&self.0)?;
        let Trace { events, numa, counted, texts, .. } = &mut self.0;
        events.clear();
        numa.clear();
        counted.clear();
        *texts = Default::default();
        Ok(())
    }
}
