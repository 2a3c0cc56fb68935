//! `percid-aborts` runs all suites, or the selected ones, and prints one summary line for each:
//! `PASS NAME: figures`, or `FAIL NAME: figures` and what is wrong.
//!
//! `percid-aborts PART... [OPERATION...]`: runs these of the parts `instructions`, `controls`,
//! `fast-paths` and `descriptors`. With operations, it tests only the instructions that these
//! reach, with a tenth of the pairs.

use std::process::ExitCode;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() -> ExitCode {
    println!("PASS aborts: skipped, these checks are for x86-64 Linux");
    ExitCode::SUCCESS
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> ExitCode {
    match choice::Choice::of(std::env::args().skip(1)).and_then(|choice| choice.run()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("percid-aborts: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod choice {
    use percid_aborts::suite::Verdict;
    use percid_aborts::{build, campaign::Pairs, subject::Cpus, suite};
    use percid_subject::Operation;

    const PARTS: [&str; 4] = ["instructions", "controls", "fast-paths", "descriptors"];

    /// The parts and operations that the command line selects.
    pub(super) struct Choice {
        parts: Vec<&'static str>,
        operations: Vec<Operation>,
    }

    impl Choice {
        pub(super) fn of(arguments: impl Iterator<Item = String>) -> Result<Choice, String> {
            let mut choice = Choice { parts: Vec::new(), operations: Vec::new() };
            for argument in arguments {
                let part = PARTS.into_iter().find(|part| *part == argument);
                let operation =
                    Operation::PERCID.into_iter().find(|one| format!("{one:?}") == argument);
                choice.parts.extend(part);
                choice.operations.extend(operation);
                if part.is_none() && operation.is_none() {
                    let operations = Operation::PERCID;
                    return Err(format!(
                        "there is no '{argument}'; parts: {PARTS:?}, operations: {operations:?}"
                    ));
                }
            }
            if choice.parts.is_empty() {
                let all = choice.operations.is_empty();
                choice.parts.extend(if all { &PARTS[..] } else { &PARTS[..1] });
            }
            Ok(choice)
        }

        /// Returns `true` if everything passed.
        pub(super) fn run(&self) -> Result<bool, String> {
            // Built and run before this thread is confined to one CPU.
            let descriptors = self.has("descriptors").then(suite::descriptors);
            let program = build::SUBJECT.make()?;
            let fast_paths = self.has("fast-paths").then(|| suite::fast_paths(&program));
            let cpus = Cpus::choose()?;
            let mut passed = true;
            for &part in &self.parts {
                let verdict: Verdict = match part {
                    "instructions" if self.operations.is_empty() => {
                        suite::instructions(&program, cpus, &Operation::PERCID, Pairs::All)
                    }
                    "instructions" => {
                        let pairs = Pairs::Sample { seed: 1, of: 10 };
                        suite::instructions(&program, cpus, &self.operations, pairs)
                    }
                    "controls" => suite::controls(&program, cpus, Pairs::All),
                    _ => continue,
                };
                passed &= say(part, &verdict);
            }
            passed &= fast_paths.is_none_or(|verdict| say("fast-paths", &verdict));
            Ok(passed & descriptors.is_none_or(|verdict| say("descriptors", &verdict)))
        }

        fn has(&self, part: &str) -> bool {
            self.parts.contains(&part)
        }
    }

    fn say(part: &str, verdict: &Verdict) -> bool {
        match verdict {
            Ok(line) => println!("PASS {part}: {line}"),
            Err(line) => println!("FAIL {part}: {line}"),
        }
        verdict.is_ok()
    }
}
