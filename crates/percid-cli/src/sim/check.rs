//! `percid sim check`: a search for schedules in which policies break their contract.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use percid_sim::Ns;
use percid_sim::contract::{self, Finding, Found, Search, Violation};
use percid_sim::policies::PolicySpec;
use percid_sim::run_control::RunControl;
use serde::Serialize;

use crate::cli::ContractArguments;
use percid_command::arguments::chosen;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::watch::watched;

/// Number of schedules between two looks at the clock.
const BATCH: u64 = 256;

/// The document of `percid sim check --json`.
#[derive(Debug, Serialize)]
struct Document {
    seed: u64,
    runs: u64,
    interrupted: bool,
    policies: Vec<Checked>,
}

/// The result of one policy.
#[derive(Debug, Serialize)]
struct Checked {
    policy: &'static str,
    runs: u64,
    finding: Option<Broken>,
}

/// A schedule that breaks the contract.
#[derive(Debug, Serialize)]
struct Broken {
    seed: u64,
    random_steps: u64,
    machine: Shape,
    allowed: u32,
    steps: Vec<Line>,
    violation: Violation,
    message: String,
}

#[derive(Debug, Serialize)]
struct Shape {
    cpus: u32,
    cores: u32,
    l3s: u32,
    sockets: u32,
}

#[derive(Debug, Serialize)]
struct Line {
    at: Ns,
    text: String,
}

pub(crate) fn run(arguments: &ContractArguments, json: bool) -> Result<Exit, Failure> {
    let policies = chosen(&arguments.policy);
    let interrupt = Interrupt::listen()?;
    let total = arguments.runs.saturating_mul(policies.len() as u64);
    let checked = watched("sim check", Some(total), &interrupt, |control| {
        policies.iter().map(|entry| check(entry, arguments, control)).collect()
    });
    let document = Document {
        seed: arguments.seed,
        runs: arguments.runs,
        interrupted: interrupt.pressed(),
        policies: checked,
    };
    if json { output::print_json(&document) } else { output::print_text(&document) }?;
    if document.interrupted && !json {
        complain(format_args!("interrupted: fewer schedules were executed"));
    }
    Ok(document.exit())
}

/// Checks one policy, until the runs or the time are over.
fn check(entry: &PolicySpec, arguments: &ContractArguments, control: &RunControl) -> Checked {
    let began = Instant::now();
    let is_over = || arguments.seconds.is_some_and(|limit| began.elapsed() >= limit);
    let mut runs = 0;
    let mut finding = None;
    while runs < arguments.runs && finding.is_none() && !control.stop.load(Relaxed) && !is_over() {
        let seed = arguments.seed.wrapping_add(runs);
        let search = Search { runs: BATCH.min(arguments.runs - runs), seed };
        let found: Found = contract::check(entry, search, control);
        runs += found.runs;
        finding = found.finding;
    }
    Checked { policy: entry.name, runs, finding: finding.map(Broken::new) }
}

impl Broken {
    fn new(finding: Finding) -> Broken {
        let Finding { seed, random_steps, schedule, violation } = finding;
        let machine = &schedule.topology;
        Broken {
            seed,
            random_steps,
            machine: Shape {
                cpus: machine.cpus(),
                cores: machine.cores(),
                l3s: machine.l3s(),
                sockets: machine.sockets(),
            },
            allowed: schedule.allowed,
            steps: schedule.lines().into_iter().map(|(at, text)| Line { at, text }).collect(),
            message: violation.to_string(),
            violation,
        }
    }
}

impl Document {
    fn exit(&self) -> Exit {
        if self.policies.iter().any(|checked| checked.finding.is_some()) {
            Exit::Violated
        } else if self.interrupted {
            Exit::Interrupted
        } else {
            Exit::Complete
        }
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Checked { policy, runs, finding } in &self.policies {
            let Some(broken) = finding else {
                let (first, last) = (self.seed, self.seed.wrapping_add(runs.saturating_sub(1)));
                writeln!(f, "{policy}: kept in {runs} random schedules, seeds {first} to {last}")?;
                continue;
            };
            broken.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken { seed, random_steps, machine, allowed, steps, violation, message } = self;
        let Shape { cpus, cores, l3s, sockets } = machine;
        writeln!(
            f,
            "{}: broken with seed {seed}, in {} steps of {random_steps}",
            violation.policy,
            steps.len()
        )?;
        writeln!(f, "  CPUs {cpus}, cores {cores}, L3 caches {l3s}, sockets {sockets}")?;
        writeln!(f, "  thread 0 may use the first {allowed}")?;
        for Line { at, text } in steps {
            writeln!(f, "  {at:>12} ns  {text}")?;
        }
        writeln!(f, "  {message}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percid_command::arguments::{PolicyChoice, policy};
    use percid_sim::policies::{Id, Impossible, Policy, Process, Thread, Work};
    use percid_sim::topology::Cpu;

    /// Gives two CPUs one ID.
    struct Halves;

    impl Policy for Halves {
        fn exec(&mut self, _: &Process<'_>, _: Cpu, _: Thread) -> Result<(), Impossible> {
            Ok(())
        }

        fn id(&mut self, _: &Process<'_>, cpu: Cpu, _: Thread) -> Result<Id, Impossible> {
            Ok(cpu / 2)
        }

        fn work(&self) -> Work {
            Work::default()
        }
    }

    static HALVES: PolicySpec =
        PolicySpec { name: "halves", about: "", create: &|_| Box::new(Halves) };

    fn document(policy: PolicyChoice, runs: u64) -> Document {
        let arguments = ContractArguments { policy: vec![policy], runs, seconds: None, seed: 1 };
        let checked = chosen(&arguments.policy)
            .iter()
            .map(|entry| check(entry, &arguments, &RunControl::default()))
            .collect();
        Document { seed: 1, runs, interrupted: false, policies: checked }
    }

    #[test]
    fn a_violation_is_printed_step_by_step_and_changes_the_exit_status() {
        let document = document(PolicyChoice::One(&HALVES), 600);
        assert_eq!(document.exit(), Exit::Violated);
        let text = document.to_string();
        assert!(text.contains("in 5 steps of"), "{text}");
        assert!(text.contains("0 ns  CPU 1 switches to thread 1\n"), "{text}");
        assert!(text.ends_with("or a fence of CPU 0\n"), "{text}");
        let json = serde_json::to_value(&document).expect("a document");
        let finding = &json["policies"][0]["finding"];
        assert_eq!(finding["violation"]["breach"]["rule"], "unique");
        assert_eq!(finding["machine"]["cpus"], 2);
    }

    #[test]
    fn a_policy_that_keeps_its_contract_is_reported_with_its_seeds() {
        let document = document(policy("percid-table").expect("a policy"), 600);
        assert_eq!(document.exit(), Exit::Complete);
        let expected = "percid-table: kept in 600 random schedules, seeds 1 to 600\n";
        assert_eq!(document.to_string(), expected);
    }
}
