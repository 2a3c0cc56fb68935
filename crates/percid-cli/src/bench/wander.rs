//! `percid bench wander`: what it costs threads that keep changing their CPU.

mod march;
mod pipes;
mod report;

use std::time::{Duration, Instant};

use percid::{Counter, Density, Source};

use super::shuffle::Shuffler;
use percid_command::interrupt::Interrupt;
use percid_command::outcome::Failure;
use percid_command::progress::Progress;

pub(crate) use report::WanderReport;

/// Increments after each move.
const INCREMENTS: u64 = 10;
/// A batch's length: long against the steals with which each begins, before the table hands out extra IDs.
const BATCH: Duration = Duration::from_millis(20);

/// What is added to after each move.
pub(crate) struct Contender {
    name: &'static str,
    /// `None` for the bare moves.
    counter: Option<Counter>,
    /// Of the table while this contender's batches run.
    density: Density,
    added: u64,
    march: Lane,
    pipes: Lane,
}

/// One contender's batches on one course.
#[derive(Default)]
struct Lane {
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
    let mut contenders = contenders();
    let mut shuffler = Shuffler::new(1);
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let pipes = pipes::Pipes::open()?;
    while cpus.len() > 1 && !interrupt.pressed() {
        shuffler.shuffle(&mut order);
        for &index in &order {
            let contender = &mut contenders[index];
            contender.on_course(|counter| march::batch(cpus, counter, BATCH), Course::March)?;
            contender.on_course(|counter| pipes.batch(counter, BATCH), Course::Pipes)?;
        }
        let elapsed = began.elapsed();
        progress.at(elapsed.div_duration_f64(length), length.saturating_sub(elapsed));
        if elapsed >= length {
            break;
        }
    }
    percid::set_density(Density::default());
    march::everywhere(cpus)?;
    Ok(WanderReport::of(contenders))
}

enum Course {
    March,
    Pipes,
}

/// What one batch did: how many moves, each with its increments, in which time.
pub(crate) struct Batch {
    moves: u64,
    wall: Duration,
}

impl Contender {
    fn on_course(
        &mut self,
        batch: impl FnOnce(Option<&Counter>) -> Result<Batch, Failure>,
        course: Course,
    ) -> Result<(), Failure> {
        percid::set_density(self.density);
        percid::compact();
        let before = percid::id::activity().unwrap_or_default();
        let Batch { moves, wall } = batch(self.counter.as_ref())?;
        let after = percid::id::activity().unwrap_or_default();
        self.added += moves * INCREMENTS;
        let lane = match course {
            Course::March => &mut self.march,
            Course::Pipes => &mut self.pipes,
        };
        lane.ns.push(wall.as_nanos() as f64 / moves as f64);
        lane.moves += moves;
        lane.seconds += wall.as_secs_f64();
        lane.slow_paths += after.given - before.given;
        lane.steals += after.stolen - before.stolen;
        lane.ids = lane.ids.max(after.held);
        Ok(())
    }

    /// Whether the counter has all that was added to it.
    fn is_exact(&self) -> bool {
        self.counter.as_ref().is_none_or(|counter| counter.sum() == self.added as i64)
    }
}

/// The bare moves, then a counter of each source that there is.
fn contenders() -> Vec<Contender> {
    let sources = [
        ("kernel", Source::Kernel, Density::Relaxed),
        ("table", Source::Table, Density::Relaxed),
        ("table-strict", Source::Table, Density::Strict),
        ("atomic", Source::Atomic, Density::Relaxed),
    ];
    let with_counter = sources.into_iter().filter_map(|(name, source, density)| {
        Some(contender(name, Some(Counter::with_source(source).ok()?), density))
    });
    std::iter::once(contender("none", None, Density::Relaxed)).chain(with_counter).collect()
}

fn contender(name: &'static str, counter: Option<Counter>, density: Density) -> Contender {
    let (march, pipes) = Default::default();
    Contender { name, counter, density, added: 0, march, pipes }
}

/// The increments of one move.
fn add(counter: Option<&Counter>) {
    if let Some(counter) = counter {
        (0..INCREMENTS).for_each(|_| counter.add(1));
    }
}
