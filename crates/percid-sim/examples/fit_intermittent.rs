//! Fits the five fitted parameters, four of the machine and one of the workload, of the published
//! intermittent benchmark to its 24 cells, by a search in which each step multiplies one of them,
//! and prints them with all cells.
//!
//! `cargo run --release -p percid-sim --example fit_intermittent [steps]`

use percid_sim::paper::intermittent::{POLICIES, Setting, errors, published_ns, table};

/// Simulated runs of each cell.
const RUNS: u64 = 60;
const SEED: u64 = 1000;
/// Cells further off than this count more than all others.
const WORST: f64 = 0.33;

const FITTED: [&str; 5] =
    ["own_ns", "cooling_ns", "first_touch_us", "first_touch_cooling_us", "wake_us"];

fn fitted<'s>(setting: &'s mut Setting, name: &str) -> &'s mut f64 {
    let costs = &mut setting.machine.costs;
    match name {
        "own_ns" => &mut costs.own_ns.value,
        "cooling_ns" => &mut costs.cooling_ns.value,
        "first_touch_us" => &mut costs.first_touch_us.value,
        "first_touch_cooling_us" => &mut costs.first_touch_cooling_us.value,
        name => setting.workload.parameters.get_mut(name).expect("a parameter of the benchmark"),
    }
}

fn score(setting: &Setting) -> f64 {
    let (mean, worst) = errors(&table(setting, RUNS, SEED));
    mean + 5.0 * (worst - WORST).max(0.0)
}

fn main() {
    let steps = std::env::args().nth(1).and_then(|steps| steps.parse().ok()).unwrap_or(12);
    let mut best = Setting::published();
    let mut least = score(&best);
    let mut factor = 1.25;
    for step in 0..steps {
        let mut improved = false;
        for name in FITTED {
            for by in [factor, 1.0 / factor] {
                let mut other = best.clone();
                *fitted(&mut other, name) *= by;
                let found = score(&other);
                if found < least {
                    (best, least, improved) = (other, found, true);
                }
            }
        }
        eprintln!("step {step}: {least:.4}, factor {factor:.3}");
        if !improved {
            factor = f64::sqrt(factor);
        }
    }
    show(&mut best);
}

fn show(best: &mut Setting) {
    let cells = table(best, RUNS, SEED + 1);
    let (mean, worst) = errors(&cells);
    println!("with other seeds: mean absolute error {mean:.4}, worst {worst:.4}");
    for name in FITTED {
        println!("{name} = {:.1}", fitted(best, name));
    }
    for (number, (cell, published)) in cells.iter().zip(published_ns()).enumerate() {
        let model = cell.ns_per_burst();
        let policy = POLICIES[number % POLICIES.len()];
        let error = 100.0 * (model / published - 1.0);
        println!("row {} {policy:12} {model:8.0} {published:8.0} {error:+6.1} %", number / 3);
    }
}
