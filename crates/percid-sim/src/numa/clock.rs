//! When a thread looks whether a pass is due.

use crate::time::Ns;

/// After a pass its thread may not scan for this many times what the pass took: it spends 3 % at
/// most.
const REST: u64 = 32;

/// When a thread looks whether a pass is due: each time its run time has grown by its period.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    stamp: Ns,
    /// The run time between two looks.
    pub(super) period: Ns,
}

impl Clock {
    /// The clock of a thread that has not run yet. Its first look comes after `delay` and a period.
    pub(super) fn new(delay: Ns, period: Ns) -> Clock {
        Clock { stamp: delay, period }
    }

    /// The run time at which it looks next.
    pub(super) fn next_look(&self) -> Ns {
        self.stamp + self.period
    }

    /// It has looked.
    pub(super) fn looked(&mut self) {
        self.stamp += self.period;
    }

    /// It has scanned, for as long as `took`. Two ticks more leave the next turn to another thread.
    pub(super) fn scanned(&mut self, took: Ns, tick: Ns) {
        self.stamp += 2 * tick + REST * took;
    }
}
