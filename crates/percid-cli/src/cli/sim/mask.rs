//! The arguments of `percid sim mask`, and its manual.

use std::path::PathBuf;

use clap::Args;
use percid_command::arguments::whole;
use percid_sim::mask::MaskPolicy;

use super::setting::{Setting, setting};

pub(super) const ABOUT: &str = "\
Simulates the masks that say which CPUs may hold translations of an address space, and
the cache lines on which they lie: what a CPU does with its bit when it switches, and
what that costs. Policies stand beside each other: the same machine, workload and seeds
for each. `percid sim published mask` compares two of them with what was published.

  set-always       sets the bit at every switch; Linux up to 3.11
  test-first       tests it first in switches within an address space, sets it in those
                   to another one; Linux 3.12 to 6.13 (8f898fbbe5ee)
  test-everywhere  tests it first in both; no Linux does
  leave-lazily     tests it first in both, and stays a member of what it leaves until a
                   flush; Linux commit 209954cbc7d0
  trim-rarely      the same, and flushes remove who is elsewhere at most once a second;
                   Linux from 6.14 on (6db2526c1d69)

--set sets numbers of the workload, and same_l3_ns, same_socket_ns and other_socket_ns of
the machine. Commas sweep: every combination of the values is simulated with every policy
and every seed. The columns, in JSON the keys of `rows`:

  policy          policy           its name
  throughput      throughput       work done at a time, in CPUs that run beside a busy
                                   sibling
  min, max        throughput_min, throughput_max
                                   the same in the run where it was least and most
  gain %          gain             how much more that is than with the first policy; in
                                   JSON as a share, null for the first
  scheduler %     scheduler_share  the scheduler's share, with masks and page tables, of
                                   the CPU time that is not idle or a kernel thread's
  away %          away_share       share of the time of all CPUs that is idle or a kernel
                                   thread's
  cycles, all     latency          mean latency of a switch's accesses to a mask
  cycles, misses  miss_latency     of those that missed the last-level cache
  cycles, across  across_latency   of those of switches to another address space
  transfers/s     transfers_per_second
                                   how often a mask's line moved, or others' copies of it
                                   were invalidated
  waiting         waiting_cpus     CPUs that wait for a mask's line at a time
  switches        switches         switches of all runs, turns that go on not counted
  across %        switches_across  those of them to another address space; in JSON their
                                   number
  loads           reloads          how often page tables were loaded: across, and where a
                                   flush was missed
  needless of interrupts
                  needless_interrupts, interrupts
                                   interrupts that flushes sent to CPUs that did not run
                                   the process, and all that they sent
                  turns, flushes, cleared, seconds
                                   turns of threads, flushes, bits that were cleared, and
                                   simulated time, of all runs
                  runs, cpus, parameters
                                   how many runs and CPUs, and the values of what is swept

JSON also has `machine` (name, cpus), `workload` (name, about), `numbers` (each with its
origin), `seed`, `seeds` and `interrupted`. After Ctrl-C rows hold whole runs only.

Machines are those of `percid sim run`: a name, `this`, or a file, of which the topology
and the three latencies count. Workloads are files of their own; `percid sim list` has
their names, and `percid sim show workload NAME` prints a start for one of your own. A
file is what has a slash or ends in .toml. The fields are explained in
docs/reference/machine-and-workload-files.md.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim mask --seeds 1
  percid sim mask --workload hackbench --machine cascade-lake --seeds 1
  percid sim mask --workload sleepers --policy set-always,test-first --set threads=8,32,64
  percid sim mask --set cpus=15,30,60,120 --set turns_per_cpu=100 --html mask.html
  percid sim show workload linpack > mine.toml; percid sim mask --workload mine.toml --json";

#[derive(Clone, Debug, Args)]
pub(crate) struct MaskArguments {
    /// A machine's name, `this`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "ivy-bridge-ex")]
    pub(crate) machine: String,

    /// The name of a workload for masks, or a file
    #[arg(long, value_name = "WORKLOAD", default_value = "linpack")]
    pub(crate) workload: String,

    /// Policies, separated by commas; the first is what the others are compared with [default: all]
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', value_parser = policy)]
    pub(crate) policy: Vec<MaskPolicy>,

    /// A number of the workload or a latency of the machine, and its values, separated by commas;
    /// can be given several times
    #[arg(long, value_name = "NAME=VALUES", value_parser = setting)]
    pub(crate) set: Vec<Setting>,

    /// Runs of each combination and policy
    #[arg(long, value_name = "N", default_value = "3", value_parser = whole::<1, 1_000_000>)]
    pub(crate) seeds: u64,

    /// Seed of the first run; the others follow it
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) seed: u64,

    /// Also write a report with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

fn policy(name: &str) -> Result<MaskPolicy, String> {
    MaskPolicy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
        let known = MaskPolicy::ALL.map(MaskPolicy::name);
        format!("allowed are {}", known.join(", "))
    })
}
