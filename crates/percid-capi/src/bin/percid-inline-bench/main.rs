//! `percid-inline-bench`: what an increment costs in C, and in Rust, in one run; and a reported
//! access.
//!
//! The ways take turns in rounds of a few milliseconds on one CPU, each round in another order, so
//! that what the machine does meanwhile meets all of them.

mod loops;
mod touches;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use loops::Way;
use percid::{Counter, Source};
use touches::Touches;

/// How long one way takes in one round, about.
const TURN: Duration = Duration::from_millis(4);
const ROUNDS: usize = 250;

/// An increment in C may take this many times as long as one in Rust, by the minima: other processes,
/// and the processor's store forwarding, which fails by chance, only ever add to a round.
const LIMIT: f64 = 1.3;

fn main() -> ExitCode {
    percid::init();
    stay_on_this_cpu();
    println!("one increment or touch, ns, {ROUNDS} rounds of {} ms for each way", TURN.as_millis());
    println!(
        "{:<8} {:<14} {:>7} {:>7} {:>7} {:>7}",
        "source", "way", "min", "x Rust", "median", "x Rust"
    );
    let mut within = true;
    for source in [Source::Kernel, Source::Table, Source::Atomic] {
        match Counter::with_source(source) {
            Ok(counter) => within &= measure(source, &counter),
            Err(why) => println!("{source:<8} {why}"),
        }
    }
    within &= touches();
    println!(
        "C inline within {LIMIT} times Rust, by the minima of the sources with sections: {within}"
    );
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures and prints; returns whether C keeps to the limit and the sum is right.
fn measure(source: Source, counter: &Counter) -> bool {
    let repeat = |way: usize, times| Way::ALL[way].repeat(counter, times);
    let times = calibrate(repeat);
    let before = counter.sum();
    let figures: [Figures; Way::ALL.len()] = compare(times, repeat);
    let added = (ROUNDS * Way::ALL.len()) as i64 * times as i64;
    if counter.sum() - before != added {
        println!("{source}: THE SUM IS WRONG");
        return false;
    }
    print(source, Way::ALL.map(Way::name), figures);
    let [rust, inline, _] = figures;
    source == Source::Atomic || inline.min <= LIMIT * rust.min
}

/// Measures and prints what a touch costs; returns whether it could be measured.
fn touches() -> bool {
    match Touches::new() {
        Ok(touches) => {
            let repeat = |way, times| touches.repeat(way, times);
            print("touch", Touches::WAYS, compare(calibrate(repeat), repeat));
            true
        }
        Err(why) => {
            println!("touch: {why}");
            false
        }
    }
}

/// Lets the ways take turns, each of which repeats what is measured this many times.
fn compare<const WAYS: usize>(times: u64, repeat: impl Fn(usize, u64)) -> [Figures; WAYS] {
    let mut samples = [const { Vec::new() }; WAYS];
    for round in 0..ROUNDS {
        for turn in 0..WAYS {
            let way = (round + turn) % WAYS;
            let start = Instant::now();
            repeat(way, times);
            samples[way].push(start.elapsed().as_nanos() as f64 / times as f64);
        }
    }
    samples.map(Figures::of)
}

/// A line for each way, the first of which is Rust's.
fn print<const WAYS: usize>(
    what: impl std::fmt::Display,
    names: [&str; WAYS],
    figures: [Figures; WAYS],
) {
    let rust = figures[0];
    for (name, Figures { min, median }) in names.into_iter().zip(figures) {
        let (of_min, of_median) = (min / rust.min, median / rust.median);
        println!("{what:<8} {name:<14} {min:>7.3} {of_min:>7.2} {median:>7.3} {of_median:>7.2}");
    }
}

/// How often the first way can be repeated in a turn.
fn calibrate(repeat: impl Fn(usize, u64)) -> u64 {
    let mut times = 1000;
    loop {
        let start = Instant::now();
        repeat(0, times);
        let taken = start.elapsed();
        if taken * 2 >= TURN {
            let per_turn = TURN.as_nanos() * u128::from(times) / taken.as_nanos();
            return u64::try_from(per_turn).unwrap_or(times);
        }
        times *= 2;
    }
}

#[derive(Debug, Clone, Copy)]
struct Figures {
    min: f64,
    median: f64,
}

impl Figures {
    fn of(mut samples: Vec<f64>) -> Figures {
        samples.sort_by(f64::total_cmp);
        Figures { min: samples[0], median: samples[samples.len() / 2] }
    }
}

/// Confines the process to the CPU it runs on. If that fails it is measured all the same.
fn stay_on_this_cpu() {
    // SAFETY: takes nothing and touches no memory of ours.
    let cpu = unsafe { libc::sched_getcpu() };
    let Ok(cpu) = usize::try_from(cpu) else { return };
    // Not `libc::cpu_set_t`, which ends at CPU 1023.
    let mut mask = vec![0_u64; cpu / 64 + 1];
    mask[cpu / 64] |= 1 << (cpu % 64);
    // SAFETY: the kernel reads as many bytes as there are.
    unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
}
