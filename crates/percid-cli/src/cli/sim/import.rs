//! The arguments of `percid sim import`, and its manual.

use clap::Args;

pub(super) const ABOUT: &str = "\
Converts another program's description of a machine to a file for `percid sim run
--machine`. The input is the output of

  lscpu -p                      the table, with at least the columns CPU, Core and Socket
  lscpu --json --extended       the same as JSON
  lstopo --of xml               what hwloc saw, versions 1 to 3

which is recognised by its beginning; - reads standard input. The file has the CPUs with
their cores, last-level caches, NUMA nodes and sockets: as counts if they are regular and
numbered in one of the usual ways, else as lists. Without a described cache each socket
has one; without a described node the machine has one. CPUs that are offline are left out,
and the others numbered without gaps. Everything else comes from the base, whose numbers
are assumptions for the new machine; give those that you know. In JSON: name, text.";

pub(super) const EXAMPLES: &str = "\
Examples:
  lscpu -p | percid sim import - > mine.toml; percid sim run --machine mine.toml --workload churn
  percid sim import server.xml --name 'the server' --base cascade-lake";

#[derive(Clone, Debug, Args)]
pub(crate) struct ImportArguments {
    /// The output of lscpu or hwloc, or - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: String,

    /// The machine's name [default: the processor's, or FILE]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The machine that has what is not told: a name from `percid sim list`, or a file, as it is
    /// called from where the printed one will be
    #[arg(long, value_name = "MACHINE", default_value = "epyc-9654")]
    pub(crate) base: String,
}
