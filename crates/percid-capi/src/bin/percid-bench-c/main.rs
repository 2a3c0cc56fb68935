//! `percid-bench-c`: costs of the operations that C and C++ have inline, in these languages, in
//! Rust, and as calls, in one run; and of a pool compared to allocators.

mod loops;
mod operations;
mod rounds;
mod sync;
mod table;
mod touches;

use std::process::ExitCode;

use operations::Comparison;
use rounds::{Way, compare};
use table::Table;
use touches::Touches;

const HELP: &str = "\
percid-bench-c: what percid's operations cost in C and C++, in one run

usage: percid-bench-c [options]

The ways of doing one thing take turns on one CPU: Rust; C and C++, inline, with an object of static
storage; C, inline, with a pointer to an object that it knows nothing of (a handle, where there are
handles); and C by calls. What counts is the minimum, since other processes only ever add to it.

The source is the process's: PERCID_SOURCE=table percid-bench-c measures another.

options:
    --rounds N   so many turns for each way, of 2 ms (100)
    --json       one object a line instead of a table
    --check      exit with 1 unless what is inline in C and C++ takes at most 1.15 times as long as
                 in Rust, and a pool's get and put at most 0.7 times mimalloc's malloc and free
    --help       this text

For figures that can be repeated: on a quiet machine, `chrt -f 10 percid-bench-c`.
";

#[derive(Debug)]
struct Options {
    rounds: usize,
    json: bool,
    check: bool,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("percid-bench-c: {wrong}; --help lists the options");
            return ExitCode::from(2);
        }
    };
    let source = percid::init().source;
    stay_on_this_cpu();
    let mut comparisons = operations::all();
    comparisons.extend(sync::all());
    match Touches::new() {
        Ok(touches) => comparisons.push(of_touches(touches)),
        Err(why) => eprintln!("percid-bench-c: touches: {why}"),
    }
    let mut table = Table::new(options.json, source);
    for comparison in &comparisons {
        table.add(comparison, &compare(&comparison.ways, options.rounds));
    }
    let within = table.end();
    if within || !options.check { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn of_touches(touches: &'static Touches) -> Comparison {
    let way = |number| -> Way<'static> {
        let name = Touches::WAYS[number];
        Way { name, repeat: Box::new(move |times| touches.repeat(number, times)) }
    };
    Comparison { operation: "region touch", ways: vec![way(0), way(1)] }
}

/// Parses the command line; `None` for help.
fn options(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options { rounds: 100, json: false, check: false };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(None),
            "--json" => options.json = true,
            "--check" => options.check = true,
            "--rounds" => {
                let number = arguments.next().and_then(|number| number.parse().ok());
                options.rounds = number.filter(|&n| n > 0).ok_or("--rounds needs a number")?;
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(Some(options))
}

/// Confines the process to the current CPU. If that fails, the measurement continues without it.
fn stay_on_this_cpu() {
    // SAFETY: the call takes no argument and accesses no memory of this program.
    let cpu = unsafe { libc::sched_getcpu() };
    let Ok(cpu) = usize::try_from(cpu) else { return };
    // Not `libc::cpu_set_t`, which ends at CPU 1023.
    let mut mask = vec![0_u64; cpu / 64 + 1];
    mask[cpu / 64] |= 1 << (cpu % 64);
    // SAFETY: the kernel reads `size_of_val` bytes, which is the size of the mask.
    unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
}
