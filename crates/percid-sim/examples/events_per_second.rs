//! Measures the simulation speed of one CPU, in millions of scheduler events per second (wake-ups,
//! switches, ticks, migrations). Prints one line per machine and workload, and one column per
//! policy.
//!
//! `cargo run --release -p percid-sim --example events_per_second` measures all combinations. Names
//! of machines, workloads or policies after `--` select a part of them.
//!
//! Bursts and computing times are simulated too, but are not scheduler events. If threads mostly
//! compute, most of the simulated work is not counted.

use std::sync::atomic::AtomicBool;

use percid_sim::engine::Simulation;
use percid_sim::machine::Machine;
use percid_sim::policies::{self, PolicySpec};
use percid_sim::workload::{Program, Workload};

/// Workloads, with the parameters to set. The thread pool suits the CPUs of a large machine.
const WORKLOADS: [(&str, &[(&str, f64)]); 8] = [
    ("intermittent", &[]),
    ("intermittent", &[("delay_ms", 10.0)]),
    ("thread-pool", &[("threads", 384.0)]),
    ("oversubscribed", &[]),
    ("oversubscribed", &[("threads_per_cpu", 8.0)]),
    ("container", &[]),
    ("churn", &[]),
    ("fork-exec", &[]),
];

/// Minimum total time in seconds of the repeated runs; there are at least `LEAST_RUNS` of them.
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

/// Returns the items whose names are in `wanted`, or all items if there is no such name.
fn chosen<T>(wanted: &[String], mut all: Vec<T>, name: impl Fn(&T) -> &'static str) -> Vec<T> {
    let is_wanted = |one: &T| wanted.iter().any(|word| word == name(one));
    if all.iter().any(is_wanted) {
        all.retain(is_wanted);
    }
    all
}

fn line(machine: &str, workload: &str, set: &[(&str, f64)], policies: &[&'static PolicySpec]) {
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

/// Returns the scheduler events per second of the fastest run. Other programs on the machine take
/// cache space and clock frequency and never add any, so the fastest run is the least disturbed.
fn rate(machine: &Machine, program: &Program, policy: &'static PolicySpec) -> f64 {
    let (mut best, mut seed, mut seconds) = (0.0f64, 0, 0.0);
    while seconds < LEAST_SECONDS || seed < LEAST_RUNS {
        seed += 1;
        let started = cpu_seconds();
        let run = Simulation::new(machine, program, policy, seed)
            .run(&AtomicBool::new(false))
            .expect("the policy keeps its contract");
        let took = cpu_seconds() - started;
        best = best.max(run.scheduling.events() as f64 / took);
        seconds += took;
    }
    best
}

/// Returns a shorter form of a policy's name for column headings.
fn short(name: &str) -> String {
    name.replace("percid-table", "table")
}

/// Returns the processor's model name from `/proc/cpuinfo`.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    model.unwrap_or("a processor without a name").to_owned()
}

/// Returns the CPU time of this thread in seconds, so that other programs do not count.
fn cpu_seconds() -> f64 {
    // SAFETY: A zeroed timespec is valid, and the call only writes to it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
