//! How many scheduler events (wake-ups, switches, ticks, migrations) one CPU simulates in a second:
//! for each machine and workload a line, for each policy a column, in millions.
//!
//! `cargo run --release -p percid-sim --example events_per_second`; with names of machines,
//! workloads or policies behind `--`, for these only.
//!
//! Bursts and times of computing are simulated too, but are no scheduler events: where threads
//! compute most of the time, most of what is simulated is not counted.

use std::sync::atomic::AtomicBool;

use percid_sim::engine::Simulation;
use percid_sim::machine::Machine;
use percid_sim::policies::{self, Entry};
use percid_sim::workload::{Program, Workload};

/// Workloads with what is set in them: as many threads as a large machine has CPUs, or more.
const WORKLOADS: [(&str, &[(&str, f64)]); 6] = [
    ("thread-pool", &[("threads", 384.0)]),
    ("oversubscribed", &[]),
    ("oversubscribed", &[("threads_per_cpu", 8.0)]),
    ("container", &[]),
    ("churn", &[]),
    ("fork-exec", &[]),
];

/// Runs are repeated until they have taken this long together, and at least so often.
const LEAST_SECONDS: f64 = 0.25;
const LEAST_RUNS: u64 = 3;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let machines = chosen(&wanted, Machine::presets().collect(), |name| *name);
    let workloads = chosen(&wanted, WORKLOADS.to_vec(), |(name, _)| *name);
    let policies = chosen(&wanted, policies::ALL.iter().collect(), |policy| policy.name);
    println!("{}", processor());
    print!("{:44}", "million events/s");
    policies.iter().for_each(|policy| print!(" {:>12}", short(policy.name)));
    println!();
    for machine in machines {
        for (workload, set) in &workloads {
            line(machine, workload, set, &policies);
        }
    }
}

/// Those of which the name is wanted; all, if none is.
fn chosen<T>(wanted: &[String], mut all: Vec<T>, name: impl Fn(&T) -> &'static str) -> Vec<T> {
    let is_wanted = |one: &T| wanted.iter().any(|word| word == name(one));
    if all.iter().any(is_wanted) {
        all.retain(is_wanted);
    }
    all
}

fn line(machine: &str, workload: &str, set: &[(&str, f64)], policies: &[&'static Entry]) {
    let settings: String = set.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    print!("{:44}", format!("{machine} {workload}{settings}"));
    let machine = Machine::preset(machine).expect("a preset");
    let mut workload = Workload::preset(workload).expect("a preset");
    for (name, value) in set {
        workload.set(name, *value).expect("a parameter");
    }
    let program = workload.program(&machine).expect("a program");
    for policy in policies {
        print!(" {:12.2}", rate(&machine, &program, policy) / 1e6);
    }
    println!();
}

/// Scheduler events in a second, in the fastest of several runs: other programs on the machine
/// take caches and clock frequency away, and never add any.
fn rate(machine: &Machine, program: &Program, policy: &'static Entry) -> f64 {
    let (mut best, mut seed, mut seconds) = (0.0f64, 0, 0.0);
    while seconds < LEAST_SECONDS || seed < LEAST_RUNS {
        seed += 1;
        let started = cpu_seconds();
        let run = Simulation::new(machine, program, policy, seed).run(&AtomicBool::new(false));
        let took = cpu_seconds() - started;
        best = best.max(run.scheduling.events() as f64 / took);
        seconds += took;
    }
    best
}

/// A policy's name where room is short.
fn short(name: &str) -> String {
    name.replace("percid-table", "table")
}

/// What the kernel says of the processor.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    model.unwrap_or("a processor without a name").to_owned()
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
