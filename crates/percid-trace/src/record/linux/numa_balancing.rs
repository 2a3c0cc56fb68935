//! Settings of the kernel's NUMA balancing.

use std::fs;

use crate::numa::ScanSettings;
use percid_sim::cpu_list;

/// Returns the settings of the scan that this user may read.
pub(super) fn settings() -> Option<ScanSettings> {
    Some(ScanSettings { delay_ms: setting("scan_delay_ms")?, size_mb: setting("scan_size_mb")? })
}

/// Since Linux 5.13 a file of debugfs, before a sysctl.
fn setting(name: &str) -> Option<u64> {
    let now = fs::read_to_string(format!("/sys/kernel/debug/sched/numa_balancing/{name}"));
    let before = || fs::read_to_string(format!("/proc/sys/kernel/numa_balancing_{name}"));
    now.or_else(|_| before()).ok()?.trim().parse().ok()
}

/// The node of each CPU; 0 for one that is on none.
pub(super) fn nodes() -> Vec<u32> {
    let folder = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let lists = folder.filter_map(|entry| {
        let node = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        Some((node, fs::read_to_string(entry.path().join("cpulist")).ok()?))
    });
    nodes_in(lists)
}

fn nodes_in(lists: impl Iterator<Item = (u32, String)>) -> Vec<u32> {
    let mut nodes = Vec::new();
    for (node, list) in lists {
        for cpu in cpu_list::parse(&list).into_iter().flatten().flatten() {
            let cpu = cpu as usize;
            nodes.resize(nodes.len().max(cpu + 1), 0);
            nodes[cpu] = node;
        }
    }
    nodes
}

/// Returns why this kernel scans nothing, and how to change that; `None` if it does scan.
pub(super) fn missing() -> Option<String> {
    let switch = fs::read_to_string("/proc/sys/kernel/numa_balancing").ok();
    let nodes = fs::read_to_string("/sys/devices/system/node/has_memory").ok();
    let nodes = nodes.and_then(|list| cpu_list::count(&list)).unwrap_or(1);
    missing_in(switch.as_deref().map(str::trim), nodes)
}

fn missing_in(switch: Option<&str>, nodes: u32) -> Option<String> {
    let few = "this machine has one node with memory, and a scan takes at least two";
    let on = switch.and_then(|value| value.parse::<u32>().ok()).is_some_and(|value| value & 1 == 1);
    match (switch, nodes) {
        (None, _) => {
            Some("the kernel does not scan: it was built without CONFIG_NUMA_BALANCING".to_owned())
        }
        (Some(_), 0 | 1) if on => Some(format!("the kernel does not scan: {few}")),
        (Some(value), 0 | 1) => Some(format!(
            "the kernel does not scan: {few}; kernel.numa_balancing is {value}, and must be 1"
        )),
        (Some(value), _) if !on => Some(format!(
            "the kernel does not scan: kernel.numa_balancing is {value}, and must be 1 (sysctl \
             kernel.numa_balancing=1)"
        )),
        (Some(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_name_their_cpus() {
        let lists = [(1, "2-3,6\n".to_owned()), (0, "0-1,5".to_owned()), (2, "\n".to_owned())];
        assert_eq!(nodes_in(lists.into_iter()), [0, 0, 1, 1, 0, 0, 1]);
        assert_eq!(nodes_in([].into_iter()), []);
    }

    #[test]
    fn what_a_scan_takes_is_said() {
        let says = |switch, nodes, what: &str| {
            let missing = missing_in(switch, nodes).unwrap_or_default();
            assert!(missing.contains(what), "{missing}");
        };
        says(None, 2, "CONFIG_NUMA_BALANCING");
        says(Some("0"), 1, "at least two; kernel.numa_balancing is 0");
        says(Some("1"), 1, "one node");
        says(Some("2"), 4, "is 2, and must be 1");
        assert_eq!(missing_in(Some("1"), 2), None);
        assert_eq!(missing_in(Some("3"), 2), None);
    }
}
