//! Measures several ways of one operation in turns.

use std::time::{Duration, Instant};

/// Approximate duration of one way in one round.
const TURN: Duration = Duration::from_millis(2);

/// A way of executing an operation.
pub(crate) struct Way<'o> {
    pub(crate) name: &'static str,
    /// Executes the operation this many times, at least once.
    pub(crate) repeat: Box<dyn Fn(u64) + 'o>,
}

/// Times of one execution, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundTimes {
    pub(crate) min: f64,
    pub(crate) median: f64,
}

/// Measures all ways. Each has a turn in every round, and another way begins each round, so that
/// disturbances of the machine affect all of them.
pub(crate) fn compare(ways: &[Way<'_>], rounds: usize) -> Vec<RoundTimes> {
    let times: Vec<u64> = ways.iter().map(calibrate).collect();
    let mut samples = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        for turn in 0..ways.len() {
            let way = (round + turn) % ways.len();
            let start = Instant::now();
            (ways[way].repeat)(times[way]);
            samples[way].push(start.elapsed().as_nanos() as f64 / times[way] as f64);
        }
    }
    samples.into_iter().map(RoundTimes::from_samples).collect()
}

/// Returns the number of executions of a way in a turn.
fn calibrate(way: &Way<'_>) -> u64 {
    let mut times = 1000;
    loop {
        let start = Instant::now();
        (way.repeat)(times);
        let taken = start.elapsed();
        if taken * 2 >= TURN {
            let per_turn = TURN.as_nanos() * u128::from(times) / taken.as_nanos();
            return u64::try_from(per_turn).unwrap_or(times).max(1);
        }
        times *= 2;
    }
}

impl RoundTimes {
    fn from_samples(mut samples: Vec<f64>) -> RoundTimes {
        samples.sort_by(f64::total_cmp);
        let at = |index: usize| samples.get(index).copied().unwrap_or(f64::NAN);
        RoundTimes { min: at(0), median: at(samples.len() / 2) }
    }
}
