//! Machine models from the output of other programs.

mod hwloc;
mod lscpu;
#[cfg(test)]
mod tests;

use std::fmt;

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

/// The reason why a text describes no machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The number of the faulty line, counted from 1, if the fault is in one line.
    line: Option<usize>,
    expected: String,
}

impl Fault {
    fn in_line(line: usize, expected: impl Into<String>) -> Fault {
        Fault { line: Some(line), expected: expected.into() }
    }

    fn of_all(expected: impl Into<String>) -> Fault {
        Fault { line: None, expected: expected.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.expected),
            None => f.write_str(&self.expected),
        }
    }
}

impl std::error::Error for Fault {}

/// Returns a remark on the CPUs without a node, if others have one: they count as a separate node.
fn remark_on_no_node(cpus: &[Described]) -> Option<String> {
    let without = cpus.iter().filter(|cpu| cpu.node.is_none()).map(|cpu| cpu.cpu);
    let without = cpu_list::write(without.collect::<Vec<u32>>());
    let some_are_in_one = cpus.iter().any(|cpu| cpu.node.is_some());
    let remark = || format!("CPUs {without} are in no NUMA node: they count as one of their own");
    (some_are_in_one && !without.is_empty()).then(remark)
}

/// Maximum number of simulated CPUs.
const MOST_CPUS: usize = 8192;

/// Reads the output of `lscpu -p`, `lscpu --json --extended` or hwloc's `lstopo --of xml`. The
/// format is detected from its beginning.
///
/// # Errors
///
/// Returns the line of the fault, if there is one, and the expected text.
pub fn read(text: &str) -> Result<Imported, Fault> {
    let imported = match text.trim_start().as_bytes().first() {
        Some(b'<') => hwloc::read(text),
        Some(b'{') => lscpu::read_json(text),
        Some(b'#' | b'0'..=b'9') => lscpu::read_table(text),
        _ => Err(Fault::of_all(
            "expected the output of `lscpu -p`, `lscpu --json --extended` or `lstopo --of xml`",
        )),
    }?;
    match imported.topology.cpus() as usize {
        0 => Err(Fault::of_all("expected CPUs with their cores, found none")),
        1..=MOST_CPUS => Ok(imported),
        cpus => Err(Fault::of_all(format!("expected at most {MOST_CPUS} CPUs, found {cpus}"))),
    }
}
