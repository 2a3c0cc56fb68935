//! Machines and workloads by name, or from the user's files.

use std::fs;

use percid_sim::machine::Machine;
use percid_sim::workload::Workload;

use crate::exit::Failure;
use crate::this_machine::{self, Numbering};

/// The name of the machine that this program runs on.
pub const THIS: &str = "this";

/// The machine with this name, or in this file. `numbering` is how the CPUs of this machine are
/// numbered.
pub fn machine(name: &str, numbering: Numbering) -> Result<Machine, Failure> {
    if name == THIS {
        return this_machine::machine(numbering);
    }
    if let Some(machine) = Machine::preset(name) {
        return Ok(machine);
    }
    let known: Vec<&str> = [THIS].into_iter().chain(Machine::presets()).collect();
    let text = read("machine", name, &known)?;
    Machine::parse(&text).map_err(|fault| Failure::Usage(format!("{name}: {fault}")))
}

/// The workload with this name, or in this file.
pub fn workload(name: &str) -> Result<Workload, Failure> {
    if let Some(workload) = Workload::preset(name) {
        return Ok(workload);
    }
    let known: Vec<&str> = Workload::presets().collect();
    let text = read("workload", name, &known)?;
    Workload::parse(&text).map_err(|fault| Failure::Usage(format!("{name}: {fault}")))
}

fn read(kind: &str, name: &str, known: &[&str]) -> Result<String, Failure> {
    if !name.contains('/') && !name.ends_with(".toml") {
        let known = known.join(", ");
        let expected = format!(
            "no {kind} is named '{name}'; allowed are {known}, or a file that ends in .toml"
        );
        return Err(Failure::Usage(expected));
    }
    fs::read_to_string(name).map_err(|cause| Failure::Usage(format!("{name}: {cause}")))
}
