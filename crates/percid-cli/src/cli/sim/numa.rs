//! The arguments of `percid sim numa`, and its manual.

use std::path::PathBuf;

use clap::Args;
use percid_command::arguments::whole;
use percid_sim::numa::comparison::{RULE_SETS, RuleSet, rule_set};

use super::setting::{Setting, setting};

pub(super) const ABOUT: &str = "\
Simulates the NUMA scan of a process's memory under the rules of several kernels beside
each other: the same machine, workload and seeds for each.

A thread of the process walks its regions now and then and arms pages, so that the next
access to each traps; the trap tells who uses the page and where, and the page may move
there. The rules decide which regions a walk leaves out:

  linux-6.6     before the series on selective scanning
  linux-6.7     the series
  linux-6.12    the series and the fixes that followed
  wide          linux-6.12 with sets of active threads of 128 bits; in no kernel
  by-activity   linux-6.12 in the order by activity; in no kernel
  tiers         linux-6.12 with percid's memory tiers: what is not used goes to nodes without
                CPUs, what is used there returns; without such nodes like linux-6.12

--set sets numbers of the workload, the machine and the model. Commas sweep: every
combination of the values is simulated with all rules and every seed.

  processes, threads   processes, and workers of each
  mib                  size of each memory of a process
  rounds               how often workers go over what they use, in each phase
  preparation_s        the time before the first phase
  cpus                 CPUs of the machine; threads beyond them share
  speed_gb_s           how fast all threads together write local memory
  remote_cost          what a byte on the farthest node costs; a local one costs 1
  slow_cost            what a byte on a node without CPUs costs
  cold_after_s         tiers: what was armed for so long and not touched goes there
  hot_threshold_ms     tiers: what is touched sooner after it was armed returns; the rules
                       change it so that about as much returns as may
  tiers_mib_s          tiers: what may go, and what may return, a second
  stay_s               the mean time after which a worker is moved to another node
  reluctance           the share of these moves that are left out because the worker is on
                       the node it prefers
  first_period_ms, least_share, main_share
                       see docs/reference/machine-and-workload-files.md

The columns, in JSON the keys of `rows`; counts are means of a run, of all processes:

  elapsed, s     elapsed_s        until the last process is over: mean of the runs;
                                  elapsed_min_s, elapsed_max_s, elapsed_deviation_s
  lost, s        lost_s           how much sooner that could be with all memory local
  covered, s     covered_after_s  until nine tenths of a process's pages had been armed
  passes         passes           walks; in JSON scan_s, the time they took
  scan_delay .. seq_completed     regions left out, by reason; in JSON under `reasons`
  PTE, PMD       pte_updates, pmd_updates
                                  entries of single and of huge pages that were armed
  faults         hint_faults      traps
  local %        local_share      those on the thread's own node; in JSON a share
  migrated       pages_migrated   pages of 4 kiB that moved
  demoted        pages_demoted    those that went to nodes without CPUs, where there are some
  promoted       pages_promoted   those that returned
                 runs, parameters how many runs, and the values of what is swept

JSON also has `machine` (name, cpus, nodes, memory_only_nodes), `workload` (name, about, processes,
threads), `numbers` with their origins, `seed`, `seeds` and `interrupted`. After Ctrl-C
rows hold whole runs only.

Machines are those of `percid sim run`: a name, `this` or a file; how fast memory is,
files do not say, see speed_gb_s and remote_cost. Workloads: a name from `percid sim
list`, or a file of your own, for which `percid sim show workload NAME` prints a start.
A file is what has a slash or ends in .toml.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim numa --seeds 1
  percid sim numa --workload numa01 --rules linux-6.6,linux-6.12 --seeds 2
  percid sim numa --workload phases --set threads=16,32 --set remote_cost=1.5 --seeds 1
  percid sim numa --workload slices --rules all --seeds 1 --json | jq '.rows[0]'
  percid sim show workload slices > mine.toml; percid sim numa --workload mine.toml";

#[derive(Clone, Debug, Args)]
pub(crate) struct MemoryArguments {
    /// A machine's name, `this`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "cascade-lake")]
    pub(crate) machine: String,

    /// A workload of memory by its name, or a file
    #[arg(long, value_name = "WORKLOAD", default_value = "numa01-threadlocal")]
    pub(crate) workload: String,

    /// Rules of the scan, separated by commas, or `all`
    #[arg(long, value_name = "RULES", value_delimiter = ',', default_value = "linux-6.6,linux-6.7,linux-6.12", value_parser = rules)]
    pub(crate) rules: Vec<ScanRules>,

    /// A number and its values, separated by commas; can be given several times
    #[arg(long, value_name = "NAME=VALUES", value_parser = setting)]
    pub(crate) set: Vec<Setting>,

    /// Runs of each combination and rules
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<1, 100_000>)]
    pub(crate) seeds: u64,

    /// Seed of the first run; the others follow it
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) seed: u64,

    /// Also write a report with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// One name of `--rules`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScanRules {
    /// All rule sets.
    All,
    /// One rule set.
    One(&'static RuleSet),
}

fn rules(name: &str) -> Result<ScanRules, String> {
    match rule_set(name) {
        Some(known) => Ok(ScanRules::One(known)),
        None if name == "all" => Ok(ScanRules::All),
        None => {
            let known: Vec<&str> = RULE_SETS.iter().map(|known| known.name).collect();
            Err(format!("allowed are all, {}", known.join(", ")))
        }
    }
}
