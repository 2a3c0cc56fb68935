//! Lets several ways of doing one thing take turns, and takes the time of each.

use std::time::{Duration, Instant};

/// How long one way takes in one round, about.
const TURN: Duration = Duration::from_millis(2);

/// A way of doing something.
pub(crate) struct Way<'o> {
    pub(crate) name: &'static str,
    /// Does it this many times, at least once.
    pub(crate) repeat: Box<dyn Fn(u64) + 'o>,
}

/// What doing it once takes, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) min: f64,
    pub(crate) median: f64,
}

/// Measures all ways: each has a turn in every round, which another way begins each time, so that
/// what the machine does meanwhile meets all of them.
pub(crate) fn compare(ways: &[Way<'_>], rounds: usize) -> Vec<Figures> {
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
    samples.into_iter().map(Figures::of).collect()
}

/// How often a way can be repeated in a turn.
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

impl Figures {
    fn of(mut samples: Vec<f64>) -> Figures {
        samples.sort_by(f64::total_cmp);
        let at = |index: usize| samples.get(index).copied().unwrap_or(f64::NAN);
        Figures { min: at(0), median: at(samples.len() / 2) }
    }
}
