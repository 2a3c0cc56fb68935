//! Machines and workloads by name, or from the user's files.

use std::path::Path;

use percid_sim::file;
use percid_sim::machine::Machine;
use percid_sim::mask;
use percid_sim::numa;
use percid_sim::workload::Workload;

use crate::exit::Failure;
use crate::this_machine::{self, Numbering};

/// The name of the machine that this program runs on.
pub const THIS: &str = "this";

/// Returns the machine with this name, or from this file. `numbering` applies to the CPUs of this
/// machine.
pub fn machine(name: &str, numbering: Numbering) -> Result<Machine, Failure> {
    if name == THIS {
        return this_machine::machine(numbering);
    }
    if let Some(machine) = Machine::preset(name) {
        return Ok(machine);
    }
    let known: Vec<&str> = [THIS].into_iter().chain(Machine::presets()).collect();
    expect_path("machine", name, &known)?;
    Machine::read(Path::new(name)).map_err(|fault| Failure::Usage(format!("{name}: {fault}")))
}

/// Returns the workload with this name, or from this file.
pub fn workload(name: &str) -> Result<Workload, Failure> {
    if let Some(workload) = Workload::preset(name) {
        return Ok(workload);
    }
    let known: Vec<&str> = Workload::presets().collect();
    expect_path("workload", name, &known)?;
    let text = read(name)?;
    Workload::parse(&text).map_err(|fault| Failure::Usage(format!("{name}: {fault}")))
}

/// Returns the label of a machine or workload in tables and folders: its name, or the name of its
/// file without the extension.
pub fn label(name: &str) -> &str {
    let path = Path::new(name);
    let is_file = name.contains('/') || name.ends_with(".toml");
    let stem = path.file_stem().filter(|_| is_file).and_then(|stem| stem.to_str());
    stem.unwrap_or(name)
}

/// Returns the memory workload with this name, or from this file.
pub fn memory_workload(name: &str) -> Result<numa::Workload, Failure> {
    if let Some(workload) = numa::Workload::preset(name) {
        return Ok(workload);
    }
    let known: Vec<&str> = numa::Workload::presets().collect();
    expect_path("workload of memory", name, &known)?;
    let text = read(name)?;
    numa::Workload::parse(&text).map_err(|fault| Failure::Usage(format!("{name}: {fault}")))
}

/// Returns the mask workload with this name, or from this file.
pub fn mask_workload(name: &str) -> Result<mask::Workload, Failure> {
    if let Some(workload) = mask::Workload::preset(name) {
        return Ok(workload);
    }
    let known: Vec<&str> = mask::Workload::presets().collect();
    expect_path("workload for masks", name, &known)?;
    let text = read(name)?;
    mask::Workload::parse(&text).map_err(|fault| Failure::Usage(format!("{name}: {fault}")))
}

fn read(name: &str) -> Result<String, Failure> {
    file::read(Path::new(name)).map_err(|fault| Failure::Usage(format!("{name}: {fault}")))
}

/// Checks that a name that is not known looks like a file.
fn expect_path(kind: &str, name: &str, known: &[&str]) -> Result<(), Failure> {
    if name.contains('/') || name.ends_with(".toml") {
        return Ok(());
    }
    let known = known.join(", ");
    Err(Failure::Usage(format!(
        "no {kind} is named '{name}'; allowed are {known}, or a file that ends in .toml"
    )))
}
