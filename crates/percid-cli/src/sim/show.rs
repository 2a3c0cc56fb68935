//! `percid sim show`: the files of machines and workloads.

use percid_sim::machine::Machine;
use percid_sim::workload::Workload;
use serde::Serialize;

use crate::cli::{ShowArguments, Shown};
use percid_command::exit::{Exit, Failure};
use percid_command::output;

/// The document of `percid sim show --json`.
#[derive(Debug, Serialize)]
struct File<'a> {
    name: &'a str,
    text: &'a str,
}

pub(crate) fn run(arguments: &ShowArguments, json: bool) -> Result<Exit, Failure> {
    let name = arguments.name.as_str();
    let (text, known): (_, Vec<&str>) = match arguments.kind {
        Shown::Machine => (Machine::preset_text(name), Machine::presets().collect()),
        Shown::Workload => (Workload::preset_text(name), Workload::presets().collect()),
    };
    let text = text.ok_or_else(|| {
        Failure::Usage(format!("no file is named '{name}'; allowed are {}", known.join(", ")))
    })?;
    if json { output::print_json(&File { name, text }) } else { output::print_text(&text) }?;
    Ok(Exit::Complete)
}
