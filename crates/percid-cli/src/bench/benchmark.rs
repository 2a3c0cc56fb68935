//! Measuring operations against each other: rounds in which every team runs each of them once,
//! until the time is up.

use std::iter;
use std::time::Duration;

use super::loops::{self, Operation};
use super::samples::Samples;
use super::shuffle::Shuffler;
use super::team::{Batch, Placement, Team};
use crate::busy::Watch;
use crate::deadline::Deadline;
use crate::judged::Circumstances;
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::progress::Progress;

/// Duration of a batch in each thread: short enough to escape most ticks, long compared to starting
/// it.
const BATCH: Duration = Duration::from_millis(1);
/// Number of times that a batch is repeated because a thread was preempted during it.
const RETRIES: u32 = 5;

/// Operations and the teams that run them.
pub(crate) struct Benchmark {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) all_series: Vec<Series>,
}

/// An operation of the benchmark.
pub(crate) struct Subject {
    pub(crate) operation: Operation,
    /// Number of times it was executed so far, by all teams together.
    pub(crate) done: u64,
}

/// Position of `plain_add`, the reference of the other operations, among the subjects.
pub(crate) const PLAIN: usize = 0;

impl Benchmark {
    /// Creates the teams on `cpus` for `plain_add` and the operations, which were created for as
    /// many workers as the largest team has.
    pub(crate) fn new(
        placements: Vec<Placement>,
        cpus: &[u32],
        operations: impl FnOnce(usize) -> Vec<Operation>,
    ) -> Result<Self, Failure> {
        let workers = placements.iter().map(Placement::threads).max().unwrap_or(0);
        let subjects: Vec<Subject> = iter::once(loops::plain_add(workers))
            .chain(operations(workers))
            .map(|operation| Subject { operation, done: 0 })
            .collect();
        let series = |placement| Series::new(placement, cpus.len(), subjects.len());
        let all_series = placements.into_iter().map(series).collect::<Result<_, _>>()?;
        Ok(Benchmark { subjects, all_series })
    }

    /// Measures until `length` is over or Ctrl-C is pressed.
    pub(crate) fn run(
        &mut self,
        label: &str,
        length: Duration,
        interrupt: &Interrupt,
    ) -> Circumstances {
        let mut attention = Attention {
            interrupt,
            deadline: Deadline::new(length, self.rows()),
            watch: Watch::start(),
            was_overdue: false,
        };
        let progress = Progress::new(label, length);
        let mut shuffler = Shuffler::new(1);
        let mut order: Vec<usize> = (0..self.all_series.len()).collect();
        // Always run a first round, so that even the shortest length shows every value.
        while !attention.is_over() {
            shuffler.shuffle(&mut order);
            for &series in &order {
                self.all_series[series].round(&mut self.subjects, &mut shuffler, &mut attention);
            }
            let (share, left) = attention.deadline.progress();
            progress.at(share, left);
            if attention.deadline.is_reached() {
                break;
            }
        }
        Circumstances { noise: attention.watch.noise(), partial: attention.was_overdue }
    }

    /// Returns the number of values.
    fn rows(&self) -> usize {
        self.subjects.len() * self.all_series.len()
    }
}

/// The state of the machine, checked between two batches.
struct Attention<'a> {
    interrupt: &'a Interrupt,
    deadline: Deadline,
    watch: Watch,
    was_overdue: bool,
}

impl Attention<'_> {
    /// Returns `true` if no further batch may begin.
    fn is_over(&mut self) -> bool {
        self.was_overdue |= self.deadline.is_overdue();
        self.was_overdue || self.interrupt.pressed()
    }
}

/// One team and its measurements.
pub(crate) struct Series {
    pub(crate) placement: Placement,
    team: Team,
    cpus: usize,
    columns: Vec<Column>,
}

/// One subject's values in one series.
#[derive(Clone, Default)]
pub(crate) struct Column {
    /// Operations per thread and batch; 0 until calibrated.
    times: u64,
    /// Nanoseconds per operation of every round; `None` if Ctrl-C, or the end, came first.
    rounds: Vec<Option<f64>>,
    /// Number of batches discarded because a thread was preempted.
    pub(crate) discarded: u64,
}

impl Column {
    /// Returns nanoseconds per operation.
    pub(crate) fn ns(&self) -> Samples {
        self.rounds.iter().copied().flatten().collect()
    }

    /// Returns the ratio of this column's value to the other's, round by round.
    pub(crate) fn ratios_to(&self, other: &Column) -> Samples {
        let pairs = self.rounds.iter().zip(&other.rounds);
        pairs.filter_map(|(&mine, &others)| Some(mine? / others?)).collect()
    }
}

impl Series {
    fn new(placement: Placement, cpus: usize, subjects: usize) -> Result<Self, Failure> {
        let team = Team::gather(&placement)?;
        Ok(Series { placement, team, cpus, columns: vec![Column::default(); subjects] })
    }

    /// Returns the values of the subject at `position`.
    pub(crate) fn column(&self, position: usize) -> &Column {
        &self.columns[position]
    }

    /// Runs every subject once, in a new order.
    fn round(
        &mut self,
        subjects: &mut [Subject],
        shuffler: &mut Shuffler,
        attention: &mut Attention<'_>,
    ) {
        let mut order: Vec<usize> = (0..subjects.len()).collect();
        shuffler.shuffle(&mut order);
        for column in order {
            attention.watch.look(0);
            let ns = (!attention.is_over()).then(|| self.sample(column, &mut subjects[column]));
            self.columns[column].rounds.push(ns);
        }
    }

    /// Runs one batch, and repeats it if a thread was preempted. Returns nanoseconds per operation.
    fn sample(&mut self, column: usize, subject: &mut Subject) -> f64 {
        if self.columns[column].times == 0 {
            self.columns[column].times = self.calibrate(subject);
        }
        let times = self.columns[column].times;
        let mut batch = self.batch(subject, times);
        for _ in 0..RETRIES {
            if !batch.preempted || self.is_crowded() {
                break;
            }
            self.columns[column].discarded += 1;
            batch = self.batch(subject, times);
        }
        batch.wall.as_nanos() as f64 * self.running() as f64 / (times * self.threads()) as f64
    }

    /// Determines the number of operations in a batch of the wanted length. The shorter of two
    /// batches counts: a first use may take long.
    fn calibrate(&mut self, subject: &mut Subject) -> u64 {
        let rounds_of_threads = self.threads() as f64 / self.running() as f64;
        let wanted = BATCH.mul_f64(rounds_of_threads);
        let mut times = 1000;
        loop {
            let wall = self.batch(subject, times).wall.min(self.batch(subject, times).wall);
            if wall >= wanted / 4 {
                return ((times as f64 * wanted.div_duration_f64(wall)) as u64).max(1);
            }
            times *= 4;
        }
    }

    /// Runs a batch. Every batch is run by this function, so that every operation is accounted for.
    fn batch(&mut self, subject: &mut Subject, times: u64) -> Batch {
        subject.done += times * self.threads();
        self.team.run(subject.operation.measured, times)
    }

    fn threads(&self) -> u64 {
        self.placement.threads() as u64
    }

    /// Returns the number of threads that run at the same time.
    fn running(&self) -> usize {
        self.placement.threads().min(self.cpus)
    }

    /// Returns `true` if there are more threads than CPUs, so that the kernel must preempt threads.
    fn is_crowded(&self) -> bool {
        self.placement.threads() > self.cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_rounds_in_which_both_took_part() {
        let column = |rounds: &[Option<f64>]| Column { rounds: rounds.into(), ..Column::default() };
        let mine = column(&[Some(4.0), None, Some(9.0), Some(2.0)]);
        let other = column(&[Some(2.0), Some(1.0), Some(3.0), None]);
        let ratios = mine.ratios_to(&other);
        assert_eq!((ratios.len(), ratios.min(), ratios.mean()), (2, Some(2.0), Some(2.5)));
        assert_eq!(mine.ns().len(), 3);
    }
}
