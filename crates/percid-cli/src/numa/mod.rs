//! `percid numa`: balancing of a program's own memory among nodes: reports and a demonstration.

mod check_kernel;
mod demo;
mod errno;
mod figures;
mod kernel_counters;
mod names;
mod nodes;
mod pages;
mod process;
mod publication;
mod published_report;
mod report;
mod watch;

use crate::cli::{NumaArguments, NumaPart, ReportArguments};
use percid_command::exit::{Exit, Failure};

pub(crate) fn run(arguments: &NumaArguments, json: bool) -> Result<Exit, Failure> {
    match &arguments.part {
        Some(NumaPart::Report(arguments)) => report::run(arguments, json),
        Some(NumaPart::Watch(arguments)) => watch::run(arguments, json),
        Some(NumaPart::CheckKernel(arguments)) => check_kernel::run(arguments, json),
        Some(NumaPart::Demo(arguments)) => demo::run(arguments, json),
        None => report::run(&ReportArguments::default(), json),
    }
}
