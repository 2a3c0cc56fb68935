//! `percid numa report`: this machine, or the balancers of a process.

mod machine;
mod process;
mod tiers;
mod timeline;

use std::fmt;

use serde::Serialize;

use crate::cli::ReportArguments;
use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::Report;

use machine::MachineDocument;
use process::ProcessDocument;
pub(crate) use process::publications;

pub(crate) fn run(arguments: &ReportArguments, json: bool) -> Result<Exit, Failure> {
    let report = Report::to(arguments.html.as_deref())?;
    let Some(pid) = arguments.pid else {
        let document = MachineDocument::read()?;
        let printed = printed(&document, json);
        return report.write(printed, || document.page(), Exit::Complete);
    };
    let interrupt = Interrupt::listen()?;
    let document =
        ProcessDocument::read(pid, arguments.patience.timeout, arguments.timeline, &interrupt)?;
    let printed = printed(&document, json);
    report.write(printed, || document.page(), document.exit())
}

fn printed(document: &(impl fmt::Display + Serialize), json: bool) -> Result<(), Failure> {
    if json { output::print_json(document) } else { output::print_text(document) }
}
