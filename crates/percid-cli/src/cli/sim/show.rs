//! The arguments of `percid sim show`, and its manual.

use clap::{Args, ValueEnum};

pub(super) const ABOUT: &str = "\
Prints the file of a machine or workload, as a start for a file of your own. In JSON:
name, text. The fields are explained in docs/reference/machine-and-workload-files.md.

A machine is a name from `percid sim list`, whose file is printed as it comes with the
simulator; `this`, this machine with its CPUs and caches as they are, hot bursts as
measured in a few milliseconds, and all other numbers assumed; or a file of your own. The
latter two, and with --whole every machine, are printed with all numbers, those too that
come from a base, each with its origin.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim show machine epyc-9654 > mine.toml
  percid sim show machine this > this.toml
  percid sim show machine cascade-lake --whole
  percid sim show workload container";

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArguments {
    /// The machine, workload or policy to show
    #[arg(value_enum, value_name = "KIND")]
    pub(crate) kind: Shown,

    /// Its name, see `percid sim list`; for a machine also `this`, or a file
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// A machine with everything that it inherits
    #[arg(long)]
    pub(crate) whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    Machine,
    Workload,
}
