//! The times at which a thread checks if a scan pass is due.

use crate::time::Ns;

/// Time without a scan after a pass, as a multiple of the duration of the pass: a thread spends at
/// most 3 % on scanning.
const REST: u64 = 32;

/// The times at which a thread checks if a pass is due: each time its run time has grown by its
/// period.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    stamp: Ns,
    /// Run time between two checks.
    pub(super) period: Ns,
}

impl Clock {
    /// Creates the clock of a thread that has not run yet. The first check is due after `delay` and
    /// one period.
    pub(super) fn new(delay: Ns, period: Ns) -> Clock {
        Clock { stamp: delay, period }
    }

    /// Returns the run time of the next check.
    pub(super) fn next_look(&self) -> Ns {
        self.stamp + self.period
    }

    /// Records a check.
    pub(super) fn looked(&mut self) {
        self.stamp += self.period;
    }

    /// Records a pass that took `took`. Two more ticks let another thread make the next pass.
    pub(super) fn scanned(&mut self, took: Ns, tick: Ns) {
        self.stamp += 2 * tick + REST * took;
    }
}
