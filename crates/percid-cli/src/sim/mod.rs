//! `percid sim`: simulates policies on other machines.
//!
//! One file per subcommand. Each computes its values once (the JSON document), shows them as text,
//! and adds them to a report.

mod bounds;
mod check;
mod errors;
mod import;
mod list;
mod mask;
mod numa;
mod numbers;
mod page;
mod parquet_support;
mod published;
mod run;
mod show;
mod span;
#[cfg(feature = "sweep")]
mod sweep;
mod sweeps;
mod thread_hash;

use crate::cli::{SimArguments, SimPart};
use percid_command::exit::{Exit, Failure};

pub(crate) fn run(arguments: &SimArguments, json: bool) -> Result<Exit, Failure> {
    match &arguments.part {
        Some(SimPart::Run(arguments)) => run::run(arguments, json),
        Some(SimPart::Check(arguments)) => check::run(arguments, json),
        Some(SimPart::Sweep(arguments)) => sweep(arguments, json),
        Some(SimPart::Mask(arguments)) => mask::run(arguments, json),
        Some(SimPart::Published(arguments)) => published::run(arguments, json),
        Some(SimPart::Numa(arguments)) => numa::run(arguments, json),
        Some(SimPart::ThreadHash(arguments)) => thread_hash::run(arguments, json),
        Some(SimPart::Page(arguments)) => page::run(arguments, json),
        Some(SimPart::Show(arguments)) => show::run(arguments, json),
        Some(SimPart::Import(arguments)) => import::run(arguments, json),
        Some(SimPart::List) | None => list::run(json),
    }
}

#[cfg(feature = "sweep")]
use sweep::run as sweep;

/// Refuses the subcommand: the Parquet writer is not built in.
#[cfg(not(feature = "sweep"))]
fn sweep(_arguments: &crate::cli::SweepArguments, _json: bool) -> Result<Exit, Failure> {
    let instead = "`percid sim run` can write --csv";
    parquet_support::expect("sim sweep", instead).map(|()| Exit::Complete)
}
