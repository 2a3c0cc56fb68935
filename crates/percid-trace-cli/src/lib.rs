//! Implementation of `percid trace`. `percid` includes it with the feature `trace`; otherwise
//! `percid-trace` is a separate program, because the code that reads and writes traces takes long
//! to build.
//!
//! This file only connects the parts: one module per subcommand, whose arguments are
//! [`percid_command::trace`]'s, and the exit status.

mod convert;
mod file;
mod finish;
mod info;
mod kernel_ids;
mod partial;
mod printable;
mod questions;
mod record;
mod recorder;
mod recover;
mod replay;
mod times;
mod top;
mod tracks;
mod window;

use std::panic;

use percid_command::exit::{Exit, Failure};
use percid_command::trace::TracePart;
use percid_trace::parquet;

/// Runs the subcommand. Called once, since it changes the output at a panic.
///
/// # Errors
///
/// Why nothing could be printed or written.
pub fn run(part: &TracePart, json: bool) -> Result<Exit, Failure> {
    keep_quiet_about_caught_panics();
    match part {
        TracePart::Record(arguments) => record::run(arguments, json),
        TracePart::Top(arguments) => top::run(arguments, json),
        TracePart::Recover(arguments) => recover::run(arguments, json),
        TracePart::Info(arguments) => info::run(arguments, json),
        TracePart::Convert(arguments) => convert::run(arguments, json),
        TracePart::Replay(arguments) => replay::run(arguments, json),
        TracePart::KernelIds(arguments) => kernel_ids::run(arguments, json),
        TracePart::Latency(arguments) => questions::latency::run(arguments, json),
        TracePart::Preemptions(arguments) => questions::preemptions::run(arguments, json),
        TracePart::Migrations(arguments) => questions::migrations::run(arguments, json),
        TracePart::Usage(arguments) => questions::usage::run(arguments, json),
        TracePart::Counters(arguments) => questions::counters::run(arguments, json),
        TracePart::Advise(arguments) => questions::advise::run(arguments, json),
        TracePart::Compare(arguments) => questions::compare::run(arguments, json),
    }
}

/// They are reported as errors in a file.
fn keep_quiet_about_caught_panics() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        if !parquet::catches_panics() {
            tell(what);
        }
    }));
}
