//! Measuring operations against each other: rounds in which every team does each of them once, until the time is up.

use std::iter;
use std::time::{Duration, Instant};

use super::loops::{self, Operation};
use super::samples::Samples;
use super::shuffle::Shuffler;
use super::team::{Batch, Placement, Team};
use percid_command::interrupt::Interrupt;
use percid_command::outcome::Failure;
use percid_command::progress::Progress;

/// The time that a batch costs each thread: short enough to escape most ticks, long against starting it.
const BATCH: Duration = Duration::from_millis(1);
/// How often a batch is repeated because the kernel took a CPU away meanwhile.
const RETRIES: u32 = 5;

/// Operations and the teams that do them.
pub(crate) struct Contest {
    pub(crate) contenders: Vec<Contender>,
    pub(crate) courses: Vec<Course>,
}

/// An operation that takes part.
pub(crate) struct Contender {
    pub(crate) operation: Operation,
    /// How often it was done so far, by all teams together.
    pub(crate) done: u64,
}

/// Where `plain_add`, the measure of the others, stands among the contenders.
pub(crate) const PLAIN: usize = 0;

impl Contest {
    /// Gathers the teams on `cpus` for `plain_add` and the operations that are made for so many workers.
    pub(crate) fn new(
        placements: Vec<Placement>,
        cpus: &[u32],
        operations: impl FnOnce(usize) -> Vec<Operation>,
    ) -> Result<Self, Failure> {
        let workers = placements.iter().map(Placement::threads).max().unwrap_or(0);
        let contenders: Vec<Contender> = iter::once(loops::plain_add(workers))
            .chain(operations(workers))
            .map(|operation| Contender { operation, done: 0 })
            .collect();
        let course = |placement| Course::new(placement, cpus.len(), contenders.len());
        let courses = placements.into_iter().map(course).collect::<Result<_, _>>()?;
        Ok(Contest { contenders, courses })
    }

    /// Measures until `length` is over or Ctrl-C is pressed.
    pub(crate) fn run(&mut self, label: &str, length: Duration, interrupt: &Interrupt) {
        let began = Instant::now();
        let progress = Progress::new(label, length);
        let mut shuffler = Shuffler::new(1);
        let mut order: Vec<usize> = (0..self.courses.len()).collect();
        // A first round always, so that even the shortest length shows every figure.
        while !interrupt.pressed() {
            shuffler.shuffle(&mut order);
            for &course in &order {
                self.courses[course].round(&mut self.contenders, &mut shuffler, interrupt);
            }
            let elapsed = began.elapsed();
            progress.at(elapsed.div_duration_f64(length), length.saturating_sub(elapsed));
            if elapsed >= length {
                break;
            }
        }
    }
}

/// One team and what it measured.
pub(crate) struct Course {
    pub(crate) placement: Placement,
    team: Team,
    cpus: usize,
    lanes: Vec<Lane>,
}

/// One contender's figures on one course.
#[derive(Clone, Default)]
pub(crate) struct Lane {
    /// Operations per thread and batch; 0 until calibrated.
    times: u64,
    /// Nanoseconds per operation of every round; `None` where Ctrl-C came first.
    rounds: Vec<Option<f64>>,
    /// Batches discarded because the kernel took a CPU away.
    pub(crate) discarded: u64,
}

impl Lane {
    /// Nanoseconds per operation.
    pub(crate) fn ns(&self) -> Samples {
        self.rounds.iter().copied().flatten().collect()
    }

    /// How many times the other's figure this one's is, round by round.
    pub(crate) fn ratios_to(&self, other: &Lane) -> Samples {
        let pairs = self.rounds.iter().zip(&other.rounds);
        pairs.filter_map(|(&mine, &others)| Some(mine? / others?)).collect()
    }
}

impl Course {
    fn new(placement: Placement, cpus: usize, contenders: usize) -> Result<Self, Failure> {
        let team = Team::gather(&placement)?;
        Ok(Course { placement, team, cpus, lanes: vec![Lane::default(); contenders] })
    }

    /// The figures of the contender at `position`.
    pub(crate) fn lane(&self, position: usize) -> &Lane {
        &self.lanes[position]
    }

    /// Visits every contender once, in a new order.
    fn round(
        &mut self,
        contenders: &mut [Contender],
        shuffler: &mut Shuffler,
        interrupt: &Interrupt,
    ) {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        shuffler.shuffle(&mut order);
        for lane in order {
            let pressed = interrupt.pressed();
            let ns = (!pressed).then(|| self.sample(lane, &mut contenders[lane]));
            self.lanes[lane].rounds.push(ns);
        }
    }

    /// One batch, repeated while the kernel disturbs it, in nanoseconds per operation.
    fn sample(&mut self, lane: usize, contender: &mut Contender) -> f64 {
        if self.lanes[lane].times == 0 {
            self.lanes[lane].times = self.calibrate(contender);
        }
        let times = self.lanes[lane].times;
        let mut batch = self.batch(contender, times);
        for _ in 0..RETRIES {
            if !batch.preempted || self.is_crowded() {
                break;
            }
            self.lanes[lane].discarded += 1;
            batch = self.batch(contender, times);
        }
        batch.wall.as_nanos() as f64 * self.running() as f64 / (times * self.threads()) as f64
    }

    /// Finds how many operations make a batch of the wanted length. The shorter of two batches counts: a first use
    /// may take long.
    fn calibrate(&mut self, contender: &mut Contender) -> u64 {
        let rounds_of_threads = self.threads() as f64 / self.running() as f64;
        let wanted = BATCH.mul_f64(rounds_of_threads);
        let mut times = 1000;
        loop {
            let wall = self.batch(contender, times).wall.min(self.batch(contender, times).wall);
            if wall >= wanted / 4 {
                return ((times as f64 * wanted.div_duration_f64(wall)) as u64).max(1);
            }
            times *= 4;
        }
    }

    /// Every batch goes through here, so that no operation is left out of what is accounted for.
    fn batch(&mut self, contender: &mut Contender, times: u64) -> Batch {
        contender.done += times * self.threads();
        self.team.run(contender.operation.subject, times)
    }

    fn threads(&self) -> u64 {
        self.placement.threads() as u64
    }

    /// Threads that run at the same time.
    fn running(&self) -> usize {
        self.placement.threads().min(self.cpus)
    }

    /// More threads than CPUs: the kernel has to take CPUs away.
    fn is_crowded(&self) -> bool {
        self.placement.threads() > self.cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_rounds_in_which_both_took_part() {
        let lane = |rounds: &[Option<f64>]| Lane { rounds: rounds.into(), ..Lane::default() };
        let mine = lane(&[Some(4.0), None, Some(9.0), Some(2.0)]);
        let other = lane(&[Some(2.0), Some(1.0), Some(3.0), None]);
        let ratios = mine.ratios_to(&other);
        assert_eq!((ratios.len(), ratios.min(), ratios.mean()), (2, Some(2.0), Some(2.5)));
        assert_eq!(mine.ns().len(), 3);
    }
}
