//! Uses every structure with every source there is and checks the sums: the program that is built
//! in every way programs are built.

use std::process::ExitCode;

use percid::Source;

#[path = "../exercise.rs"]
mod exercise;

use exercise::Exercise;

const THREADS: u64 = 4;
const TIMES: u64 = 50_000;

static STATIC: Exercise = Exercise::new();

fn main() -> ExitCode {
    let mut line = format!("source={}", percid::init().source);
    let mut right = is_right("static", &STATIC, &mut line);
    for &source in Source::ALL {
        if let Some(made) = Exercise::with_source(source) {
            right &= is_right(&source.to_string(), &made, &mut line);
        }
    }
    println!("{} {line}", if right { "PASS" } else { "FAIL" });
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn is_right(name: &str, exercise: &Exercise, line: &mut String) -> bool {
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| exercise.work(TIMES));
        }
    });
    let total = exercise.total();
    *line += &format!(" {name}={total:?}");
    total == Ok((THREADS * TIMES) as i64)
}
