//! Descriptions of machines. Every accepted one must have a sound topology, and must run a
//! workload.
#![no_main]

use std::sync::atomic::AtomicBool;

use libfuzzer_sys::{Corpus, fuzz_target};
use percid_sim::engine::Simulation;
use percid_sim::machine::Machine;
use percid_sim::policies;
use percid_sim::workload::Workload;

/// Larger machines are read and not simulated.
const SIMULATED: u32 = 64;

fuzz_target!(|text: &str| -> Corpus {
    match Machine::parse(text) {
        Ok(machine) => {
            check(&machine);
            simulate(&machine);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Corpus::Keep
});

fn check(machine: &Machine) {
    let topology = &machine.topology;
    let cpus = topology.cpus();
    assert!((1..=8192).contains(&cpus));
    assert!(machine.kernel.tick_ns() > 0, "a clock that stands still");
    for cpu in 0..cpus {
        let place = topology.place(cpu);
        assert!(place.core < topology.cores() && place.l3 < topology.l3s());
        assert!(place.socket < topology.sockets() && place.node < topology.nodes());
    }
    for (name, number) in machine.costs.all().into_iter().chain(machine.kernel.all()) {
        assert!(machine.has(name));
        // A number that a file may contain may also be set by a call.
        machine.clone().set(name, number.value).expect("a number of the file");
    }
}

fn simulate(machine: &Machine) {
    if machine.topology.cpus() > SIMULATED {
        return;
    }
    let workload = Workload::preset("oversubscribed").expect("a preset");
    // Some workloads need more CPUs than the machine has.
    let Ok(program) = workload.program(machine) else { return };
    // Stopped at the first look.
    let stop = AtomicBool::new(true);
    let _ = Simulation::new(machine, &program, &policies::ALL[0], 1).run(&stop);
}
