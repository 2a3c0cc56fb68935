//! Checks that counters of every source lose nothing while their threads are moved, preempted and
//! fenced.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use percid::{Counter, Source};
use serde::Serialize;

use crate::bench::pin_this_thread;
use crate::deadline::{Clock, Deadline};
use crate::judged::PARTIAL;
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::progress::Progress;
use percid_command::text_table::{Align, TextTable};

/// Threads for each allowed CPU, so that they preempt each other.
const CROWD: usize = 2;
/// Increments between two moves of a thread.
const STRIDE: u64 = 2000;
/// Time for which one source is under stress before the next one.
const TURN: Duration = Duration::from_millis(500);

/// Losses of each source.
#[derive(Debug, Serialize)]
pub(super) struct StressReport {
    /// `true` if the time was over before every source was tested.
    #[serde(skip)]
    is_partial: bool,
    sources: Vec<OfSource>,
}

#[derive(Debug, Serialize)]
struct OfSource {
    source: String,
    /// `true` if percid selected it in this process.
    chosen: bool,
    added: u64,
    sum: i64,
    lost: i64,
    moves: u64,
    /// Number of times the counter was reset during the test.
    takes: u64,
}

pub(super) fn run(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<StressReport, Failure> {
    let chosen = percid::init().source;
    let mut subjects: Vec<Subject> = Source::ALL
        .iter()
        .filter_map(|&source| Some(Subject::new(source, Counter::with_source(source).ok()?)))
        .collect();
    let deadline = Deadline::new(length, subjects.len());
    let progress = Progress::new("increments under stress", length);
    let turn = TURN.min(length / subjects.len().max(1) as u32);
    while goes_on(&subjects, &deadline) && !interrupt.pressed() {
        for subject in &mut subjects {
            if !interrupt.pressed() && !deadline.is_overdue() {
                subject.turn(cpus, turn);
            }
        }
        let (share, left) = deadline.progress();
        progress.at(share, left);
    }
    let is_partial = has_missing(&subjects) && deadline.is_overdue();
    let sources = subjects.into_iter().map(|subject| subject.report(chosen)).collect();
    Ok(StressReport { is_partial, sources })
}

/// Returns `true` if the test continues. If others use the CPUs, threads may not have begun to
/// count at the end of their time.
fn goes_on<C: Clock>(subjects: &[Subject], deadline: &Deadline<C>) -> bool {
    if has_missing(subjects) { !deadline.is_overdue() } else { !deadline.is_reached() }
}

fn has_missing(subjects: &[Subject]) -> bool {
    subjects.iter().any(|subject| subject.added == 0)
}

struct Subject {
    source: Source,
    counter: Counter,
    added: u64,
    taken: i64,
    takes: u64,
    moves: u64,
}

impl Subject {
    fn new(source: Source, counter: Counter) -> Subject {
        Subject { source, counter, added: 0, taken: 0, takes: 0, moves: 0 }
    }

    /// Tests one source: threads count, and each moves to the next CPU after every stride, while
    /// this thread resets the counter and compacts.
    fn turn(&mut self, cpus: &[u32], length: Duration) {
        let over = AtomicBool::new(false);
        let counter = &self.counter;
        thread::scope(|scope| {
            let over = &over;
            let workers: Vec<_> = (0..CROWD * cpus.len())
                .map(|worker| scope.spawn(move || wander(counter, cpus, worker, over)))
                .collect();
            let turn = Deadline::new(length, 0);
            while !turn.is_reached() {
                self.taken += counter.take();
                self.takes += 1;
                percid::compact_ids();
                thread::sleep(Duration::from_millis(1));
            }
            over.store(true, Relaxed);
            for worker in workers {
                let moves = worker.join().expect("it does not panic");
                self.moves += moves;
                self.added += moves * STRIDE;
            }
        });
    }

    fn report(self, chosen: Source) -> OfSource {
        let sum = self.taken + self.counter.sum();
        OfSource {
            source: self.source.to_string(),
            chosen: self.source == chosen,
            added: self.added,
            sum,
            lost: self.added as i64 - sum,
            moves: self.moves,
            takes: self.takes,
        }
    }
}

/// Counts until `over` is set, and returns the number of strides.
fn wander(counter: &Counter, cpus: &[u32], worker: usize, over: &AtomicBool) -> u64 {
    let mut strides = 0;
    while !over.load(Relaxed) {
        // If a CPU has just been taken offline, the thread continues on its current CPU.
        let _ = pin_this_thread(cpus[(worker + strides as usize) % cpus.len()]);
        (0..STRIDE).for_each(|_| counter.add(1));
        strides += 1;
    }
    strides
}

impl StressReport {
    /// Returns `true` if no usable source lost anything, neither the selected one nor those that
    /// can be requested.
    pub(super) fn as_promised(&self) -> bool {
        self.sources.iter().all(|source| source.lost == 0)
    }

    /// Returns its name, if nothing was added with any source.
    pub(super) fn not_checked(&self) -> Option<&'static str> {
        self.sources.iter().all(|source| source.added == 0).then_some("stress")
    }

    /// Returns its name, if not every source was tested.
    pub(super) fn partial(&self) -> Option<&'static str> {
        self.is_partial.then_some("stress")
    }
}

impl fmt::Display for StressReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Counters whose threads are moved, preempted and fenced, with resets meanwhile"
        )?;
        let columns = ["added", "sum", "LOST", "moves", "resets"];
        let mut table = TextTable::new(
            std::iter::once(("source", Align::Left))
                .chain(columns.map(|heading| (heading, Align::Right))),
        );
        for source in &self.sources {
            let name = format!("{}{}", source.source, if source.chosen { " (chosen)" } else { "" });
            let figures = [
                source.added as i64,
                source.sum,
                source.lost,
                source.moves as i64,
                source.takes as i64,
            ];
            table.row(
                std::iter::once(name).chain(figures.map(|figure| figure.to_string())).collect(),
            );
        }
        write!(f, "{table}")?;
        self.partial().map_or(Ok(()), |_| writeln!(f, "  {PARTIAL}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::tests::Moved;

    #[test]
    fn what_was_lost_is_not_as_promised() {
        let counter = Counter::new();
        counter.add(41);
        let mut subject = Subject::new(Source::Atomic, counter);
        subject.added = 41;
        let report = |subject: Subject| StressReport {
            is_partial: false,
            sources: vec![subject.report(Source::Table)],
        };
        assert!(report(subject).as_promised());
        let mut subject = Subject::new(Source::Atomic, Counter::new());
        subject.added = 42;
        assert!(!report(subject).as_promised());
    }

    #[test]
    fn a_source_that_never_counts_does_not_keep_it_going() {
        let clock = Moved::default();
        let deadline = Deadline::with_clock(&clock, Duration::from_secs(1), 2);
        let subject = |added| {
            let subject = Subject::new(Source::Atomic, Counter::new());
            Subject { added, ..subject }
        };
        let subjects = [subject(1), subject(0)];
        clock.set(Duration::from_secs(3));
        assert!(goes_on(&subjects, &deadline), "one is missing");
        assert!(!goes_on(&subjects[..1], &deadline), "all are there");
        clock.set(Duration::from_secs(4));
        assert!(!goes_on(&subjects, &deadline));
    }
}
