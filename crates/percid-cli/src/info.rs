//! `percid info`: what this machine offers, which source of IDs was chosen, and why.

use serde::Serialize;

use crate::machine::MachineReport;
use percid_command::outcome::{Failure, Outcome};
use percid_command::output;

/// The document of `percid info --json`.
#[derive(Debug, Serialize)]
struct Info {
    machine: MachineReport,
}

pub(crate) fn run(json: bool) -> Result<Outcome, Failure> {
    let machine = MachineReport::read();
    if json { output::print_json(&Info { machine }) } else { output::print_text(&machine) }?;
    Ok(Outcome::Complete)
}
