//! `percid-trace`, which `percid trace` runs where it does not have it within.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use percid_command::trace::{ABOUT, EXAMPLES, TracePart, manual};
use percid_command::version::Version;
use percid_command::{exit, usage_error};

/// Records, converts and replays scheduler traces
#[derive(Clone, Debug, Parser)]
#[command(
    name = "percid-trace",
    bin_name = "percid trace",
    version,
    long_version = VERSION.long(),
    long_about = ABOUT,
    after_long_help = manual(EXAMPLES),
    disable_help_subcommand = true,
)]
struct Cli {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    part: TracePart,
}

const VERSION: Version =
    Version { name: "percid-trace", number: env!("CARGO_PKG_VERSION"), features: &[] };

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => exit::code(percid_trace_cli::run(&cli.part, cli.json)),
        Err(error) => usage_error::show(&error, Cli::command(), &VERSION),
    }
}
