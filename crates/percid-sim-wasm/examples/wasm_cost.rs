//! Measures a module beside a built-in policy: CPU time of the same runs, in turn, as a ratio.
//!
//! `cargo run --release -p percid-sim-wasm --example wasm_cost -- FILE POLICY [WORKLOAD]`

use std::sync::atomic::AtomicBool;

use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::Machine;
use percid_sim::policies::{self, PolicySpec};
use percid_sim::workload::{Program, Workload};

const WORKLOADS: [(&str, f64); 5] = [
    ("thread-pool", 600.0),
    ("container", 2000.0),
    ("oversubscribed", 300.0),
    ("churn", 600.0),
    ("fork-exec", 600.0),
];

/// Number of pairs of runs; the median of their ratios is printed.
const PAIRS: u64 = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, name, wanted @ ..] = &arguments[..] else { panic!("expected FILE POLICY") };
    let module = std::fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let module = percid_sim_wasm::load(file, &module).unwrap_or_else(|error| panic!("{error}"));
    let native = policies::find(name).unwrap_or_else(|| panic!("{name}: no policy"));
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    for (workload, ms) in WORKLOADS.into_iter().filter(|(name, _)| is_wanted(name)) {
        let mut description = Workload::preset(workload).expect("a preset");
        description.set("duration_ms", ms).expect("a parameter");
        let program = description.program(&machine).expect("a program");
        let pair = |seed| {
            let (of_native, expected) = timed(&machine, &program, native, seed);
            let (of_module, found) = timed(&machine, &program, module, seed);
            assert_eq!(found, expected, "the module gives what the policy gives");
            of_module / of_native
        };
        let mut ratios: Vec<f64> = (1..=PAIRS).map(pair).collect();
        ratios.sort_by(f64::total_cmp);
        let [first, median, last] = [0, ratios.len() / 2, ratios.len() - 1].map(|at| ratios[at]);
        println!("{workload:16} {median:.2} ({first:.2} to {last:.2})");
    }
}

fn timed(
    machine: &Machine,
    program: &Program,
    entry: &'static PolicySpec,
    seed: u64,
) -> (f64, Outcome) {
    let began = cpu_seconds();
    let run = Simulation::new(machine, program, entry, seed).run(&AtomicBool::new(false));
    (cpu_seconds() - began, run.unwrap_or_else(|violation| panic!("{violation}")))
}

/// Returns the CPU time of this thread in seconds, so that other programs do not count.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the write of the time.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "the clock of this thread");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
