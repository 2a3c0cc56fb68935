//! `percid sim numa`: a comparison of scan rules on one machine and workload.

mod figures;
mod page;
mod plan;

use crate::cli::MemoryArguments;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::Report;

use figures::Results;
use plan::Plan;

pub(crate) fn run(arguments: &MemoryArguments, json: bool) -> Result<Exit, Failure> {
    let plan = Plan::from_arguments(arguments)?;
    let report = Report::to(arguments.html.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let rows = plan.simulate(&interrupt)?;
    let results = Results::new(&plan, rows, interrupt.pressed());
    let printed = if json { output::print_json(&results) } else { output::print_text(&results) };
    if results.interrupted && !json {
        complain(format_args!("interrupted: rows are those of the runs that were over"));
    }
    let exit = if results.interrupted { Exit::Interrupted } else { Exit::Complete };
    report.write(printed, || page::page(&results), exit)
}
