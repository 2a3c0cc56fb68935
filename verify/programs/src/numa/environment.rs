//! The properties of the machine for a test, and settings that fit it.

use std::time::Duration;

use percid::machine;
use percid_numa::{AccessMethod, Balancer, RegisterError, Settings};

use super::area::{Area, PAGE, Pages};
use crate::options::Options;

/// Returns the kind of pages for the memory of a test.
pub(super) fn pages(options: &Options) -> Pages {
    if options.huge { Pages::Huge } else { Pages::Small }
}

/// Returns how many pages the kernel has moved so far, of all processes; `None` if it does not
/// count.
pub(super) fn migrated() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("pgmigrate_success "))?;
    line.trim().parse().ok()
}

/// Constants that fit memory of some MiB and a test of some seconds.
pub(super) fn quick() -> Settings {
    Settings {
        scan_delay: Duration::from_millis(100),
        scan_size: 4 << 20,
        period_min: Duration::from_millis(100),
        period_max: Duration::from_millis(1000),
        ..Settings::default()
    }
}

/// Returns the CPUs of each node that has some, by ascending node.
pub(super) fn nodes() -> Vec<(u32, Vec<u32>)> {
    let mut nodes: Vec<(u32, Vec<u32>)> = Vec::new();
    for cpu in machine::read().cpus.iter().filter(|cpu| cpu.allowed) {
        let Some(node) = cpu.node else { continue };
        match nodes.iter_mut().find(|(other, _)| *other == node) {
            Some((_, cpus)) => cpus.push(cpu.number),
            None => nodes.push((node, vec![cpu.number])),
        }
    }
    nodes.sort_unstable();
    nodes
}

/// Returns why writes cannot be seen here: the kernel, or its administrator.
pub(super) fn blind(access: AccessMethod) -> Option<String> {
    if access != AccessMethod::Written {
        return None;
    }
    let area = Area::new(PAGE).ok()?;
    match Balancer::new().register_written(area.start(), area.bytes()) {
        Err(why @ (RegisterError::NotPermitted | RegisterError::NotSupported)) => {
            Some(format!("skipped: {why}"))
        }
        _ => None,
    }
}

/// Switches the kernel's own balancing off, which would move the pages itself. Only a machine with
/// several nodes has the switch: a virtual one, that belongs to the test.
pub(super) fn alone() -> Result<(), String> {
    const SWITCH: &str = "/proc/sys/kernel/numa_balancing";
    match std::fs::read_to_string(SWITCH) {
        Ok(state) if state.trim() != "0" => {
            std::fs::write(SWITCH, "0").map_err(|error| format!("{SWITCH}: {error}"))
        }
        _ => Ok(()),
    }
}
