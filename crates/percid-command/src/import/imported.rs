//! An imported machine, and the remarks on its import.

use percid_sim::cpu_list;
use percid_sim::topology::Topology;

use crate::placing::Described;

/// A machine without a cost model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The processor's name, if the text contains it.
    pub name: Option<String>,
    /// The positions of the CPUs. They are numbered without gaps, in the order of their numbers.
    /// Nodes that have memory and no CPUs come last, in the order of their numbers.
    pub topology: Topology,
    /// Data that could not be imported unchanged, in sentences without a full stop.
    pub remarks: Vec<String>,
}

/// Returns a remark on the CPUs without a node, if others have one: they count as a separate node.
pub(super) fn remark_on_no_node(cpus: &[Described]) -> Option<String> {
    let without = cpus.iter().filter(|cpu| cpu.node.is_none()).map(|cpu| cpu.cpu);
    let without = cpu_list::write(without.collect::<Vec<u32>>());
    let some_are_in_one = cpus.iter().any(|cpu| cpu.node.is_some());
    let remark = || format!("CPUs {without} are in no NUMA node: they count as one of their own");
    (some_are_in_one && !without.is_empty()).then(remark)
}
