//! `percid sim import`: machine models from the output of lscpu and hwloc.

use std::io::{self, Read};

use percid_command::exit::{Exit, Failure};
use percid_command::import::{self, Imported};
use percid_sim::machine::Machine;

use super::show::File;
use crate::cli::ImportArguments;

/// The name that stands for standard input.
const INPUT: &str = "-";

pub(crate) fn run(arguments: &ImportArguments, json: bool) -> Result<Exit, Failure> {
    let file = arguments.file.as_str();
    check_base(&arguments.base)?;
    let shown = if file == INPUT { "standard input" } else { file };
    let text = read(file).map_err(|cause| Failure::Usage(format!("{shown}: {cause}")))?;
    let imported = import::read(&text);
    let Imported { name, topology, remarks } =
        imported.map_err(|fault| Failure::Usage(format!("{shown}: {fault}")))?;
    let name = arguments.name.clone().or(name).unwrap_or_else(|| format!("from {shown}"));
    let remarks: String = remarks.iter().map(|remark| format!("# {remark}.\n")).collect();
    let text = remarks + &Machine::places_to_toml(&name, &topology, &arguments.base);
    File { name: &name, text }.print(json)
}

fn read(file: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    if file == INPUT {
        io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        bytes = std::fs::read(file)?;
    }
    // Names of processors and devices may have any encoding.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Checks the name of a base. Only the names of presets can be checked; files may be created later.
fn check_base(base: &str) -> Result<(), Failure> {
    if base.contains('/') || base.ends_with(".toml") || Machine::presets().any(|name| name == base)
    {
        return Ok(());
    }
    let known = Machine::presets().collect::<Vec<_>>().join(", ");
    Err(Failure::Usage(format!(
        "--base: no machine is named '{base}'; allowed are {known}, or a file that ends in .toml"
    )))
}
