//! The steps of the workers, decided before they start.

use crate::random::Random;

/// The step of one worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The worker.
    pub(super) worker: usize,
    /// Time that it stays on its CPU, in milliseconds.
    pub(super) hold_ms: u64,
    /// Time that it sleeps before it passes the turn on, in milliseconds.
    pub(super) pause_ms: u64,
    /// `true` if it passes the turn on at the beginning, so that the next worker runs beside it.
    pub(super) overlaps: bool,
}

/// Long enough for two ticks of 4 ms, the usual length, and for one of 10 ms.
pub(super) const HOLD_MS: u64 = 12;

/// Long enough for all to begin before the first ends, if CPUs are real.
const MEETING_MS: u64 = 4;

/// Longer than an ID stays without being used, so that in the intermittent pattern every turn finds
/// it gone.
const LONG_PAUSE_MS: u64 = 150;

/// Returns a meeting, in which all workers hold an ID at once.
pub(super) fn meeting(workers: &[usize]) -> Vec<Step> {
    let last = workers.len() - 1;
    let step = |(index, &worker)| Step {
        worker,
        hold_ms: MEETING_MS,
        pause_ms: 1,
        overlaps: index < last,
    };
    workers.iter().enumerate().map(step).collect()
}

/// Returns the intermittent pattern: one after the other, in an order that is shuffled once.
pub(super) fn intermittent(workers: &[usize], rounds: usize, random: &mut Random) -> Vec<Step> {
    let mut order = workers.to_vec();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
    let step =
        |&worker| Step { worker, hold_ms: HOLD_MS, pause_ms: LONG_PAUSE_MS, overlaps: false };
    (0..rounds).flat_map(|_| order.iter().map(step)).collect()
}

/// Returns random workers, pauses and times on the CPU, some concurrent.
pub(super) fn random(workers: &[usize], steps: usize, random: &mut Random) -> Vec<Step> {
    let mut step = |_| Step {
        worker: workers[random.below(workers.len())],
        hold_ms: if random.below(2) == 0 { HOLD_MS } else { 0 },
        pause_ms: 1 + random.below(40) as u64,
        overlaps: random.below(4) == 0,
    };
    (0..steps).map(&mut step).collect()
}
