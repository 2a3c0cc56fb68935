//! The disturbances on 64-bit Linux.

use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use percid::{Source, testing};

use super::signals::Signals;
use crate::random::Random;
use crate::report::{Counts, count};
use crate::structure::Structure;
use crate::{fork, process};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Visit,
    Move,
    Signal,
    Fence,
    Steal,
    Evict,
    Compact,
}

impl Kind {
    fn all(source: Source) -> &'static [Kind] {
        use Kind::{Compact, Evict, Fence, Move, Signal, Steal, Visit};
        match source {
            Source::Table => &[Visit, Move, Signal, Fence, Steal, Evict, Compact],
            Source::Atomic => &[Visit, Move, Signal],
            _ => &[Visit, Move, Signal, Fence],
        }
    }
}

/// The disturbances of a run.
pub(crate) struct Disturbances<'s> {
    structure: &'s dyn Structure,
    counts: &'s Counts,
    kinds: &'static [Kind],
    cpus: Vec<u32>,
    /// The threads that are disturbed.
    threads: Vec<AtomicI32>,
    signals: Box<Signals<'s>>,
}

impl<'s> Disturbances<'s> {
    /// Creates those of `threads` threads, which must all [`enter`](Disturbances::enter).
    ///
    /// # Errors
    ///
    /// The signal handler cannot be installed.
    pub(crate) fn new(
        structure: &'s dyn Structure,
        source: Source,
        threads: usize,
        counts: &'s Counts,
    ) -> Result<Disturbances<'s>, String> {
        Ok(Disturbances {
            structure,
            counts,
            kinds: Kind::all(source),
            cpus: process::allowed_cpus(),
            threads: (0..threads).map(|_| AtomicI32::new(0)).collect(),
            signals: Signals::new(structure, counts).map_err(|error| error.to_string())?,
        })
    }

    /// Makes the calling thread one that is disturbed.
    pub(crate) fn enter(&self, worker: usize) {
        self.signals.unblock();
        self.threads[worker].store(process::thread(), SeqCst);
    }

    /// Disturbs the operating threads in one way.
    pub(crate) fn disturb(&self, random: &mut Random) {
        let (Some(kind), Some(cpu)) = (choose(self.kinds, random), choose(&self.cpus, random))
        else {
            return;
        };
        let worker = random.below(self.threads.len() as u64) as usize;
        let thread = self.threads[worker].load(SeqCst);
        let counts = self.counts;
        match kind {
            Kind::Visit => {
                count(&counts.visits);
                self.structure.visit();
            }
            Kind::Move => self.move_thread(thread, cpu, random),
            Kind::Signal => self.signals.send(thread),
            Kind::Fence if testing::fence(cpu) => count(&counts.fences),
            Kind::Fence => (),
            Kind::Steal => {
                if let Some(stolen) = testing::steal(cpu) {
                    count(&counts.steals);
                    stolen.put_back(choose(&self.cpus, random));
                }
            }
            Kind::Evict => {
                if let Some(evicted) = testing::evict(cpu) {
                    count(&counts.evictions);
                    evicted.put_back(None);
                }
            }
            Kind::Compact => {
                testing::compact_table();
                count(&counts.compactions);
            }
        }
    }

    /// Moves a thread to a CPU, or lets it run on all: half of the time each, so that threads are
    /// preempted and moved by the kernel too.
    fn move_thread(&self, thread: i32, cpu: u32, random: &mut Random) {
        let one = [cpu];
        let cpus = if random.below(2) == 0 { &self.cpus[..] } else { &one[..] };
        if process::move_to(thread, cpus) {
            count(&self.counts.moves);
        }
    }

    /// Waits until no disturbance is in effect.
    pub(crate) fn settle(&self) {
        self.signals.settle();
    }

    /// Does what needs resting threads: forks.
    ///
    /// # Errors
    ///
    /// A finding of the child.
    pub(crate) fn disturb_at_rest(&self, random: &mut Random) -> Result<(), String> {
        if fork::check(self.structure, random)? {
            count(&self.counts.forks);
        }
        Ok(())
    }
}

fn choose<T: Copy>(choices: &[T], random: &mut Random) -> Option<T> {
    let index = random.below(choices.len().max(1) as u64);
    choices.get(index as usize).copied()
}
