//! The counters that threads add to after each move, and the measured times.

use std::time::Duration;

use percid::{Counter, IdLimit, Source};

use percid_command::exit::Failure;

/// Increments after each move.
pub(super) const INCREMENTS: u64 = 10;
/// A counter for the increments after each move, or none.
pub(super) struct Subject {
    pub(super) name: &'static str,
    /// `None` for the moves without increments.
    pub(super) counter: Option<Counter>,
    /// IdLimit of the table while this subject's batches run.
    pub(super) density: IdLimit,
    added: u64,
    pub(super) forced: Column,
    pub(super) pipe: Column,
}

/// One subject's batches of one kind of movement.
#[derive(Default)]
pub(super) struct Column {
    /// Nanoseconds per move, one per round.
    pub(super) ns: Vec<f64>,
    pub(super) moves: u64,
    pub(super) seconds: f64,
    /// Slow paths of the table, and the steals among them.
    pub(super) slow_paths: u64,
    pub(super) steals: u64,
    /// Maximum number of IDs in use at the end of a batch.
    pub(super) ids: u32,
}

pub(super) enum Movement {
    Forced,
    Pipe,
}

/// Result of one batch: the moves, each with its increments, and the time.
pub(super) struct Batch {
    pub(super) moves: u64,
    pub(super) wall: Duration,
}

impl Subject {
    pub(super) fn measure(
        &mut self,
        batch: impl FnOnce(Option<&Counter>) -> Result<Batch, Failure>,
        movement: Movement,
    ) -> Result<(), Failure> {
        percid::set_id_limit(self.density);
        percid::compact_ids();
        let before = percid::id::table_stats().unwrap_or_default();
        let Batch { moves, wall } = batch(self.counter.as_ref())?;
        let after = percid::id::table_stats().unwrap_or_default();
        self.added += moves * INCREMENTS;
        let column = match movement {
            Movement::Forced => &mut self.forced,
            Movement::Pipe => &mut self.pipe,
        };
        column.ns.push(wall.as_nanos() as f64 / moves as f64);
        column.moves += moves;
        column.seconds += wall.as_secs_f64();
        column.slow_paths += after.assigned - before.assigned;
        column.steals += after.stolen - before.stolen;
        column.ids = column.ids.max(after.ids_held);
        Ok(())
    }

    /// Returns `true` if the counter has all that was added to it.
    pub(super) fn is_exact(&self) -> bool {
        self.counter.as_ref().is_none_or(|counter| counter.sum() == self.added as i64)
    }
}

/// Returns the moves without increments, then a counter of each available source.
pub(super) fn subjects() -> Vec<Subject> {
    let sources = [
        ("kernel", Source::Kernel, IdLimit::Adaptive),
        ("table", Source::Table, IdLimit::Adaptive),
        ("table-strict", Source::Table, IdLimit::Strict),
        ("atomic", Source::Atomic, IdLimit::Adaptive),
    ];
    let with_counter = sources.into_iter().filter_map(|(name, source, density)| {
        Some(subject(name, Some(Counter::with_source(source).ok()?), density))
    });
    std::iter::once(subject("none", None, IdLimit::Adaptive)).chain(with_counter).collect()
}

fn subject(name: &'static str, counter: Option<Counter>, density: IdLimit) -> Subject {
    let (forced, pipe) = Default::default();
    Subject { name, counter, density, added: 0, forced, pipe }
}

/// Adds the increments of one move.
pub(super) fn add(counter: Option<&Counter>) {
    if let Some(counter) = counter {
        (0..INCREMENTS).for_each(|_| counter.add(1));
    }
}
