//! `percid-trace`, which `percid trace` runs: a program of its own, because what reads and writes
//! traces takes long to build.
//!
//! This file only connects the parts: arguments ([`cli`]), one module per subcommand, and the exit
//! status.

mod cli;
mod convert;
mod file;
mod info;
mod kernel_ids;
mod printable;
mod record;
mod replay;

use std::panic;
use std::process::ExitCode;

use percid_command::exit::{self, Exit, Failure};
use percid_trace::parquet;

use cli::{Cli, Command};

fn main() -> ExitCode {
    keep_quiet_about_caught_panics();
    match cli::parse() {
        Ok(cli) => exit::code(run(&cli)),
        Err(shown) => shown,
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

fn run(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Record(arguments) => record::run(arguments, cli.json),
        Command::Info(arguments) => info::run(arguments, cli.json),
        Command::Convert(arguments) => convert::run(arguments, cli.json),
        Command::Replay(arguments) => replay::run(arguments, cli.json),
        Command::KernelIds(arguments) => kernel_ids::run(arguments, cli.json),
    }
}
