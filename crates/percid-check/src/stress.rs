//! The second part: many threads, disturbed at random.

use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use percid::Source;

use crate::disturbance::Disturbances;
use crate::failure::Finding;
use crate::guarded::guarded;
use crate::plan::Plan;
use crate::random::Random;
use crate::report::Counts;
use crate::structure::Structure;

/// Threads that disturb the others: two, so that they also disturb each other.
const DISTURBING: usize = 2;

/// Disturbances by each of them in a round.
const DISTURBANCES: usize = 100;

/// Operations by each thread in a round: at least the first number, and then until the disturbances
/// are done, at most the second one.
const FEWEST: u64 = 1000;
const MOST: u64 = 1_000_000;

/// Checks a structure in rounds: after each all threads rest, and the structure is audited.
pub(crate) fn check(
    structure: &dyn Structure,
    source: Source,
    plan: Plan,
    counts: &Counts,
) -> Result<(), Finding> {
    let threads = plan.threads.max(1);
    let disturbances = Disturbances::new(structure, source, threads, counts)
        .map_err(|message| Finding { place: "before the first round".to_owned(), message })?;
    let run = Run {
        structure,
        plan,
        counts,
        disturbances,
        barrier: Barrier::new(threads + DISTURBING + 1),
        disturbing: AtomicUsize::new(0),
        end: AtomicBool::new(false),
        panic: Mutex::new(None),
    };
    thread::scope(|scope| {
        for number in 0..threads {
            let run = &run;
            scope.spawn(move || run.rounds(number, |random| run.operate(random), Some(number)));
        }
        for number in threads..threads + DISTURBING {
            let run = &run;
            scope.spawn(move || run.rounds(number, |random| run.disturb(random), None));
        }
        run.lead()
    })
}

struct Run<'s> {
    structure: &'s dyn Structure,
    plan: Plan,
    counts: &'s Counts,
    disturbances: Disturbances<'s>,
    barrier: Barrier,
    /// Threads that still disturb in this round.
    disturbing: AtomicUsize,
    end: AtomicBool,
    panic: Mutex<Option<String>>,
}

impl Run<'_> {
    /// Leads all rounds: starts each, and audits after it.
    fn lead(&self) -> Result<(), Finding> {
        let mut random = Random::of_part(self.plan.seed, 0);
        let mut result = Ok(());
        for round in 0..self.plan.rounds {
            self.disturbing.store(DISTURBING, SeqCst);
            self.barrier.wait();
            self.barrier.wait();
            result = self.audit(&mut random).map_err(|message| Finding {
                place: format!("after round {} of {}", round + 1, self.plan.rounds),
                message,
            });
            if result.is_err() {
                break;
            }
        }
        self.end.store(true, SeqCst);
        self.barrier.wait();
        result
    }

    fn audit(&self, random: &mut Random) -> Result<(), String> {
        if let Some(text) = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(text);
        }
        guarded(|| self.structure.audit())??;
        self.disturbances.disturb_at_rest(random)
    }

    /// Does the work of a thread in all rounds.
    fn rounds(&self, number: usize, work: impl Fn(&mut Random), worker: Option<usize>) {
        if let Some(worker) = worker {
            self.disturbances.enter(worker);
        }
        let mut random = Random::of_part(self.plan.seed, 1 + number as u64);
        loop {
            self.barrier.wait();
            if self.end.load(SeqCst) {
                return;
            }
            if let Err(text) = guarded(|| work(&mut random)) {
                *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            }
            if worker.is_none() {
                self.disturbing.fetch_sub(1, SeqCst);
                self.disturbances.settle();
            }
            self.barrier.wait();
        }
    }

    fn operate(&self, random: &mut Random) {
        let mut done = 0;
        while done < FEWEST || (done < MOST && self.disturbing.load(SeqCst) > 0) {
            self.structure.operate(random);
            done += 1;
        }
        self.counts.operations.fetch_add(done, Relaxed);
    }

    fn disturb(&self, random: &mut Random) {
        (0..DISTURBANCES).for_each(|_| self.disturbances.disturb(random));
    }
}
