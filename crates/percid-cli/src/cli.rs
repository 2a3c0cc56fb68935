//! The command line: the arguments, and the manual that `--help` prints.

mod intermittent;
mod manual;
mod numa;
mod sim;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
pub(crate) use intermittent::{CpusChoice, IndexChoice, IntermittentArguments};
use manual::manual;

pub(crate) use numa::{
    CheckKernelArguments, DemoArguments, NumaArguments, NumaPart, ReportArguments, RulesChoice,
    WatchArguments,
};
use percid_command::arguments::seconds;
use percid_command::trace::{self, TracePart};
use percid_command::version::Version;
use percid_command::{exit, usage_error};
pub(crate) use sim::{
    ContractArguments, HashArguments, ImportArguments, MaskArguments, MemoryArguments,
    PageArguments, PublishedArguments, PublishedPart, RunArguments, ScanRules, Setting,
    ShowArguments, Shown, SimArguments, SimPart, SweepArguments, ThreadIds, Wanted,
};

const TOP_ABOUT: &str = "\
Shows what this machine offers for per-CPU data in user space, measures what that data
costs here, simulates what policies for it would cost on other machines, shows how a
process's memory follows its threads, and replays real schedules under every policy.

Without a subcommand it runs `percid bench`: it measures this machine for about 20
seconds and prints at most 25 lines: the machine, the source of IDs, the cost of
operations beside what people use today, whether IDs stay with their CPU, memory, and
whether all counts were exact.";

const INFO_ABOUT: &str = "\
Shows what the running kernel and the machine offer: the restartable-sequences area
(sizes in bytes) and its fields, membarrier, the possible CPUs and those this
process may use, cores, L3 caches and NUMA nodes, each source of IDs with the reason
if it is not available, and the source chosen.

With --check it tests at length what percid's promises rest on, and ends with status 1
if what percid chose is not as promised, or with 3 if nothing of a part could be tried
(NOT CHECKED; as_promised is null in JSON). A quarter of --seconds goes to the first part, half to
the third and a quarter to the last; the second takes 3 seconds, at most 12:

  - whether the kernel aborts a critical section that is fenced or preempted: a section
    that goes on although it had to be aborted is counted under IGNORED. 64-bit Arm
    kernels from 6.19 to 7.0.13 ignore; percid then uses atomics by itself, and the last
    line says both: the kernel breaks its promise, and percid's choice keeps its own
  - how the kernel's own IDs behave, by an experiment: the release is a hint only, since
    changes are backported (`percid kernel-ids` alone)
  - whether counters of every source lose anything while their threads are moved,
    preempted and fenced, and their values are taken out meanwhile
  - what moving costs, and how often it takes a slow path, as `percid bench wander`

A run in which nothing was lost is no proof: the kernel's IDs of Linux 6.4 to 6.18
can be handed out twice, which happens rarely (docs/explanation/kernel-id-bug.md). They
are only used where PERCID_SOURCE or the program asks for them.";

const INFO_EXAMPLES: &str = "\
Examples:
  percid info
  percid info --json | jq .machine.chosen
  percid info --check --seconds 60";

const BENCH_ABOUT: &str = "\
Measures this machine and prints a summary of at most 25 lines: the costs of operations
with one thread on each allowed CPU, whether IDs stay with their CPU, the memory of
counters, and whether all counts were exact. All of it comes from the parts below, which
are scaled to fit the time given by --seconds; --full prints their tables as well, --json
has all of them, --html shows them as charts. On machines with many CPUs the intermittent
part is cut to fewer bursts and then to fewer CPUs; its rows say so.

The memory of counters is what the process grew by when each of 10000 counters was added
to on every allowed CPU, and the counters' handles; in JSON the object `memory` (source,
counters, ids, and in bytes handles, copies and per_counter_and_id).

Colours appear on a terminal only, and not where NO_COLOR is set.";

const TOP_EXAMPLES: &str = "\
Examples:
  percid                             measure this machine for about 20 seconds
  percid --full                      the same with all tables
  percid --html here.html            the same as a page with charts
  percid info                        what it offers, which source of IDs was chosen, and why
  percid info --check                whether this kernel does what percid's promises rest on
  percid bench ops --json | jq .ratios
  percid bench increments --svg increments.svg
                                     the cost of an increment with 1 to 8 threads, drawn
  percid bench intermittent --delay-ms 10,200 --prefault
  taskset -c 0-3 percid bench        measure as a program confined to four CPUs
  PERCID_SOURCE=table percid info
  percid sim published                   published results beside simulated ones
  percid sim run --workload container --policy per-cpu,percid-table
  percid kernel-ids                  what the running kernel's own IDs do
  percid numa demo                   memory that follows its threads, tried here
  percid trace record -- make -j8    the schedule of a program, to be replayed
  percid trace replay trace.parquet  under every policy";

/// Per-CPU data on this machine: what it offers and costs here, and what it would cost elsewhere
#[derive(Clone, Debug, Parser)]
#[command(
    name = "percid",
    version,
    long_version = VERSION.long(),
    long_about = TOP_ABOUT,
    after_long_help = manual(TOP_EXAMPLES),
    disable_help_subcommand = true,
)]
pub(crate) struct Cli {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) everything: EverythingArguments,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the kernel's interfaces, the CPUs, the sources of IDs and the one chosen
    #[command(
        long_about = INFO_ABOUT,
        after_long_help = manual(INFO_EXAMPLES),
    )]
    Info(InfoArguments),
    /// Measure this machine
    #[command(
        long_about = BENCH_ABOUT,
        after_long_help = manual("Examples:\n  percid bench\n  percid bench --full\n  percid bench --html here.html\n  percid bench --seconds 60 --json > here.json"),
        disable_help_subcommand = true,
    )]
    Bench(BenchArguments),
    /// Simulate policies on other machines
    #[command(
        long_about = sim::ABOUT,
        after_long_help = manual(sim::EXAMPLES),
        disable_help_subcommand = true,
    )]
    Sim(SimArguments),
    /// Balance a program's own memory among NUMA nodes: show it, watch it, try it
    #[command(
        long_about = numa::ABOUT,
        after_long_help = manual(numa::EXAMPLES),
        disable_help_subcommand = true,
    )]
    Numa(NumaArguments),
    /// Test how the running kernel's concurrency IDs behave, in a few seconds
    #[command(long_about = KERNEL_IDS_ABOUT, after_long_help = manual(KERNEL_IDS_EXAMPLES))]
    KernelIds {
        /// Run the test in this process and print the recording
        #[arg(long)]
        experiment: bool,

        /// Write a report with the same, which needs no network
        #[arg(long, value_name = "FILE", conflicts_with = "experiment")]
        html: Option<PathBuf>,
    },
    /// Record, convert and replay scheduler traces
    #[command(
        subcommand,
        long_about = trace::ABOUT,
        after_long_help = trace::manual(trace::EXAMPLES),
        disable_help_subcommand = true,
    )]
    Trace(TracePart),
    /// Show a command's manual, or make pages for man(1) of all
    #[command(long_about = HELP_ABOUT, after_long_help = manual(HELP_EXAMPLES))]
    Help(HelpArguments),
    /// Print what makes a shell complete percid's command line
    #[command(long_about = COMPLETIONS_ABOUT, after_long_help = manual(COMPLETIONS_EXAMPLES))]
    Completions {
        /// The shell
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
}

const KERNEL_IDS_ABOUT: &str = "\
Tests how the kernel's own concurrency IDs (mm_cid) behave: threads of another process
run, stop and move by a script, twice, and what they saw is compared with what each
policy of Linux would have given them. It takes two or three seconds; on a busy machine,
where nothing is observed, at most twelve. In JSON:

  observed   the policy that explains every ID, by its Linux release; cpu-numbers where
             the kernel was built without IDs; null if none or more than one does
  hinted     the policy that the kernel's release suggests: a hint, since changes are backported
  differs    both are known, and are not the same
  evidence   for each behaviour, how many IDs were compared, and how many were different
  undecided  why nothing was observed";

const KERNEL_IDS_EXAMPLES: &str = "\
Examples:
  percid kernel-ids
  percid kernel-ids --json | jq .observed";

const HELP_ABOUT: &str = "\
Shows the manual of a command, as --help behind it does.

With --man it is a page for man(1) instead; with --man DIR the pages of all commands are
written into that folder, which must exist: percid.1, percid-bench.1, percid-bench-ops.1
and so on. The same version always writes the same pages.";

const HELP_EXAMPLES: &str = "\
Examples:
  percid help sim run
  percid help sim run --man | man -l -
  mkdir -p ~/.local/share/man/man1 && percid help --man ~/.local/share/man/man1";

const COMPLETIONS_ABOUT: &str = "\
Prints a script for the shell, which completes subcommands, options and the values of
those that have a list of them. Files that are read once, at the start of a shell:

  bash    ~/.local/share/bash-completion/completions/percid, with the package
          bash-completion; or a line `source <(percid completions bash)` in ~/.bashrc
  zsh     _percid in a folder of $fpath
  fish    ~/.config/fish/completions/percid.fish";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  percid completions bash > ~/.local/share/bash-completion/completions/percid
  percid completions zsh > ~/.zfunc/_percid
  percid completions fish > ~/.config/fish/completions/percid.fish";

#[derive(Clone, Debug, Args)]
pub(crate) struct HelpArguments {
    /// The command whose manual is shown [default: percid itself]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    /// Make a page for man(1); in the folder DIR all of them
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    pub(crate) man: Option<Option<PathBuf>>,
}

/// The output of `--version`.
const VERSION: Version = Version {
    name: "percid",
    number: env!("CARGO_PKG_VERSION"),
    features: &[
        ("peers", cfg!(feature = "peers")),
        ("counter-peers", cfg!(feature = "counter-peers")),
        ("metrics-peers", cfg!(feature = "metrics-peers")),
        ("sync-peers", cfg!(feature = "sync-peers")),
        ("trace", cfg!(feature = "trace")),
    ],
};

#[derive(Clone, Debug, Args)]
pub(crate) struct InfoArguments {
    /// Test at length whether this kernel does what percid's promises rest on
    #[arg(long)]
    pub(crate) check: bool,

    /// Duration of the check in seconds [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "check")]
    seconds: Option<Duration>,

    /// Write a page with the same, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl InfoArguments {
    /// Returns the duration of the check.
    pub(crate) fn length(&self) -> Duration {
        self.seconds.unwrap_or(Duration::from_secs(20))
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct BenchArguments {
    #[command(flatten)]
    pub(crate) everything: EverythingArguments,

    #[command(subcommand)]
    pub(crate) part: Option<BenchPart>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct EverythingArguments {
    #[command(flatten)]
    pub(crate) length: Length,

    /// Print all tables as well: every operation, source of IDs and number of threads
    #[arg(long)]
    pub(crate) full: bool,

    /// Write a page with charts and all figures, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl EverythingArguments {
    /// Returns the first of the options that was given.
    fn given(&self) -> Option<&'static str> {
        let seconds = self.length.seconds.map(|_| "--seconds");
        seconds.or(self.full.then_some("--full")).or(self.html.as_ref().map(|_| "--html"))
    }
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum BenchPart {
    /// Cost of single operations beside what people use today
    #[command(long_about = OPS_ABOUT, after_long_help = manual(OPS_EXAMPLES))]
    Ops(PartArguments),
    /// Cost of one increment by the number of threads, also as a picture
    #[command(long_about = INCREMENTS_ABOUT, after_long_help = manual(INCREMENTS_EXAMPLES))]
    Increments(IncrementsArguments),
    /// Cost of setting one's bit in a mask that all threads share
    #[command(long_about = MASK_ABOUT, after_long_help = manual(MASK_EXAMPLES))]
    Mask(PartArguments),
    /// Cost of one update of a metric, through the interfaces that programs use
    #[command(long_about = METRICS_ABOUT, after_long_help = manual(METRICS_EXAMPLES))]
    Metrics(MetricsArguments),
    /// Cost of reading under a lock, references and limits, beside what people use today
    #[command(long_about = SYNC_ABOUT, after_long_help = manual(SYNC_EXAMPLES))]
    Sync(SyncArguments),
    /// Cost of allocating and freeing with a cache for each CPU, beside allocators alone
    #[command(long_about = ALLOC_ABOUT, after_long_help = manual(ALLOC_EXAMPLES))]
    Alloc(AllocArguments),
    /// Cost of threads that keep changing their CPU
    #[command(long_about = WANDER_ABOUT, after_long_help = manual(WANDER_EXAMPLES))]
    Wander(PartArguments),
    /// Cost of coming back to per-CPU memory after a pause
    #[command(long_about = intermittent::ABOUT, after_long_help = manual(intermittent::EXAMPLES))]
    Intermittent(IntermittentArguments),
}

const OPS_ABOUT: &str = "\
Measures what single operations cost, in nanoseconds, in one process and one run:
percid's for each source of IDs that is available, and beside them what people use
today (source none). Each operation has a title and a name, `title` and `op` in JSON.

  counters
    plain_add            one addition to memory that no other thread touches: the floor
    atomic_private       an atomic addition to memory that no other thread touches
    atomic_shared        an atomic addition to one integer that all threads share
    thread_local         an addition to a `thread_local!` cell
    counter_add          Counter::add
  lists and pools: one word pushed and popped, or 64 bytes taken and given back
    thread_local_vec     a `thread_local!` RefCell<Vec>
    mutex_vec            one Mutex<Vec> of the standard library for all threads
    array_queue          one ArrayQueue of crossbeam for all threads
    stack_push_pop       Stack::push and Stack::pop
    malloc_free          malloc and free of the C library
    mimalloc             mi_malloc and mi_free
    pool_get_put         Pool::get, and the object dropped
  locks: one addition to an integer that is reached under a lock
    std_mutex_private    the standard library's Mutex, which no other thread takes
    std_mutex_shared     the same Mutex for all threads
    parking_lot_mutex_private, parking_lot_mutex_shared
                         the same with the Mutex of parking_lot
    local_with           Local::with
  histograms: one value below 2^20 recorded, another one each time
    hdrhistogram         one hdrhistogram with two digits behind a Mutex for all threads
    histogram_record     Histogram::record
  rings: one record of 16 bytes appended, which no thread reads
    array_queue_overwrite
                         one ArrayQueue of crossbeam for all threads, which overwrites
                         the oldest
    ring_append          Ring::append that overwrites the oldest
    ring_append_full     Ring::append that drops the record, since the ring is full

Each is measured with one thread, with one thread pinned to each allowed CPU, and with
four unpinned threads per allowed CPU. Other people's crates are measured unless the
program was built with --no-default-features; --features counter-peers adds more
counters.

A round visits every one of these once, in an order that changes from round to
round, in batches of about one millisecond; rounds repeat until the time is up. A
batch's figure is

  ns per operation = wall time x min(threads, CPUs) / operations of all threads

from the start of the first thread to the end of the last: what one operation costs
the thread that does it, the loop around it included. A batch in which the kernel
took a CPU away from a thread is discarded and repeated, up to 5 times; not with
four threads per CPU, where that is the normal case. ns_min and ns_median are over
the rounds. ratio_to_plain_add is the median of each round's own ratio to plain_add
with the same threads. Varying clock speeds disturb it least: compare machines and
builds by it.

A second table, in JSON the list `ratios`, says how many times percid's operation
costs what another one does: `median` of each round's own ratio, and `of_minima`.

At the end every structure has to account for all that went into it: a counter's sum
equals the number of additions, and a histogram's count the number of records; the words
popped from a list and those left in it are those that were pushed; every object of a
pool is dropped once; the records that a ring holds and those it lost are those that were
appended. A difference is an error. In JSON these are the list `sums`, with `added` and `sum`.";

const OPS_EXAMPLES: &str = "\
Examples:
  percid bench ops
  percid bench ops --seconds 2 --html ops.html
  percid bench ops --seconds 30 --json | jq '.results[] | select(.op == \"counter_add\")'
  taskset -c 1 percid bench ops --json | jq '.ratios[] | select(.to == \"mimalloc\")'";

const INCREMENTS_ABOUT: &str = "\
Measures what one increment costs with one thread, with two, and so on, in nanoseconds:
percid's counter with the source of IDs that was chosen, beside a plain addition, an
atomic addition to an integer of the thread's own, one to an integer that all threads
share, and a thread-local cell. Up to the number of allowed CPUs each thread is pinned
to a CPU of its own; more threads run where the scheduler puts them. Rounds, batches
and figures are those of `percid bench ops`; in JSON the list is `increments`.

With --svg a picture of the medians is written as well. It follows the reader's
preference for light or dark.";

const INCREMENTS_EXAMPLES: &str = "\
Examples:
  percid bench increments
  percid bench increments --threads 1-8 --svg increment-cost.svg
  percid bench increments --threads 1-64 --seconds 60 --json | jq '.increments[]'";

const METRICS_ABOUT: &str = "\
Measures what one update of a metric costs, in nanoseconds, through the interfaces that
programs use: percid's metrics (whose peer begins with `percid`) beside other clients. Only
where the program was built with --features metrics-peers.

  counter_bound    a counter that the program keeps: percid::Counter itself, behind the
                   facade `metrics`, in prometheus-client's registry; an empty handle of
                   the facade; metrics-exporter-prometheus, prometheus-client, prometheus,
                   opentelemetry_sdk
  histogram_bound  a histogram of ten limits that the program keeps, with its sum (without:
                   percid::Histogram); and the sum alone, which all of the others wait for
  counter_macro    counter!(\"requests\", \"path\" => \"/index\").increment(1): found each time;
                   and with a label that the compiler does not know, which the facade
                   allocates before anything is found
  family_lookup    one of 64 label sets found, and its counter incremented

Each is measured with one thread, with one thread pinned to each of two CPUs, and with 8
threads. Rounds, batches and figures are those of `percid bench ops`. Whatever can be counted at
the end must be exact; otherwise `metrics_exact` is false, which is an error. (The exporter
keeps every value of a histogram until its page is asked for, which is done ten times a
second.)";

const METRICS_EXAMPLES: &str = "\
Examples:
  cargo run --release --features metrics-peers -- bench metrics
  percid bench metrics --seconds 60 --json | jq '.results[] | [.op, .peer, .threads, .ns_min]'";

const SYNC_ABOUT: &str = "\
Measures what the frequent operations of percid-sync cost, in nanoseconds, for each source
of IDs that is available, and beside them what people use today (source none).

  plain_add           one addition to memory that no other thread touches: the floor
  counter_add         Counter::add
  reading under a lock
    std_rwlock_read   the standard library's RwLock
    parking_lot_rwlock_read, sharded_lock_read
                      RwLock of parking_lot, ShardedLock of crossbeam
    rw_lock_read      RwLock of percid-sync
  reading what is replaced
    epoch_pin         a pin of crossbeam-epoch
    arc_swap_load     ArcSwap::load
    domain_read       Domain::read
    rcu_cell_load     a guard, and RcuCell::load
  references: one taken and given back
    std_arc           Arc of the standard library
    arc               Arc of percid-sync, whose owner lives
  limits and records
    atomic_budget     one unit charged and released by an atomic that all threads share
    budget_charge     Budget::try_charge and Budget::release
    budget_load       Budget::approximate
    read_buffer       ReadBuffer::record, and a drain by every thousandth

Each is measured with one thread, with one thread pinned to each of two CPUs, and with 8
threads. Rounds, batches and figures are those of `percid bench ops`; so are the ratios, the
list `sync_ratios` in JSON. Other people's crates are measured only if the program was built
with --features sync-peers. At the end no reader may be inside, and no unit charged; otherwise
`sync_exact` is false, which is an error.";

const SYNC_EXAMPLES: &str = "\
Examples:
  cargo run --release --features sync-peers -- bench sync
  percid bench sync --seconds 30 --json | jq '.sync_ratios[] | select(.op == \"rw_lock_read\")'";

const ALLOC_ABOUT: &str = "\
Measures what it costs to free one object and to allocate another, of 16 to 1,023 bytes, in
nanoseconds: with the caches of percid-alloc (PerCpu) for each source of IDs that is available,
and beside them with allocators alone (source none).

  plain_add           one addition to memory that no other thread touches: the floor
  each thread replaces one of its own 512 objects
    system_mixed      the allocator of the C library
    mimalloc_mixed    mi_malloc and mi_free
    per_cpu_mixed     PerCpu in front of the system's
    per_cpu_mimalloc_mixed
                      PerCpu in front of mimalloc
  all threads replace one of 512 objects that they share: most are freed by another thread
    system_shared, mimalloc_shared, per_cpu_shared

Each is measured with one thread, with one thread pinned to each of two CPUs, and with 8
threads. Rounds, batches and figures are those of `percid bench ops`; so are the ratios, the
list `alloc_ratios` in JSON. The list `alloc_idle` has the memory that each allocator keeps
(`kept`, bytes), measured by a process of its own: as many threads as --idle-threads says have
each used 1 MiB of such objects, two at a time, and wait with none. At the end every block of PerCpu must be an object, cached or given
back; otherwise `alloc_exact` is false, which is an error.";

const ALLOC_EXAMPLES: &str = "\
Examples:
  percid bench alloc --seconds 30
  percid bench alloc --json | jq '.alloc_ratios[] | select(.threads == 8)'";

const MASK_ABOUT: &str = "\
Measures what it costs a thread to be a member of a mask that all threads share, in
nanoseconds. Each thread sets its own bit of one mask again and again. The bit is already
set each time but the first, as it is where members rarely leave.

  mask_fetch_or  sets the bit by an atomic instruction, whether it is set or not
  mask_test_set  loads and tests the bit, and sets it only if it is clear
  mask_mark      ActiveMask::mark
  plain_add      one addition to memory that no other thread touches, for comparison

Each is measured with one thread, and with one thread pinned to each allowed CPU. With
several threads the unconditional instruction takes the cache line away from all others
each time; a load leaves it where it is. Rounds, batches and figures are those of `percid bench
ops`. At the end every thread that set its bit must be found in the mask; otherwise
`mask_exact` is false, which is an error.";

const MASK_EXAMPLES: &str = "\
Examples:
  percid bench mask
  percid bench mask --seconds 10 --json | jq '.mask[] | [.op, .threads, .ns_min]'";

const WANDER_ABOUT: &str = "\
Measures what per-CPU data costs threads that keep changing their CPU, in nanoseconds
per move, including ten increments of a counter after each move. The moves:

  forced  the affinity of one thread sends it from CPU to CPU, around and around
  pipe    two threads wake each other through pipes, and run where the scheduler
          lets them: a wake counts as a move, whether the CPU is another one or not

The counters:

  none          none: the bare move
  kernel        a Counter with the kernel's IDs
  table         a Counter with percid's IDs: while steals are frequent there are extra
                IDs, up to the CPUs visited within 100 ms
  table-strict  the same with IdLimit::Strict: never more IDs than threads
  atomic        a Counter without IDs

In a round each counter has one batch of 20 ms of each kind, in an order that changes
from round to round; rounds repeat until the time is up. The columns, in JSON the keys:

  min, median   ns_min, ns_median      over the rounds
  above bare    ns_above_bare          the median of each round's difference to none
  above kernel  ns_above_kernel        the same to kernel
  slow paths    slow_paths_per_move    how often a CPU had to ask for an ID
  steals        steals_per_move        how often that ID was taken from another CPU
  IDs           ids                    the most IDs that the table's CPUs held

and slow_paths_per_second. With a single allowed CPU nothing is measured.";

const WANDER_EXAMPLES: &str = "\
Examples:
  percid bench wander
  percid bench wander --seconds 20 --json | jq '.wander[] | [.course, .counter, .ns_above_kernel]'";

/// The time to measure
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Length {
    /// Duration in seconds [default: 20; ops and increments alone 10, wander 5, mask 3]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,
}

/// The duration of one part, and the file of its report.
#[derive(Clone, Debug, Args)]
pub(crate) struct PartArguments {
    #[command(flatten)]
    pub(crate) length: Length,

    /// Write a page with charts and all figures, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SyncArguments {
    #[command(flatten)]
    pub(crate) length: Length,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AllocArguments {
    #[command(flatten)]
    pub(crate) length: Length,

    /// Numbers of threads for which the memory that is kept is measured, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [10, 100, 1000], value_parser = thread_count)]
    pub(crate) idle_threads: Vec<usize>,

    /// Measure the memory that one allocator keeps, and print that only
    #[arg(long, value_name = "ALLOCATOR", hide = true)]
    pub(crate) idle_of: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MetricsArguments {
    #[command(flatten)]
    pub(crate) length: Length,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct IncrementsArguments {
    #[command(flatten)]
    pub(crate) length: Length,

    /// Numbers of threads
    #[arg(long, value_name = "FIRST-LAST", default_value = "1-8", value_parser = threads)]
    pub(crate) threads: (usize, usize),

    /// Write a picture to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Words for the line below the picture, such as the commit that was measured
    #[arg(long, value_name = "TEXT", requires = "svg")]
    pub(crate) note: Option<String>,
}

/// The largest number of threads of a benchmark.
const MAX_THREADS: usize = 4096;

/// Parses a range of thread counts.
fn threads(text: &str) -> Result<(usize, usize), String> {
    text.split_once('-')
        .and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)))
        .filter(|&(first, last)| 1 <= first && first <= last && last <= MAX_THREADS)
        .ok_or_else(|| format!("expected FIRST-LAST with 1 <= FIRST <= LAST <= {MAX_THREADS}"))
}

/// Parses one number of threads.
fn thread_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX_THREADS).contains(count));
    count.ok_or_else(|| format!("expected 1 to {MAX_THREADS}"))
}

/// Reads the arguments. `Err` is the exit status after help, the version or an error has been
/// printed.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    let cli =
        Cli::try_parse().map_err(|error| usage_error::show(&error, Cli::command(), &VERSION))?;
    if let Some(option) = misplaced(&cli) {
        return Err(exit::refuse(format_args!("{option}")));
    }
    Ok(cli)
}

/// Returns an error for options before a subcommand, which would otherwise be ignored silently.
fn misplaced(cli: &Cli) -> Option<String> {
    match &cli.command {
        None => None,
        Some(Command::Bench(bench)) => match (cli.everything.given(), &bench.part) {
            (Some(option), _) => {
                Some(format!("'{option}' belongs after the subcommand: percid bench {option}"))
            }
            (None, Some(part)) => {
                bench.everything.given().map(|option| misplaced_before(option, part))
            }
            (None, None) => None,
        },
        Some(_) => cli.everything.given().map(|option| {
            format!("'{option}' in front of a subcommand is allowed with 'bench' only")
        }),
    }
}

fn misplaced_before(option: &str, part: &BenchPart) -> String {
    let part = match part {
        BenchPart::Ops(_) => "ops",
        BenchPart::Increments(_) => "increments",
        BenchPart::Mask(_) => "mask",
        BenchPart::Metrics(_) => "metrics",
        BenchPart::Sync(_) => "sync",
        BenchPart::Alloc(_) => "alloc",
        BenchPart::Wander(_) => "wander",
        BenchPart::Intermittent(_) if option == "--html" => "intermittent",
        BenchPart::Intermittent(_) => {
            return format!(
                "'{option}' is not allowed with 'intermittent', whose length follows from --delay-ms and --bursts"
            );
        }
    };
    match option {
        "--seconds" => {
            format!("'--seconds' belongs after '{part}': percid bench {part} --seconds SECONDS")
        }
        "--html" if part != "increments" => {
            format!("'--html' belongs after '{part}': percid bench {part} --html FILE")
        }
        _ => format!("'{option}' is allowed where all parts are measured: percid bench {option}"),
    }
}
