//! Descriptions of workloads. Every accepted one must make a program for a machine, and the program
//! must run under a policy.
#![no_main]

use std::sync::atomic::AtomicBool;

use libfuzzer_sys::{Corpus, fuzz_target};
use percid_fuzz::machines;
use percid_sim::engine::Simulation;
use percid_sim::policies;
use percid_sim::workload::Workload;

/// Maximum number of simulated threads: a file may request a million.
const SIMULATED: u64 = 500;

fuzz_target!(|text: &str| -> Corpus {
    match Workload::parse(text) {
        Ok(workload) => accepted(&workload, text.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Corpus::Keep
});

fn accepted(workload: &Workload, choice: usize) {
    let machine = machines::small();
    let program = match workload.program(machine) {
        Ok(program) => program,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(!program.cpus.is_empty() && !program.groups.is_empty() && program.processes() > 0);
    let cpus = machine.topology.cpus();
    assert!(program.cpus.iter().all(|&cpu| cpu < cpus));
    if program.threads() <= SIMULATED {
        let policy = &policies::ALL[choice % policies::ALL.len()];
        // Stopped at the first look.
        let _ = Simulation::new(machine, &program, policy, 1).run(&AtomicBool::new(true));
    }
}
