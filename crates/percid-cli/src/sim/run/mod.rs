//! `percid sim run`: a comparison of policies on one machine and workload.

mod csv;
mod page;
mod parquet;
mod plan;
mod text;

use crate::cli::RunArguments;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::{Report, expect_file};
use percid_sim::results::Results;

use plan::Plan;
use text::Text;

pub(crate) fn run(arguments: &RunArguments, json: bool) -> Result<Exit, Failure> {
    expect_tables(arguments, json)?;
    let plan = Plan::from_arguments(arguments)?;
    let report = Report::to(arguments.html.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let rows = plan.simulate(report.is_wanted(), &interrupt)?;
    let results = Results::new(&plan.comparison(0), rows, interrupt.pressed());
    let printed = match (json, is_printed(arguments)) {
        (true, _) => output::print_json(&results),
        (_, true) => Ok(()),
        _ => output::print_text(&Text(&results)),
    };
    write_tables(arguments, &results)?;
    if results.interrupted && !json {
        complain(format_args!("interrupted: rows are those of the runs that were over"));
    }
    let exit = if results.interrupted { Exit::Interrupted } else { Exit::Complete };
    report.write(printed, || page::page(&results), exit)
}

/// Returns `true` if CSV replaces the text.
fn is_printed(arguments: &RunArguments) -> bool {
    arguments.csv.as_ref().is_some_and(|path| path.as_os_str() == csv::OUTPUT)
}

/// Refuses tables that cannot be written, before the simulation takes minutes.
fn expect_tables(arguments: &RunArguments, json: bool) -> Result<(), Failure> {
    if is_printed(arguments) {
        if json {
            let expected = "--csv -: expected a file, as --json is printed";
            return Err(Failure::Usage(expected.to_owned()));
        }
    } else if let Some(path) = &arguments.csv {
        expect_file("--csv", path)?;
    }
    if let Some(path) = &arguments.parquet {
        parquet::expect_support()?;
        expect_file("--parquet", path)?;
    }
    Ok(())
}

fn write_tables(arguments: &RunArguments, results: &Results) -> Result<(), Failure> {
    if let Some(path) = &arguments.csv {
        csv::write(results, path)?;
    }
    if let Some(path) = &arguments.parquet {
        parquet::write(results, path)?;
    }
    Ok(())
}
