//! The arguments of `percid sim sweep`, and its manual.

use std::path::PathBuf;

use clap::Args;
use percid_command::arguments::whole;

use super::setting::{Setting, setting};

pub(super) const ABOUT: &str = "\
Simulates every combination of machines, workloads, parameters and policies, run by run,
into a store: a folder of Parquet files that any number of processes and machines fill.

Runs in the store are not simulated again, so an interrupted sweep continues. A file appears
whole or not at all. The result has the same bytes on every machine and in every order.

  sweep.json   the description of the sweep; another sweep, or another version of percid, is
               refused
  runs/machine=epyc-9654/workload=container/threads=8/policy=per-cpu/seeds-1-64.parquet
               some seeds of one combination, a row for each run; the folders are what Hive,
               Arrow, Polars and DuckDB read as partitions
  failures/    the reasons why combinations could not be simulated, under the same names; each
               sweep tries them again
  table.parquet
               all runs, in the order of machines, workloads, parameters, policies and seeds.
               Written when none is missing, except with --shard

Columns are those of `percid sim run --csv`: of a single run each, with its seed; machine
and workload are the names that were asked for.

A policy is a name or, in a percid that is built with the feature wasm, the file of a
WebAssembly module, which ends in .wasm. The store has its SHA-256: a sweep of another
module is another sweep.

--shard 2/8 simulates the second of eight shares of the runs, for Slurm's arrays, GNU
parallel and the like: all write to the same store, or each to one of its own. When all are
over, --merge writes the table; --from brings in what is in other stores of the same sweep.
With --merge nothing is simulated.

--until 2 goes on with more seeds, from --seeds on, until the mean of ns_per_burst is known
to 2 %: half of its 95 % interval (Student's distribution) is no more than that. --most is
the limit. The number of seeds of one combination does not depend on the others.

The text shows a line for each combination: the mean of ns_per_burst, half of its interval
and how many runs there are. In JSON: store, combinations, runs (found, computed, failed,
left), rows (machine, workload, parameters, policy, runs, ns_per_burst,
half_interval_ns; only if nothing was sharded), failures (unit, why), table (its file, if
it was written), interrupted.

It needs a percid that is built with the feature sweep, or trace.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim sweep --store campaign --workload container --policy per-cpu,percid-table --seeds 50
  percid sim sweep --store threads --workload thread-pool --set threads=2,4,8..64 --set duration_ms=50 --seeds 20
  percid sim sweep --store exact --workload container --set duration_ms=50 --seeds 5 --until 5 --most 100
  for i in 1 2 3; do percid sim sweep --store shared --set duration_ms=20 --seeds 30 --shard $i/3; done; percid sim sweep --store shared --merge";

#[derive(Clone, Debug, Args)]
pub(crate) struct SweepArguments {
    /// The folder of the store; it is made if there is none
    #[arg(long, value_name = "FOLDER")]
    pub(crate) store: PathBuf,

    /// Machines' names, `this`, or files, separated by commas
    #[arg(long, value_name = "MACHINES", value_delimiter = ',', default_value = "epyc-9654")]
    pub(crate) machine: Vec<String>,

    /// Workloads' names, or files, separated by commas
    #[arg(long, value_name = "WORKLOADS", value_delimiter = ',', default_value = "container")]
    pub(crate) workload: Vec<String>,

    /// Policies or WebAssembly modules, separated by commas, or `all`
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', default_value = "all")]
    pub(crate) policy: Vec<String>,

    /// A parameter of the workloads or a number of the machines, and its values, separated by
    /// commas, or ranges of them; can be given several times
    #[arg(long, value_name = "NAME=VALUES", value_parser = setting)]
    pub(crate) set: Vec<Setting>,

    /// The memory that bursts write to: copy-on-write, zero-page or pre-faulted [default: what the workload
    /// says]
    #[arg(long, value_name = "MEMORY")]
    pub(crate) memory: Option<String>,

    /// Runs of each combination
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<1, 1_000_000>)]
    pub(crate) seeds: u64,

    /// Seed of the first run; the others follow it
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) seed: u64,

    /// More runs of a combination until its mean is known to this many percent
    #[arg(long, value_name = "PERCENT")]
    pub(crate) until: Option<f64>,

    /// With --until: no more runs of a combination than this
    #[arg(long, value_name = "N", default_value = "1000", requires = "until", value_parser = whole::<1, 1_000_000>)]
    pub(crate) most: u64,

    /// The space from this file, as a store's sweep.json has it, instead of the arguments
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "workload", "policy", "set", "memory", "seeds", "seed", "until", "merge"])]
    pub(crate) space: Option<PathBuf>,

    /// Simulate one share of the runs: I of N
    #[arg(long, value_name = "I/N", value_parser = shard, conflicts_with = "merge")]
    pub(crate) shard: Option<(u64, u64)>,

    /// Keep combinations that make no sense as failures, instead of refusing the sweep
    #[arg(long)]
    pub(crate) keep_invalid: bool,

    /// Simulate nothing, put the runs of the store into its table
    #[arg(long, conflicts_with_all = ["machine", "workload", "policy", "set", "memory", "seeds", "seed", "until"])]
    pub(crate) merge: bool,

    /// With --merge: other stores of the same sweep, whose runs are copied into this one first
    #[arg(long, value_name = "FOLDERS", value_delimiter = ',', requires = "merge")]
    pub(crate) from: Vec<PathBuf>,

    /// Write a report with the same, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let expected = "expected a number, / and how many there are, such as 2/8";
    let (number, of) = text.split_once('/').ok_or(expected)?;
    match (number.parse(), of.parse()) {
        (Ok(number), Ok(of)) if (1..=of).contains(&number) => Ok((number, of)),
        _ => Err(expected.to_owned()),
    }
}
