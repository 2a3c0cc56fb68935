//! The disturbances on systems that are not 64-bit Linux: visits.

use percid::Source;

use crate::random::Random;
use crate::report::{Counts, count};
use crate::structure::Structure;

/// The disturbances of a run.
pub(crate) struct Disturbances<'s> {
    structure: &'s dyn Structure,
    counts: &'s Counts,
}

impl<'s> Disturbances<'s> {
    pub(crate) fn new(
        structure: &'s dyn Structure,
        _: Source,
        _: usize,
        counts: &'s Counts,
    ) -> Result<Disturbances<'s>, String> {
        Ok(Disturbances { structure, counts })
    }

    /// Makes the calling thread one that is disturbed.
    pub(crate) fn enter(&self, _worker: usize) {}

    /// Disturbs the operating threads.
    pub(crate) fn disturb(&self, _: &mut Random) {
        count(&self.counts.visits);
        self.structure.visit();
    }

    /// Waits until no disturbance is in effect.
    pub(crate) fn settle(&self) {}

    /// Does what needs resting threads.
    pub(crate) fn disturb_at_rest(&self, _: &mut Random) -> Result<(), String> {
        Ok(())
    }
}
