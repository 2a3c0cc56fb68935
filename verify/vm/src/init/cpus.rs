//! The guest's CPUs and nodes.

use std::fs;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node/online";

/// Returns the CPUs that are up.
pub(crate) fn online() -> Vec<u32> {
    numbers(&format!("{CPUS}/online"))
}

/// Returns the CPUs that may ever be up.
pub(crate) fn possible() -> Vec<u32> {
    numbers(&format!("{CPUS}/possible"))
}

/// Returns the NUMA nodes.
pub(crate) fn nodes() -> Vec<u32> {
    numbers(NODES)
}

/// Makes `wanted` the CPUs that are up; returns a remark on each that had to be
/// changed.
pub(crate) fn restore(wanted: &[u32]) -> Vec<String> {
    let found = online();
    let missing = wanted.iter().filter(|cpu| !found.contains(cpu)).map(|cpu| (cpu, "1", "offline"));
    let extra = found.iter().filter(|cpu| !wanted.contains(cpu)).map(|cpu| (cpu, "0", "online"));
    // First up, then down: there must be one at any time.
    let change = |(cpu, switch, left): (&u32, &str, &str)| {
        // One that does not obey shows as the next program's failure.
        let _ = fs::write(format!("{CPUS}/cpu{cpu}/online"), switch);
        format!("left CPU {cpu} {left}")
    };
    missing.chain(extra).map(change).collect()
}

/// Returns the numbers in a file of the kernel's list format; none if there is no file.
fn numbers(path: &str) -> Vec<u32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    parse_list(text.trim()).unwrap_or_default()
}

/// Reads `0-3,8` as 0, 1, 2, 3, 8.
fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        numbers.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list(""), Some(Vec::new()));
        assert_eq!(parse_list("0-x"), None);
    }

    #[test]
    fn this_machine_has_cpus_and_all_are_possible() {
        let (online, possible) = (online(), possible());
        assert!(!online.is_empty());
        assert!(online.iter().all(|cpu| possible.contains(cpu)));
    }
}
