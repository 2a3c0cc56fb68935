//! `percid-aborts` runs all suites and prints one summary line for each: `PASS NAME: figures`, or
//! `FAIL NAME: figures` and what is wrong.

use std::process::ExitCode;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() -> ExitCode {
    println!("PASS aborts: skipped, these checks are for x86-64 Linux");
    ExitCode::SUCCESS
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> ExitCode {
    use percid_aborts::{build, campaign::Pairs, subject::Cpus, suite};

    // Built and run before this thread is confined to one CPU.
    let descriptors = suite::descriptors();
    let prepared = build::SUBJECT.make().and_then(|program| Ok((program, Cpus::choose()?)));
    let (program, cpus) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            eprintln!("percid-aborts: {error}");
            return ExitCode::from(2);
        }
    };
    let verdicts = [
        ("instructions", suite::instructions(&program, cpus, Pairs::All)),
        ("controls", suite::controls(&program, cpus, Pairs::All)),
        ("fast-paths", suite::fast_paths(&program)),
        ("descriptors", descriptors),
    ];
    for (name, verdict) in &verdicts {
        match verdict {
            Ok(line) => println!("PASS {name}: {line}"),
            Err(line) => println!("FAIL {name}: {line}"),
        }
    }
    let passed = verdicts.iter().all(|(_, verdict)| verdict.is_ok());
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
