//! The output: a line for each way, or a JSON object, and at the end the comparison with the
//! targets.

use percid::Source;

use crate::operations::{Comparison, INLINE, MIMALLOC, POOL, RUST};
use crate::rounds::RoundTimes;

/// Maximum ratio of the inline operations of C and C++ to Rust.
const OF_RUST: f64 = 1.15;

/// Maximum ratio of a pool's get and put to mimalloc's malloc and free.
const OF_MIMALLOC: f64 = 0.7;

pub(crate) struct Table {
    json: bool,
    source: Source,
    /// The ways that exceed their maximum.
    beyond: Vec<String>,
    /// Time of the pool in C, by the fastest way.
    pool: f64,
    mimalloc: f64,
}

impl Table {
    pub(crate) fn new(json: bool, source: Source) -> Table {
        if !json {
            println!("{}, source {source}: ns for one of each, and times Rust's", processor());
            println!(
                "{:<24} {:<23} {:>8} {:>7} {:>8} {:>7}",
                "operation", "way", "min", "x Rust", "median", "x Rust"
            );
        }
        Table { json, source, beyond: Vec::new(), pool: f64::INFINITY, mimalloc: f64::NAN }
    }

    /// Prints the measurements, in the order of the ways.
    pub(crate) fn add(&mut self, comparison: &Comparison, figures: &[RoundTimes]) {
        let Comparison { operation, ways } = comparison;
        let rust = figures[0];
        for (way, figures) in ways.iter().zip(figures) {
            let ratio = (ways[0].name == RUST).then_some(figures.min / rust.min);
            self.note(operation, way.name, figures.min, ratio);
            if self.json {
                let ratio = ratio.map_or("null".to_owned(), |ratio| format!("{ratio:.3}"));
                println!(
                    "{{\"operation\":\"{operation}\",\"source\":\"{}\",\"way\":\"{}\",\
                     \"min_ns\":{:.3},\"median_ns\":{:.3},\"of_rust\":{ratio}}}",
                    self.source, way.name, figures.min, figures.median
                );
            } else {
                let times = |value: f64| ratio.map_or(String::new(), |_| format!("{value:.2}"));
                println!(
                    "{operation:<24} {:<23} {:>8.3} {:>7} {:>8.3} {:>7}",
                    way.name,
                    figures.min,
                    times(figures.min / rust.min),
                    figures.median,
                    times(figures.median / rust.median)
                );
            }
        }
    }

    fn note(&mut self, operation: &str, way: &str, min: f64, ratio: Option<f64>) {
        let inline = INLINE.contains(&way);
        if inline && ratio.is_some_and(|ratio| ratio > OF_RUST) {
            self.beyond.push(format!("{operation} in {way}"));
        }
        if operation == POOL && inline {
            self.pool = self.pool.min(min);
        }
        if way == MIMALLOC {
            self.mimalloc = min;
        }
    }

    /// Prints the result. Returns `true` if all targets are met.
    pub(crate) fn end(&self) -> bool {
        let of_mimalloc = self.pool / self.mimalloc;
        if !self.json {
            println!("beyond {OF_RUST} times Rust, by the minima: {}", listed(&self.beyond));
            println!(
                "a pool's get and put in C: {of_mimalloc:.2} of mimalloc ({OF_MIMALLOC} wanted)"
            );
        }
        self.beyond.is_empty() && of_mimalloc <= OF_MIMALLOC
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Returns the processor's name from the kernel.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    let name = line.and_then(|line| line.split_once(": ")).map(|(_, name)| name.to_owned());
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}
