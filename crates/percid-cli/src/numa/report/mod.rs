//! `percid numa report`: this machine, or the balancers of a process.

mod machine;
mod process;

use crate::cli::ReportArguments;
use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;
use percid_command::output;

use machine::MachineDocument;
use process::ProcessDocument;
pub(crate) use process::publications;

pub(crate) fn run(arguments: &ReportArguments, json: bool) -> Result<Exit, Failure> {
    let Some(pid) = arguments.pid else {
        let document = MachineDocument::read()?;
        if json { output::print_json(&document) } else { output::print_text(&document) }?;
        return Ok(Exit::Complete);
    };
    let interrupt = Interrupt::listen()?;
    let document = ProcessDocument::read(pid, arguments.patience.timeout, &interrupt)?;
    if json { output::print_json(&document) } else { output::print_text(&document) }?;
    Ok(document.exit())
}
