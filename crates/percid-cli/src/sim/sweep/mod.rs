//! `percid sim sweep`: simulates a parameter space into a store of Parquet files.

mod failure;
mod figures;
mod fill;
mod merge;
mod space;

use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::Report;

use crate::cli::SweepArguments;
use crate::sim::parquet_support;
use figures::Results;

pub(crate) fn run(arguments: &SweepArguments, json: bool) -> Result<Exit, Failure> {
    parquet_support::expect("sim sweep", "`percid sim run` can write --csv")?;
    let report = Report::to(arguments.html.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let results = if arguments.merge {
        merge::merge(&arguments.store, &arguments.from)?
    } else {
        fill::fill(arguments, &interrupt)?
    };
    let printed = if json { output::print_json(&results) } else { output::print_text(&results) };
    tell_of_failures(&results, json);
    report.write(printed, || results.page(), exit(&results))
}

fn exit(results: &Results) -> Exit {
    if results.interrupted {
        return Exit::Interrupted;
    }
    let is_whole = results.failures.is_empty() && results.missing == 0;
    if is_whole { Exit::Complete } else { Exit::Partial }
}

/// Prints the first few failures; all are in the store.
fn tell_of_failures(results: &Results, json: bool) {
    if json {
        return;
    }
    for failure in results.failures.iter().take(3) {
        complain(format_args!("{}: {}", failure.unit, failure.why));
    }
    if results.failures.len() > 3 {
        complain(format_args!("and {} others, see {}", results.failures.len() - 3, results.store));
    }
}
