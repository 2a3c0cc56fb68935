//! The published tables. They are in `data/`, and the files name their sources.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A row of the intermittent benchmark: nanoseconds per burst of 16 kB.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Intermittent {
    /// Pause between two threads' turns, in milliseconds.
    pub delay_ms: u64,
    /// Part of the machine that is used, with its name in the table.
    pub config: String,
    /// Number of threads, each pinned to its own CPU.
    pub threads: u32,
    /// Number of last-level caches over which they are spread.
    pub l3s: u32,
    /// Cost if areas are selected by CPU number.
    pub per_cpu_ns: f64,
    /// Cost if areas are selected by the IDs of Linux 6.4 to 6.12.
    pub mm_cid_ns: f64,
    /// Cost if areas are selected by the IDs of Linux 6.13.
    pub cache_local_ns: f64,
    /// `mm_cid_ns / cache_local_ns`, as printed.
    pub published_speedup: f64,
}

/// A measured quantity before and after test-before-set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Mask {
    /// Name and unit of the quantity.
    pub metric: String,
    /// Value with an atomic instruction at every switch.
    pub before: f64,
    /// Value with a test in front of it.
    pub after: f64,
}

/// A count or a time of NUMA01_THREADLOCAL without and with the series on selective scanning.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Numa {
    /// The reason of a scan decision, or the name of a metric with its unit.
    #[serde(alias = "metric")]
    pub reason: String,
    /// Value of Linux 6.6-rc2, which only counts.
    pub base: f64,
    /// Value of Linux 6.6-rc2 with the whole series.
    pub selective: f64,
}

/// Number of scanning threads with one hash value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Hash {
    /// Name of the run.
    pub table: String,
    /// `pid_6bit` or `hash32`.
    pub method: String,
    /// The hash value.
    pub value: u32,
    /// Number of threads with this value.
    pub frequency: u32,
}

/// A figure that is in no table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Other {
    /// Name of the figure, with its unit.
    pub figure: String,
    /// Its value.
    pub published: f64,
}

/// Returns the eight rows of the intermittent benchmark.
pub fn intermittent() -> Vec<Intermittent> {
    rows(include_str!("../data/intermittent-published.csv"))
}

/// Returns the effects of test-before-set on the mask of an address space.
pub fn mask() -> Vec<Mask> {
    rows(include_str!("../data/mask-published.csv"))
}

/// Returns the number of decisions about regions by reason, summed over seven runs of two
/// processes.
pub fn numa_reasons() -> Vec<Numa> {
    rows(include_str!("../data/numa-skip-reasons-published.csv"))
}

/// Returns times and counters of the same runs.
pub fn numa_metrics() -> Vec<Numa> {
    rows(include_str!("../data/numa-elapsed-published.csv"))
}

/// Returns the published half of the tables of hash values.
pub fn hashes() -> Vec<Hash> {
    rows(include_str!("../data/numa-hash-iter0-published.csv"))
}

/// Returns the figures that are in no table.
pub fn others() -> Vec<Other> {
    rows(include_str!("../data/other-published.csv"))
}

/// Returns the figure with this name that is in no table; it must exist.
pub(crate) fn other(figure: &str) -> f64 {
    let found = others().into_iter().find(|other| other.figure == figure);
    found.expect("a figure of the file").published
}

/// Reads a table of this crate. The tests read all tables, so an error in one is a bug of this
/// crate.
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
        assert_eq!(super::others().len(), 10);
    }
}
