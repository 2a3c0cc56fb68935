//! The CPUs and IDs in use within the last 100 ms, counted while they are used.
//!
//! A sample reads ten small records. A search through all CPUs and IDs would take longer than the
//! rest of the simulation if a large machine is mostly idle.

use crate::policies::Id;
use crate::time::{MS, Ns};

/// Time between two samples.
pub(super) const PERIOD: Ns = 10 * MS;

/// Time for which a used ID or CPU counts as in use: the time after which IDs expire (R7).
pub(super) const WINDOW: Ns = 100 * MS;

const PERIODS: u64 = WINDOW / PERIOD;

/// Events of one period.
#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    /// Number of CPUs that stopped in it, and have not run anything since.
    stopped: u32,
    /// One more than the largest ID used in it.
    ids: u32,
}

/// The last ten periods. Period n ends with the time n x [`PERIOD`], which belongs to it. So at the
/// end of a period, an event is younger than [`WINDOW`] exactly if its period is one of these.
#[derive(Debug, Default)]
pub(super) struct Window {
    period: u64,
    uses: [Uses; PERIODS as usize],
}

impl Window {
    /// Records that a CPU becomes idle.
    pub(super) fn note_idle(&mut self, now: Ns) {
        self.advance(now);
        self.of(self.period).stopped += 1;
    }

    /// Records that an idle CPU begins to run something; `stopped` is the time at which it became
    /// idle, if it ran before.
    pub(super) fn note_busy(&mut self, now: Ns, stopped: Option<Ns>) {
        self.advance(now);
        let Some(period) = stopped.map(period_of) else { return };
        if period + PERIODS > self.period {
            self.of(period).stopped -= 1;
        }
    }

    /// Records the use of an ID.
    pub(super) fn note_id(&mut self, now: Ns, id: Id) {
        self.advance(now);
        let uses = self.of(self.period);
        uses.ids = uses.ids.max(id + 1);
    }

    /// Forgets all uses of IDs.
    pub(super) fn forget_ids(&mut self) {
        self.uses.iter_mut().for_each(|uses| uses.ids = 0);
    }

    /// Returns the number of idle CPUs that stopped within the window that ends with a period, and
    /// one more than the largest ID used in it. There must be no event after the period.
    pub(super) fn sample(&mut self, end: Ns) -> (u32, u32) {
        self.advance(end);
        let stopped = self.uses.iter().map(|uses| uses.stopped).sum();
        let ids = self.uses.iter().map(|uses| uses.ids).max();
        (stopped, ids.unwrap_or(0))
    }

    fn of(&mut self, period: u64) -> &mut Uses {
        &mut self.uses[(period % PERIODS) as usize]
    }

    /// Moves the window to the period of a time.
    #[inline]
    fn advance(&mut self, now: Ns) {
        if now > self.period * PERIOD {
            self.advance_to(period_of(now));
        }
    }

    fn advance_to(&mut self, period: u64) {
        let fresh = (self.period + 1).max((period + 1).saturating_sub(PERIODS));
        (fresh..=period).for_each(|period| *self.of(period) = Uses::default());
        self.period = period;
    }
}

fn period_of(time: Ns) -> u64 {
    time.div_ceil(PERIOD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const CPUS: usize = 20;
    const IDS: usize = 12;

    /// The times of the last uses, which a sample searches.
    #[derive(Default)]
    struct Searched {
        busy: [bool; CPUS],
        stopped: [Option<Ns>; CPUS],
        used: [Option<Ns>; IDS],
    }

    impl Searched {
        fn sample(&self, time: Ns) -> (u32, u32) {
            let lately = |at: &Option<Ns>| at.is_some_and(|at| time - at < WINDOW);
            let stopped = self.busy.iter().zip(&self.stopped);
            let stopped = stopped.filter(|(busy, at)| !**busy && lately(at)).count();
            (stopped as u32, self.used.iter().rposition(lately).map_or(0, |id| id as u32 + 1))
        }
    }

    /// Compares samples of random uses with a search, and returns the number of unequal ones and
    /// the number of all. With `shift`, the window gets other times.
    fn compare(seed: u64, shift: Ns) -> (u32, u32) {
        let mut random = Random::new(seed);
        let (mut window, mut searched) = (Window::default(), Searched::default());
        let (mut now, mut next) = (0, PERIOD);
        let (mut unequal, mut all) = (0, 0);
        for step in 0..3000 {
            // Many events are at the borders of periods.
            let pauses = [PERIOD / 7, PERIOD, WINDOW / 3, 3 * WINDOW];
            let before = now;
            now += random.below(pauses[step / 750]);
            if random.below(3) == 0 {
                now = before.max(now / PERIOD * PERIOD + random.below(2));
            }
            if now >= next {
                let time = now / PERIOD * PERIOD;
                next = time + PERIOD;
                all += 1;
                unequal += u32::from(window.sample(time + shift) != searched.sample(time));
            }
            let cpu = random.below(CPUS as u64) as usize;
            match random.below(20) {
                0 => {
                    window.forget_ids();
                    searched.used = Default::default();
                }
                1..8 => {
                    let id = random.below(IDS as u64);
                    window.note_id(now + shift, id as Id);
                    searched.used[id as usize] = Some(now);
                }
                _ if searched.busy[cpu] => {
                    window.note_idle(now + shift);
                    searched.busy[cpu] = false;
                    searched.stopped[cpu] = Some(now);
                }
                _ => {
                    let stopped = searched.stopped[cpu].map(|at| at + shift);
                    window.note_busy(now + shift, stopped);
                    searched.busy[cpu] = true;
                }
            }
        }
        (unequal, all)
    }

    #[test]
    fn samples_equal_those_of_a_search() {
        for seed in 0..20 {
            let (unequal, all) = compare(seed, 0);
            assert_eq!(unequal, 0, "seed {seed}");
            assert!(all > 500, "seed {seed}: {all}");
        }
    }

    /// The control: times that are later by 1 ns fall into other periods, and the comparison
    /// detects it.
    #[test]
    fn samples_of_other_times_differ() {
        assert!((0..20).all(|seed| compare(seed, 1).0 > 0));
    }
}
