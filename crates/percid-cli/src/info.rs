//! `percid info`: what this machine offers, which source of IDs was chosen, and why.

use serde::Serialize;

use crate::check::{self, CheckReport};
use crate::cli::InfoArguments;
use crate::machine::MachineReport;
use percid_command::exit::{Exit, Failure};
use percid_command::output;

/// The document of `percid info --json`.
#[derive(Debug, Serialize)]
struct Info {
    machine: MachineReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckReport>,
}

pub(crate) fn run(arguments: &InfoArguments, json: bool) -> Result<Exit, Failure> {
    let machine = MachineReport::read();
    if !json {
        output::print_text(&machine)?;
    }
    let check = arguments.check.then(|| check::run(arguments.length())).transpose()?;
    let exit = check.as_ref().map_or(Exit::Complete, CheckReport::exit);
    match &check {
        _ if json => output::print_json(&Info { machine, check })?,
        Some(check) => output::print_text(check)?,
        None => {}
    }
    Ok(exit)
}
