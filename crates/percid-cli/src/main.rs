//! The `percid` command: shows what this machine offers for per-CPU data, measures the costs on it,
//! and simulates the costs on others.
//!
//! This file only connects the parts: arguments ([`cli`]), one module per subcommand, and the exit
//! status.

// Arguments of subcommands that need Linux are parsed on every system, and used by nothing.
#![cfg_attr(
    not(all(target_os = "linux", target_pointer_width = "64")),
    allow(dead_code, unused_imports)
)]

mod bench;
mod busy;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod check;
mod cli;
mod completions;
mod deadline;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod elsewhere;
mod help;
mod info;
mod judged;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod kernel_ids;
mod machine;
mod man_page;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod numa;
mod sim;
mod trace;

use std::process::ExitCode;

use cli::{Cli, Command};
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
use elsewhere::{check, kernel_ids, numa};
use percid_command::exit::{Exit, Failure};

fn main() -> ExitCode {
    match cli::parse() {
        Ok(cli) => percid_command::exit::code(run(&cli)),
        Err(shown) => shown,
    }
}

fn run(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Some(Command::Info(arguments)) => info::run(arguments, cli.json),
        Some(Command::Bench(arguments)) => bench::run(arguments, cli.json),
        Some(Command::Sim(arguments)) => sim::run(arguments, cli.json),
        Some(Command::Numa(arguments)) => numa::run(arguments, cli.json),
        Some(Command::KernelIds { experiment: true, .. }) => kernel_ids::experiment(),
        Some(Command::KernelIds { html, .. }) => kernel_ids::run(html.as_deref(), cli.json),
        Some(Command::Trace(part)) => trace::run(part, cli.json),
        Some(Command::Help(_) | Command::Completions { .. }) if cli.json => Err(no_document()),
        Some(Command::Help(arguments)) => help::run(arguments),
        Some(Command::Completions { shell }) => completions::run(*shell),
        None => bench::everything(&cli.everything, cli.json),
    }
}

fn no_document() -> Failure {
    Failure::Usage("'--json' is not allowed here: a manual or a script is no document".to_owned())
}
