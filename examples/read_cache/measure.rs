//! Times and hit rates. The caches are measured in turns.

use std::io::{self, Write};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use cpu_time::ThreadTime;

use crate::Options;
use crate::subject::{self, Subject};
use crate::zipf::{Random, Zipf};

/// Numbers of threads that use a cache at once.
const THREADS: [usize; 3] = [1, 2, 64];

/// The exponents of the distributions.
const SKEWS: [f64; 2] = [0.99, 0.8];

/// The values of one measurement, or of several.
#[derive(Clone, Copy)]
struct Outcome {
    /// CPU time of a lookup: other programs do not lengthen it.
    nanoseconds: f64,
    hit_rate: f64,
}

/// Prints a table for hits alone, and one for each distribution.
pub(crate) fn print(options: &Options, output: &mut impl Write) -> io::Result<()> {
    let Options { keys, capacity, lookups, rounds, seed } = *options;
    let source = percid::init().source;
    writeln!(
        output,
        "Seed {seed}; CPU time: minima of {rounds} rounds of {lookups} lookups; source {source}."
    )?;
    writeln!(output, "x: median of the ratios to percid's time in the same round")?;
    // A shard may get more keys than its part.
    let cached = (capacity / 2).max(1);
    writeln!(output, "\nHits: {cached} keys, Zipf {}, capacity {capacity}", SKEWS[0])?;
    compare(&trace(cached, SKEWS[0], options), options, output)?;
    for skew in SKEWS {
        writeln!(output, "\nHits and insertions: {keys} keys, Zipf {skew}, capacity {capacity}")?;
        compare(&trace(keys, skew, options), options, output)?;
    }
    Ok(())
}

fn trace(keys: usize, skew: f64, options: &Options) -> Vec<u64> {
    let (zipf, mut random) = (Zipf::new(keys, skew), Random::new(options.seed, 0));
    (0..options.lookups).map(|_| zipf.key(&mut random)).collect()
}

fn compare(trace: &[u64], options: &Options, output: &mut impl Write) -> io::Result<()> {
    writeln!(output, "{:<12}{:>8}{:>10}{:>8}{:>10}", "cache", "threads", "ns", "x", "hit rate")?;
    for threads in THREADS {
        let subjects = subject::all(options.capacity);
        // The caches are filled first.
        subjects.iter().for_each(|subject| _ = measure(subject, trace, threads));
        let round = |_| subjects.iter().map(|one| measure(one, trace, threads)).collect();
        let rounds: Vec<Vec<Outcome>> = (0..options.rounds).map(round).collect();
        for (number, subject) in subjects.iter().enumerate() {
            let least = rounds.iter().map(|round| round[number].nanoseconds);
            let least = least.fold(f64::INFINITY, f64::min);
            let ratio =
                median(rounds.iter().map(|round| round[number].nanoseconds / round[0].nanoseconds));
            let hit_rate = median(rounds.iter().map(|round| round[number].hit_rate));
            let name = subject.name;
            writeln!(output, "{name:<12}{threads:>8}{least:>10.1}{ratio:>8.2}{hit_rate:>10.4}")?;
        }
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Lets each of the threads look up a part of the trace.
fn measure(subject: &Subject, trace: &[u64], threads: usize) -> Outcome {
    let parts: Vec<&[u64]> = trace.chunks(trace.len().div_ceil(threads)).collect();
    let barrier = Barrier::new(parts.len());
    let run = |part: &[u64]| {
        barrier.wait();
        let start = ThreadTime::now();
        let hits = subject.look_up(part);
        (start.elapsed(), hits)
    };
    let run = &run;
    let runs: Vec<(Duration, usize)> = thread::scope(|scope| {
        let threads: Vec<_> = parts.iter().map(|part| scope.spawn(move || run(part))).collect();
        threads.into_iter().map(|thread| thread.join().expect("all values are right")).collect()
    });
    let time: Duration = runs.iter().map(|run| run.0).sum();
    let hits: usize = runs.iter().map(|run| run.1).sum();
    let lookups = trace.len() as f64;
    Outcome { nanoseconds: time.as_nanos() as f64 / lookups, hit_rate: hits as f64 / lookups }
}
