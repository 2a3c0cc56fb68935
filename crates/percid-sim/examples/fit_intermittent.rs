//! Fits the machine's and the workload's fitted numbers to the 24 cells of the published
//! intermittent benchmark. Prints them with all cells, simulated with other seeds.
//!
//! `cargo run --release -p percid-sim --example fit_intermittent [seed]`

use percid_sim::paper::fit::Trials;
use percid_sim::paper::setting::Setting;
use percid_sim::paper::table::{POLICIES, RUNS, errors, published_ns, table};
use percid_sim::run_control::RunControl;

fn main() {
    let seed: u64 = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1000);
    let progress = RunControl::default();
    let trials = Trials::simulate(&Setting::published(), seed, &progress).expect("nobody stops it");
    let all: Vec<usize> = (0..published_ns().len()).collect();
    let fit = trials.fit(&all, &progress).expect("nobody stops it");
    show(&fit.setting, seed.wrapping_add(1_000_000));
}

fn show(fitted: &Setting, seed: u64) {
    let cells = table(fitted, RUNS, seed);
    let (mean, worst) = errors(&cells);
    println!("with other seeds: mean absolute error {mean:.4}, worst {worst:.4}");
    for number in fitted.parameters().iter().filter(|number| number.fitted) {
        println!("{} = {:.1}", number.name, number.value);
    }
    for (number, (cell, published)) in cells.iter().zip(published_ns()).enumerate() {
        let model = cell.ns_per_burst();
        let policy = POLICIES[number % POLICIES.len()];
        let error = 100.0 * (model / published - 1.0);
        println!("row {} {policy:12} {model:8.0} {published:8.0} {error:+6.1} %", number / 3);
    }
}
