//! The arguments of `percid sim run`, and its manual.

use std::path::PathBuf;

use clap::Args;
use percid_command::arguments::{PolicyChoice, policy, whole};
use percid_sim::workload::Memory;

use super::setting::{Setting, setting};

pub(super) const ABOUT: &str = "\
Simulates policies beside each other: the same machine, workload and seeds for each.

--set sets parameters of the workload and numbers of the machine. Commas sweep: every
combination of the values is simulated with every policy and every seed. Values can be
given as ranges:

  threads=1-8                  whole numbers: 1 to 8
  threads=1,2,4..64            goes on as it began, by the same step if the three values
                               up to .. have one, else by the same factor: 1 2 4 8 .. 64
  delay_ms=0.5,1..4            with one value before, by the step between the two: 0.5 to
                               4 by 0.5; the end is met or not passed

The columns, in JSON the keys of `rows`:

  policy        policy           its name, see `percid sim list`
  ns/burst      ns_per_burst     mean cost of a timed burst and of finding its ID in
                                 simulated time, in nanoseconds; a burst adds one to each
                                 byte of the 16 kB area (256 cache lines) that the
                                 thread's ID selects
  min, max      ns_per_burst_min, ns_per_burst_max
                                 the same in the run where it was least and most
  hot .. first  shares           what bursts found, in percent of them; in JSON as shares
                                 of `bursts` and of their `cost`:
                   hot           this core touched the area last and has lost next to
                                 nothing of it: at most 5 % above `hot_ns`
                   own           this core touched it last and has lost some of it, by
                                 idling or to other data
                   same L3       another core behind the same last-level cache did
                   same socket   a core behind another last-level cache of the socket did
                   other socket  a core of another socket did
                   first touch   no core did: page faults
  IDs           ids_distinct     distinct IDs of the process that used most of them
  bound         ids_bound        one more than the largest ID: what an array needs
  memory kB     memory           memory that bursts touched; in JSON in bytes
  steals        work.steals      IDs taken from another CPU
  scans         work.scans       scans over all CPUs for IDs that were not used lately
  slow paths    work.slow_paths  times that finding an ID took more than looking at what
                                 the CPU or the thread already had
  work %        policy_share     share of the run time of all CPUs that the policy cost:
                                 slow paths with their fences, what these interrupt, and
                                 scans. In JSON `expense` has run_ns, work_ns, of that
                                 timed_work_ns (for timed bursts), interrupts and
                                 interrupted_ns
                work.expired     IDs that scans took back
                runs, bursts     how many runs the row is the sum of, and their bursts
                parameters       the values of what is swept
                scheduling       wake-ups, switches, ticks and migrations of all runs
                elapsed_ns       simulated time of all runs
  quota         throttling       if a process has a quota: periods that ended, how often a
                                 CPU was throttled, and for how long CPUs were, together
                                 (in JSON in nanoseconds)
                in_use           mean and most, looked at every 10 ms, of the CPUs that
                                 run something (`running`), the CPUs that did within
                                 100 ms (`visited`), and one more than the largest ID
                                 that the first process used within 100 ms (`ids`)

If the workload's file lists programs, a row is of all of them together; a second table
has each, in JSON `programs` of the row: its name, and ns_per_burst, shares, bursts, IDs,
memory, work, expense, throttling and policy_share as above. Otherwise it is empty.

If the workload lets wakes go astray for a while, `in_use` is of that time, a further
table shows it, and `quiet` says what became of the IDs afterwards, in the worst run:

  quiet IDs     quiet.ids        one more than the largest ID used in its last 100 ms
  bound         quiet.bound      min(allowed CPUs, threads)
  above, ms     quiet.above_bound_ns
                                 how long an ID at or above that was still used
  asked         quiet.asked      runs in which a slow path was gone through after 200 ms of
                                 that time: then such IDs must go
  overdue, ms   quiet.overdue_ns how long one was still used after that

--csv and --parquet write the rows as a table besides: a row for each policy and
combination, columns with the names of the JSON keys, joined by dots (work.steals,
shares.hot.bursts, parameters.threads, programs.server.bursts), behind machine, workload, memory, seed and seeds;
what a row does not have is empty. `--csv -` prints it in place of the text.

Policies: names from `percid sim list`, or the release of a kernel, as in linux-6.6.30 or
linux-6.12.48+deb13-amd64: then the one of the kernel's own IDs that this release has.
Some kernels carry the IDs of a later release: linux-6.6-backport. Or the file of a
WebAssembly module, which ends in .wasm, in a percid that is built with the feature wasm:
docs/how-to/write-a-policy-in-webassembly.md. A policy that breaks its contract (`percid
sim check --help`) is an error.

Counts are those of all runs together; IDs and memory are those of the run that needed
most of them. JSON also has `machine` (name, numbers of CPUs, cores, L3 caches, nodes,
sockets, and `numbers`, each with its origin), `workload` (name, about, memory,
parameters), `seed`, `seeds` and `interrupted`. After Ctrl-C rows hold whole runs only.

Machines: a name from `percid sim list`; `this`, this machine's CPUs and caches as they
are, with hot bursts and what others displace in its caches measured in a tenth of a
second, and all other costs assumed; or a file of your own, for which `percid sim show
machine NAME` prints a start. Workloads: a name or a file. A file is what has a slash or ends in .toml.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim run
  percid sim run --workload container --policy per-cpu,percid-table
  percid sim run --workload thread-pool --set threads=2,4,8..64 --seeds 1 --csv - --policy linux-6.6
  percid sim run --workload wandering --set threads=8,64 --set slow_path_ns=1800
  percid sim run --workload intermittent --set delay_ms=1,10,100,1000 --html report.html
  percid sim run --workload neighbours --set batch_threads=0,4 --set data_kb=0,16384 --seeds 1
  percid sim run --machine this --workload oversubscribed --seeds 20 --json | jq '.rows[0]'
  percid sim show machine epyc-9654 > mine.toml; percid sim run --machine mine.toml";

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArguments {
    /// A machine's name, `this`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "epyc-9654")]
    pub(crate) machine: String,

    /// A workload's name, or a file
    #[arg(long, value_name = "WORKLOAD", default_value = "container")]
    pub(crate) workload: String,

    /// Policies, separated by commas, or `all`
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', default_value = "all", value_parser = policy)]
    pub(crate) policy: Vec<PolicyChoice>,

    /// A parameter of the workload or a number of the machine, and its values, separated by commas,
    /// or ranges of them; can be given several times
    #[arg(long, value_name = "NAME=VALUES", value_parser = setting)]
    pub(crate) set: Vec<Setting>,

    /// The memory that bursts write to: copy-on-write, zero-page or pre-faulted [default: what the workload
    /// says]
    #[arg(long, value_name = "MEMORY", value_parser = memory)]
    pub(crate) memory: Option<Memory>,

    /// Runs of each combination and policy
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<1, 1_000_000>)]
    pub(crate) seeds: u64,

    /// Seed of the first run; the others follow it
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) seed: u64,

    /// Also write the rows as CSV; to standard output, in place of the text, if FILE is -
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Also write the rows as Parquet; needs a percid that is built with the feature sweep
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,

    /// Also write a report with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

fn memory(name: &str) -> Result<Memory, String> {
    let found = Memory::ALL.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, memory)| memory).ok_or_else(|| {
        let known = Memory::ALL.map(|(name, _)| name);
        format!("allowed are {}", known.join(", "))
    })
}
