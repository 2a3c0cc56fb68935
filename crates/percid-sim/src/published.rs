//! The published tables, which lie in `data/` with their sources named in the files.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A row of the intermittent benchmark: nanoseconds per burst of 16 kB.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Intermittent {
    /// Pause between two threads' turns, in milliseconds.
    pub delay_ms: u64,
    /// The machine's part that is used, as the table names it.
    pub config: String,
    /// Threads, each pinned to a CPU of its own.
    pub threads: u32,
    /// Last-level caches over which they are spread.
    pub l3s: u32,
    /// Areas selected by the number of the CPU.
    pub per_cpu_ns: f64,
    /// By the IDs of Linux 6.4 to 6.12.
    pub mm_cid_ns: f64,
    /// By the IDs of Linux 6.13.
    pub cache_local_ns: f64,
    /// `mm_cid_ns / cache_local_ns`, as printed.
    pub published_speedup: f64,
}

/// A measured quantity before and after test-before-set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Mask {
    /// What was measured, and its unit.
    pub metric: String,
    /// With an atomic instruction at every switch.
    pub before: f64,
    /// With a test in front of it.
    pub after: f64,
}

/// A count or a time of NUMA01_THREADLOCAL without and with the series on selective scanning.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Numa {
    /// The reason of a scan decision, or the name of a metric with its unit.
    #[serde(alias = "metric")]
    pub reason: String,
    /// Linux 6.6-rc2, which only counts.
    pub base: f64,
    /// The same with the whole series.
    pub selective: f64,
}

/// How often threads of one hash value scanned.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Hash {
    /// Which run it belongs to.
    pub table: String,
    /// `pid_6bit` or `hash32`.
    pub method: String,
    /// The value.
    pub value: u32,
    /// The threads that have it.
    pub frequency: u32,
}

/// The eight rows of the intermittent benchmark.
pub fn intermittent() -> Vec<Intermittent> {
    rows(include_str!("../data/intermittent-published.csv"))
}

/// The effects of test-before-set on the mask of an address space.
pub fn mask() -> Vec<Mask> {
    rows(include_str!("../data/mask-published.csv"))
}

/// How often each reason decided about a region, summed over seven runs of two processes.
pub fn numa_reasons() -> Vec<Numa> {
    rows(include_str!("../data/numa-skip-reasons-published.csv"))
}

/// Times and counters of the same runs.
pub fn numa_metrics() -> Vec<Numa> {
    rows(include_str!("../data/numa-elapsed-published.csv"))
}

/// The published half of the tables of hash values.
pub fn hashes() -> Vec<Hash> {
    rows(include_str!("../data/numa-hash-iter0-published.csv"))
}

/// The tables are part of this crate, so a fault in one is a fault of ours, which the tests find.
fn rows<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    reader
        .deserialize()
        .map(|row| row.expect("a published table in the form of its type"))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_tables_can_be_read_and_are_complete() {
        assert_eq!(super::intermittent().len(), 8);
        assert_eq!(super::mask().len(), 6);
        assert_eq!(super::numa_reasons().len(), 7);
        assert_eq!(super::numa_metrics().len(), 14);
        assert_eq!(super::hashes().len(), 223);
    }
}
