//! How many scheduler events a core simulates in a second, for each workload and policy on the
//! largest machine.
//!
//! `cargo run --release -p percid-sim --example events_per_second`

use std::sync::atomic::AtomicBool;

use percid_sim::engine::Simulation;
use percid_sim::machine::Machine;
use percid_sim::policies;
use percid_sim::workload::Workload;

fn main() {
    let machine = Machine::preset("epyc-9654").expect("a preset");
    for name in ["thread-pool", "oversubscribed", "container", "churn"] {
        for policy in policies::ALL {
            let mut workload = Workload::preset(name).expect("a preset");
            if name == "thread-pool" {
                workload.set("threads", 384.0).expect("a parameter");
            }
            let program = workload.program(&machine).expect("a program");
            let started = cpu_seconds();
            let outcome =
                Simulation::new(&machine, &program, policy, 1).run(&AtomicBool::new(false));
            let seconds = cpu_seconds() - started;
            let millions = outcome.scheduling.events() as f64 / 1e6;
            println!(
                "{name:15} {:14} {millions:8.2} million events in {seconds:6.3} s: {:6.2} million/s",
                policy.name,
                millions / seconds
            );
        }
    }
}

/// The time that this thread has had a CPU, so that other programs do not count.
fn cpu_seconds() -> f64 {
    // SAFETY: all zero is a valid timespec, and the call only writes to it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
