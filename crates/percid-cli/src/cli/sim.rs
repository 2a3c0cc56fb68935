//! The arguments of `percid sim`, and its manual.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use percid_command::arguments::{PolicyChoice, policy, whole};
use percid_sim::workload::Memory;

use super::manual::manual;

pub(super) const ABOUT: &str = "\
Simulates policies for concurrency IDs, membership masks and NUMA scanning on other
machines than this one. docs/simulator.md says what is modelled, what is assumed and
where the limits are.

Without a subcommand it shows what can be simulated, as `percid sim list` does.
Simulations are deterministic: the same arguments and seed give the same result, bit
for bit, on every machine; all CPUs that this program may use take part.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim                         machines, workloads and policies that there are
  percid sim paper                   published results beside simulated ones
  percid sim run --workload thread-pool --set threads=8,32,128 --html report.html
  percid sim numa-hash --threads 65,129,385";

const RUN_ABOUT: &str = "\
Simulates policies beside each other: the same machine, workload and seeds for each.

--set sets parameters of the workload and numbers of the machine. Commas sweep: every
combination of the values is simulated with every policy and every seed. The columns, in
JSON the keys of `rows`:

  policy        policy           its name, see `percid sim list`
  ns/burst      ns_per_burst     mean cost of a timed burst and of finding its ID in
                                 simulated time, in nanoseconds; a burst adds one to each
                                 byte of the 16 kB area (256 cache lines) that the
                                 thread's ID selects
  min, max      ns_per_burst_min, ns_per_burst_max
                                 the same in the run where it was least and most
  hot .. first  shares           what bursts found, in percent of them; in JSON as shares
                                 of `bursts` and of their `cost`:
                   hot           this core touched the area last and has not idled since
                   own           this core touched it last and has idled since
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
                in_use           mean and most, looked at every 10 ms, of the CPUs that
                                 run something (`running`), the CPUs that did within
                                 100 ms (`visited`), and one more than the largest ID
                                 that the first process used within 100 ms (`ids`)

If the workload lets wakes go astray for a while, `in_use` is of that time, a second
table shows it, and `quiet` says what became of the IDs afterwards, in the worst run:

  quiet IDs     quiet.ids        one more than the largest ID used in its last 100 ms
  bound         quiet.bound      min(allowed CPUs, threads)
  above, ms     quiet.above_bound_ns
                                 how long an ID at or above that was still used
  asked         quiet.asked      runs in which a slow path was gone through after 200 ms of
                                 that time: then such IDs must go
  overdue, ms   quiet.overdue_ns how long one was still used after that

Counts are those of all runs together; IDs and memory are those of the run that needed
most of them. JSON also has `machine` (name, numbers of CPUs, cores, L3 caches, nodes,
sockets, and `numbers`, each with its origin), `workload` (name, about, memory,
parameters), `seed`, `seeds` and `interrupted`. After Ctrl-C rows hold whole runs only.

Machines: a name from `percid sim list`; `this`, this machine's CPUs and caches as they
are, with hot bursts measured in a few milliseconds and all other costs assumed; or a
file of your own, for which `percid sim show machine NAME` prints a start. Workloads:
a name or a file. A file is what has a slash or ends in .toml.";

const RUN_EXAMPLES: &str = "\
Examples:
  percid sim run
  percid sim run --workload container --policy per-cpu,percid-table
  percid sim run --workload wandering --set threads=8,64 --set slow_path_ns=1800
  percid sim run --workload intermittent --set delay_ms=1,10,100,1000 --html report.html
  percid sim run --machine this --workload oversubscribed --seeds 20 --json | jq '.rows[0]'
  percid sim show machine epyc-9654 > mine.toml; percid sim run --machine mine.toml";

const PAPER_ABOUT: &str = "\
Simulates what was published and prints it beside the published figures, cell by cell
with the error, and what becomes of it if one assumption is dropped. Without a part:
all four, in JSON under the keys intermittent, mask, numa and hash; with one, its keys
are those of the document.

  intermittent  coming back to per-CPU memory after a pause: 8 rows, 3 policies, Linux
                commit 7e019dcc470f on 2 x EPYC 9654. A prediction for memory that was
                written to beforehand stands beside each cell.
                rows: config, delay_ms, policy, model_ns, published_ns, error (a share),
                pre_faulted_ns, shares, ids_distinct, scans; mean_abs_error,
                worst_abs_error, speedups, assumptions, parameters
  mask          test before set in the mask of an address space, Linux commit
                8f898fbbe5ee on 60 cores
                rows: metric, when, model, published (a range), error_percent, accepted,
                within; ways, ways_among_processes, assumptions, parameters
  numa          which regions the NUMA scan leaves out, and why: Linux 6.6-rc2 without
                (base) and with the series on selective scanning
                rows: series, reason, model, deviation, published, error_percent;
                elapsed (base, selective, gains in percent), counters, courses,
                contributions, rules, notes, parameters
  hash          the bits that threads get in the NUMA scan's activity sets, from their
                thread IDs
                tables: threads, method, computed, published, absent (threads computed
                and not published; null if others were published)

Each part ends with its bounds, in JSON `bounds`: name, figure, least, most and holds.
If one is missed, `within_bounds` is false and the exit status 1. Cells out of bounds are
marked with !.";

const PAPER_EXAMPLES: &str = "\
Examples:
  percid sim paper
  percid sim paper intermittent --json | jq '.rows[] | [.config, .policy, .error]'
  percid sim paper --html paper.html --seed 7";

const HASH_ABOUT: &str = "\
Computes how well the NUMA scan's activity sets tell the threads of a process apart. A
set has 64 bits (as published) or 128 (an idea that was never built); a thread's bit is
taken from its thread ID, either its lower bits (pid_6bit) or a multiplicative hash
(hash32). Two threads with one bit pass for one another. Everything here is counted,
not sampled.

  tables         for each range of thread IDs, method and width: how many threads have
                 each bit. Without --range the four published runs, of 64 bits, beside
                 the published tables
  crowds         for each number of threads with consecutive IDs, over every first ID
                 below 32768: `distinct` bits (fewest, mean, most), the share of
                 `colliding_pairs`, and the share of first IDs that are `free` of
                 collisions
  never_collide  by width: the most threads of which no two collide, whatever their
                 first ID, with the hash
  blind          by width: the fewest threads that always have every bit, so that the
                 set tells nothing";

const HASH_EXAMPLES: &str = "\
Examples:
  percid sim numa-hash
  percid sim numa-hash --range 4350-4357 --json | jq .tables
  percid sim numa-hash --threads 65,129,385";

const LIST_ABOUT: &str = "\
Shows the machines, workloads and policies that come with the simulator: machines with
their numbers of CPUs, workloads with their parameters and the values these have unless
--set says otherwise, policies with what they are. In JSON: machines, workloads,
policies.";

const SHOW_ABOUT: &str = "\
Prints the file of a machine or workload, as a start for a file of your own. In JSON:
name, text. The fields are explained in docs/simulator.md.";

#[derive(Clone, Debug, Args)]
pub(crate) struct SimArguments {
    #[command(subcommand)]
    pub(crate) part: Option<SimPart>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SimPart {
    /// Simulate policies beside each other
    #[command(long_about = RUN_ABOUT, after_long_help = manual(RUN_EXAMPLES))]
    Run(RunArguments),
    /// Show published results beside simulated ones, cell by cell
    #[command(long_about = PAPER_ABOUT, after_long_help = manual(PAPER_EXAMPLES))]
    Paper(PaperArguments),
    /// Compute how well activity sets of 64 and 128 bits tell threads apart
    #[command(long_about = HASH_ABOUT, after_long_help = manual(HASH_EXAMPLES))]
    NumaHash(HashArguments),
    /// Show machines, workloads with their parameters, and policies
    #[command(
        long_about = LIST_ABOUT,
        after_long_help = manual("Examples:\n  percid sim list\n  percid sim list --json | jq '.workloads[].name'"),
    )]
    List,
    /// Print the file of a machine or workload
    #[command(
        long_about = SHOW_ABOUT,
        after_long_help = manual("Examples:\n  percid sim show machine epyc-9654 > mine.toml\n  percid sim show workload container"),
    )]
    Show(ShowArguments),
}

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

    /// A parameter of the workload or a number of the machine, and its values, separated by commas;
    /// can be given several times
    #[arg(long, value_name = "NAME=VALUES", value_parser = setting)]
    pub(crate) set: Vec<Setting>,

    /// What bursts write to: copy-on-write, zero-page or pre-faulted [default: what the workload
    /// says]
    #[arg(long, value_name = "MEMORY", value_parser = memory)]
    pub(crate) memory: Option<Memory>,

    /// Runs of each combination and policy
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<1, 1_000_000>)]
    pub(crate) seeds: u64,

    /// Seed of the first run; the others follow it
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) seed: u64,

    /// Also write a report with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PaperArguments {
    /// Which published results [default: all]
    #[arg(value_enum, value_name = "PART")]
    pub(crate) part: Option<PaperPart>,

    /// Seed of the simulations
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) seed: u64,

    /// Also write a report with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperPart {
    Intermittent,
    Mask,
    Numa,
    Hash,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct HashArguments {
    /// Thread IDs from FIRST to LAST [repeatable]
    #[arg(long, value_name = "FIRST-LAST", value_parser = range)]
    pub(crate) range: Vec<(u32, u32)>,

    /// Numbers of threads with consecutive IDs, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "8,16,32,34,64,65,128,129,256,385", value_parser = whole::<1, 32_767>)]
    pub(crate) threads: Vec<u64>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArguments {
    /// What to show
    #[arg(value_enum, value_name = "KIND")]
    pub(crate) kind: Shown,

    /// Its name, see `percid sim list`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    Machine,
    Workload,
}

/// What one `--set` says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

fn memory(name: &str) -> Result<Memory, String> {
    let found = Memory::ALL.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, memory)| memory).ok_or_else(|| {
        let known = Memory::ALL.map(|(name, _)| name);
        format!("allowed are {}", known.join(", "))
    })
}

fn setting(text: &str) -> Result<Setting, String> {
    let expected = || "expected a parameter, = and numbers, such as threads=8,16".to_owned();
    let (name, values) = text.split_once('=').ok_or_else(expected)?;
    let number = |value: &str| value.trim().parse().ok().filter(|value: &f64| value.is_finite());
    let values: Option<Vec<f64>> = values.split(',').map(number).collect();
    let name = name.trim().to_owned();
    values.filter(|_| !name.is_empty()).map(|values| Setting { name, values }).ok_or_else(expected)
}

fn range(text: &str) -> Result<(u32, u32), String> {
    let ends = text
        .split_once('-')
        .and_then(|(first, last)| Some((first.trim().parse().ok()?, last.trim().parse().ok()?)));
    // The largest thread ID on Linux, whatever its settings are.
    const LARGEST: u32 = 1 << 22;
    ends.filter(|&(first, last)| 1 <= first && first <= last && last <= LARGEST)
        .ok_or_else(|| format!("expected FIRST-LAST with 1 <= FIRST <= LAST <= {LARGEST}"))
}
