//! This machine's nodes, from sysfs.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;

const NODES: &str = "/sys/devices/system/node";

/// A node. Memory in bytes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Node {
    pub(crate) node: u32,
    /// The CPUs in the kernel's list format: `0-3,8`.
    pub(crate) cpus: String,
    pub(crate) memory_total: Option<u64>,
    pub(crate) memory_free: Option<u64>,
    /// Distances to each node in ascending order; 10 is the distance to itself.
    pub(crate) distances: Vec<u32>,
}

/// Returns all nodes, ascending; none if the kernel was built without NUMA.
pub(crate) fn all() -> Vec<Node> {
    numbers("online").into_iter().map(Node::read).collect()
}

/// Returns the nodes that have memory.
pub(crate) fn with_memory() -> Vec<u32> {
    numbers("has_memory")
}

fn numbers(list: &str) -> Vec<u32> {
    let text = fs::read_to_string(format!("{NODES}/{list}")).ok();
    text.and_then(|text| parse(text.trim())).unwrap_or_default()
}

/// Parses a list in the kernel's format: `0-3,8`.
pub(crate) fn parse(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        numbers.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(numbers)
}

impl Node {
    fn read(node: u32) -> Node {
        let file = |name: &str| {
            let path = PathBuf::from(format!("{NODES}/node{node}/{name}"));
            fs::read_to_string(path).unwrap_or_default()
        };
        let memory = file("meminfo");
        Node {
            node,
            cpus: file("cpulist").trim().to_owned(),
            memory_total: amount(&memory, "MemTotal:"),
            memory_free: amount(&memory, "MemFree:"),
            distances: file("distance")
                .split_ascii_whitespace()
                .filter_map(|number| number.parse().ok())
                .collect(),
        }
    }
}

/// Returns an amount in bytes; a line is `Node 0 MemFree:  12345 kB`.
fn amount(memory: &str, name: &str) -> Option<u64> {
    let line = memory.lines().find(|line| line.contains(name))?;
    let mut words = line.split_ascii_whitespace().rev();
    (words.next()? == "kB").then_some(())?;
    words.next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The switch of the kernel's own balancing (`numa_balancing`, see the kernel's sysctl
/// documentation): 0 is off, 1 on, 2 moves memory among tiers.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct KernelBalancing {
    pub(crate) value: Option<u32>,
}

impl KernelBalancing {
    pub(crate) fn read() -> KernelBalancing {
        let text = fs::read_to_string("/proc/sys/kernel/numa_balancing").ok();
        KernelBalancing { value: text.and_then(|text| text.trim().parse().ok()) }
    }

    /// Returns `true` if it moves pages to the nodes that use them.
    pub(crate) fn is_on(self) -> bool {
        self.value.is_some_and(|value| value & 1 == 1)
    }

    pub(crate) fn text(self) -> String {
        match self.value {
            None => "none: this kernel was built without it".to_owned(),
            Some(0) => "off".to_owned(),
            Some(value) if self.is_on() => format!("on ({value})"),
            Some(value) => format!("among memory tiers only ({value})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{amount, parse};

    #[test]
    fn lists() {
        assert_eq!(parse("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse(""), Some(Vec::new()));
        assert_eq!(parse("0-x"), None);
    }

    #[test]
    fn amounts_are_in_bytes() {
        let memory = "Node 0 MemTotal:       22635076 kB\nNode 0 MemFree:  2 kB\nNode 0 Odd: 3\n";
        assert_eq!(amount(memory, "MemTotal:"), Some(22_635_076 << 10));
        assert_eq!(amount(memory, "MemFree:"), Some(2048));
        assert_eq!(amount(memory, "Odd:"), None);
        assert_eq!(amount(memory, "MemUsed:"), None);
    }
}
