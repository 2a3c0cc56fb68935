//! `percid bench wander`: what it costs threads that keep changing their CPU.

mod forced;
mod pipes;
mod report;

use std::time::{Duration, Instant};

use percid::{Counter, Density, Source};

use super::shuffle::Shuffler;
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::progress::Progress;

pub(crate) use report::WanderReport;

/// Increments after each move.
const INCREMENTS: u64 = 10;
/// A batch's length: long against the steals with which each begins, before the table hands out extra IDs.
const BATCH: Duration = Duration::from_millis(20);

/// What is added to after each move.
pub(crate) struct Subject {
    name: &'static str,
    /// `None` for the bare moves.
    counter: Option<Counter>,
    /// Of the table while this subject's batches run.
    density: Density,
    added: u64,
    forced: Column,
    pipe: Column,
}

/// One subject's batches of one kind of movement.
#[derive(Default)]
struct Column {
    /// Nanoseconds per move, one per round.
    ns: Vec<f64>,
    moves: u64,
    seconds: f64,
    /// Slow paths of the table, and steals among them.
    slow_paths: u64,
    steals: u64,
    /// The most IDs in use at the end of a batch.
    ids: u32,
}

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<WanderReport, Failure> {
    let began = Instant::now();
    let progress = Progress::new("bench wander", length);
    let mut subjects = subjects();
    let mut shuffler = Shuffler::new(1);
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    let pipes = pipes::Pipes::open()?;
    while cpus.len() > 1 && !interrupt.pressed() {
        shuffler.shuffle(&mut order);
        for &index in &order {
            let subject = &mut subjects[index];
            subject.measure(|counter| forced::batch(cpus, counter, BATCH), Movement::Forced)?;
            subject.measure(|counter| pipes.batch(counter, BATCH), Movement::Pipe)?;
        }
        let elapsed = began.elapsed();
        progress.at(elapsed.div_duration_f64(length), length.saturating_sub(elapsed));
        if elapsed >= length {
            break;
        }
    }
    percid::set_density(Density::default());
    forced::everywhere(cpus)?;
    Ok(WanderReport::of(subjects))
}

enum Movement {
    Forced,
    Pipe,
}

/// What one batch did: how many moves, each with its increments, in which time.
pub(crate) struct Batch {
    moves: u64,
    wall: Duration,
}

impl Subject {
    fn measure(
        &mut self,
        batch: impl FnOnce(Option<&Counter>) -> Result<Batch, Failure>,
        movement: Movement,
    ) -> Result<(), Failure> {
        percid::set_density(self.density);
        percid::compact();
        let before = percid::id::activity().unwrap_or_default();
        let Batch { moves, wall } = batch(self.counter.as_ref())?;
        let after = percid::id::activity().unwrap_or_default();
        self.added += moves * INCREMENTS;
        let column = match movement {
            Movement::Forced => &mut self.forced,
            Movement::Pipe => &mut self.pipe,
        };
        column.ns.push(wall.as_nanos() as f64 / moves as f64);
        column.moves += moves;
        column.seconds += wall.as_secs_f64();
        column.slow_paths += after.given - before.given;
        column.steals += after.stolen - before.stolen;
        column.ids = column.ids.max(after.held);
        Ok(())
    }

    /// Whether the counter has all that was added to it.
    fn is_exact(&self) -> bool {
        self.counter.as_ref().is_none_or(|counter| counter.sum() == self.added as i64)
    }
}

/// The bare moves, then a counter of each source that there is.
fn subjects() -> Vec<Subject> {
    let sources = [
        ("kernel", Source::Kernel, Density::Relaxed),
        ("table", Source::Table, Density::Relaxed),
        ("table-strict", Source::Table, Density::Strict),
        ("atomic", Source::Atomic, Density::Relaxed),
    ];
    let with_counter = sources.into_iter().filter_map(|(name, source, density)| {
        Some(subject(name, Some(Counter::with_source(source).ok()?), density))
    });
    std::iter::once(subject("none", None, Density::Relaxed)).chain(with_counter).collect()
}

fn subject(name: &'static str, counter: Option<Counter>, density: Density) -> Subject {
    let (forced, pipe) = Default::default();
    Subject { name, counter, density, added: 0, forced, pipe }
}

/// The increments of one move.
fn add(counter: Option<&Counter>) {
    if let Some(counter) = counter {
        (0..INCREMENTS).for_each(|_| counter.add(1));
    }
}
