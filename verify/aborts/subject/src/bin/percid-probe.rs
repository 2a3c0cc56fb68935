//! Counts with every source there is and checks the sums: the program that is built in every way programs
//! are built.

use std::process::ExitCode;

use percid::{Counter, Source};

static STATIC: Counter = Counter::new();

fn main() -> ExitCode {
    let mut line = format!("source={}", percid::init().source);
    let mut right = count(&STATIC) == 400_000;
    for source in Source::ALL {
        if let Ok(counter) = Counter::with_source(source) {
            let sum = count(&counter);
            right &= sum == 400_000;
            line += &format!(" {source}={sum}");
        }
    }
    println!("{} {line}", if right { "PASS" } else { "FAIL" });
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn count(counter: &Counter) -> i64 {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100_000).for_each(|_| counter.add(1)));
        }
    });
    counter.sum()
}
