//! The arguments of the subcommands of `percid trace` that analyse a recorded schedule
//! independently of IDs, and their manuals.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::whole;
use crate::trace_window::WindowArguments;

/// A recording, which part of it, and what is shown
#[derive(Clone, Debug, Args)]
pub struct QuestionArguments {
    /// The trace, in any format that is read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub window: WindowArguments,

    /// Show this number of lines in each table; --json has 10000, or this number if it is more
    #[arg(long, value_name = "N", default_value = "10", value_parser = whole::<1, 1_000_000>)]
    pub limit: u64,

    /// Also write a report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The meaning of the window for these subcommands, and the cases without a result.
const COMMON: &str = "\
--from and --to choose a part of the recording, in seconds since its first event; what happened
before it is still followed, so that a wait which began earlier has its whole length. --process
chooses processes by number or name, separated by commas.

The output begins with the quality of the trace as a whole, in JSON `quality`. If it is
insufficient, no values are printed; the JSON output has null in their place. Only intervals with a
recorded beginning and end count.";

/// Returns the manual of one of these subcommands.
pub(crate) fn about(of: &str) -> String {
    format!("{of}\n\n{COMMON}")
}

pub(crate) const LATENCY_ABOUT: &str = "\
How long do threads wait for a CPU? For each process and thread, in milliseconds:

  run queue    run_queue   from when it was runnable until it ran: after it was woken, and after it
                           was preempted or yielded
  preempted    preempted   of these, the number and the sum of those after preemption
  wake-up      wake_up     from when another thread began to wake it (sched_waking) until it ran;
                           without that event from when it was runnable (sched_wakeup)

each with count, mean, median, 99th percentile and longest. Count, mean and longest are exact;
percentiles are at most a quarter above the exact ones, or 0.25 us. If a trace has sched_waking and
no sched_wakeup (perf sched record), a run-queue time after a wake-up begins with the waking. If it
has neither (recorded by perf events), there are run-queue times after preemption only.

Then a histogram of all run-queue times, and the longest waits one by one: the thread, the time, the
CPU of the queue, and what that CPU ran during the wait, from its last 64 turns. `idle` is a CPU
that slept, or idled until it noticed. In JSON `processes` have `threads`, each with
`histogram`: how many waits were shorter than `below_ns` and not shorter than the bin before;
`worst` has the longest waits.";

pub(crate) const LATENCY_EXAMPLES: &str = "\
Examples:
  percid trace latency trace.parquet
  percid trace latency trace.parquet --process postgres --worst 20
  percid trace latency trace.parquet --from 12.3 --to 12.4 --json | jq '.worst[0]'";

/// The processes to show, and the number of the longest waits
#[derive(Clone, Debug, Args)]
pub struct LatencyArguments {
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub question: QuestionArguments,

    /// Tell of this number of the longest waits
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<0, 10_000>)]
    pub worst: u64,
}

pub(crate) const PREEMPTIONS_ABOUT: &str = "\
Which threads delay which? While a thread is in the queue of a CPU, the threads that run there delay
it. For each pair, between processes and between threads, the longest first:

  waited           victim      the thread in the queue
  for              by          the thread that ran; `idle` (null in JSON): the CPU did nothing yet
  ms               ns          total time
  waits            waits       number of stays in a queue
  longest          longest_ns  the longest time in one of them
  preempted by it  preempted   number of times that it preempted the waiting thread

A wait is attributed to the last 64 turns of the CPU. The rest, unknown turns, and pairs beyond the
first million are in `unattributed_ns`. `waited_ns` is the sum of all pairs and of that. If only
threads of some processes were recorded, others that delayed them may be unknown.";

pub(crate) const PREEMPTIONS_EXAMPLES: &str = "\
Examples:
  percid trace preemptions trace.parquet
  percid trace preemptions trace.parquet --process postgres --json | jq '.threads[0]'";

pub(crate) const MIGRATIONS_ABOUT: &str = "\
Which threads move from CPU to CPU, how far, and at what cost? A move is a turn on another
CPU than the turn before. For each thread, those that moved most first:

  turns        turns          how often a CPU began to run it
  moves, %     moves          turns on another CPU than before
  waiting      while_waiting  of these, after it had been preempted: it was moved while it waited;
                              the others are in JSON at_wake_up
  core L3 node other node     how far: to another hardware thread of the core, another core behind
                              the same last-level cache, another cache of the node, another node;
                              in JSON same_core, same_l3, same_node, other_node
  cost ms      cost_ns        what it costs more, by the machine's prices
                              (docs/explanation/simulator-model.md), to touch 16 kB once after each
                              move than if it had stayed

The cost is a model's: what the thread touches is not in the recording. --machine must be the
machine that was recorded, or one with as many CPUs.";

pub(crate) const MIGRATIONS_EXAMPLES: &str = "\
Examples:
  percid trace migrations trace.parquet
  percid trace migrations perf.data --machine epyc-9654 --process nginx";

/// The processes to show, and the machine
#[derive(Clone, Debug, Args)]
pub struct MigrationsArguments {
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub question: QuestionArguments,

    /// A machine's name from `percid sim list`, `this`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "this")]
    pub machine: String,
}

pub(crate) const COUNTERS_ABOUT: &str = "\
What did counters count while threads ran? It needs a trace with counters (percid trace record
--counters, or perf record -a -e '{sched:sched_switch,cycles,cache-misses}:S'). A turn is the time
of a thread on a CPU from one switch to the next. For each process, those that ran longest first,
and with --threads for each thread:

  turns, run ms    turns, run_ns  how many turns, and their time
  COUNTER          sum            mean count of a turn; in JSON the sum of all turns
  median           median         counted in the turn in the middle
  /us              per_us         counted in a microsecond of run time

Then the same by where the thread ran before, and by how long ago it stopped there (`pause`; in JSON
pause_below_ns, null for longer ones), in JSON `distances`:

  here             here           on the same CPU, which ran no other thread since
  after others     after_others   on the same CPU, which ran others since
  core L3 node other node         on another hardware thread of the core, another core behind the
                                  same last-level cache, another cache of the node, another node;
                                  in JSON same_core, same_l3, same_node, other_node
  unknown          unknown        what came before is not recorded

with the mean extra cost, by the simulator's prices (docs/explanation/simulator-model.md), of
touching 16 kB at the beginning of such a turn, against 16 kB in the core's caches. percid's advice
is based on these prices, and this is how to check them.

  warm us          warm_ns        if core and cache had work in the pause, which displaced nothing
  cold us          cold_ns        if they idled in the pause

The model knows distance and pause, not what the turn does, so compare lines with each other: what
is counted more where the threads come from farther away, with what the model adds. Lines differ
also in how long turns are. --machine must be the machine that was recorded, or one with as many
CPUs.

Turns that were not counted completely are left out, and their number is printed: the processor's
counters were multiplexed. Turns without a recorded beginning are unknown: as a guest, Linux 6.18
omits most switches away from the idle thread. If only some processes were recorded, others that ran
on a CPU in between may be unknown, so that `here` has turns of `after others`.";

pub(crate) const COUNTERS_EXAMPLES: &str = "\
Examples:
  percid trace record --counters cycles,instructions,cache-misses -- ./server
  percid trace counters trace.parquet
  percid trace counters trace.parquet --threads --process postgres
  percid trace counters trace.parquet --json | jq '.distances[] | {before, pause_below_ns, turns}'";

/// The processes to show, and the machine
#[derive(Clone, Debug, Args)]
pub struct CountersArguments {
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub question: QuestionArguments,

    /// Show each thread too
    #[arg(long)]
    pub threads: bool,

    /// A machine's name from `percid sim list`, `this`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "this")]
    pub machine: String,
}

pub(crate) const USAGE_ABOUT: &str = "\
What do CPUs run over time, and when do they idle while a thread waits for another one?

  CPUs       cpus      for each CPU, in percent of the time: busy, idle, and unknown, because
                       switches are missing. Then for how long it idled while a thread that is not
                       bound to one CPU was in the queue of another CPU, which ran something else
                       (idle_while_waiting_ns), and when the worst such idle time began (`worst`)
  threads    threads   how long each ran on each CPU; in JSON `cells`, also by slice of time
  over time  slices    each slice: how busy each CPU was, what was lost on all of them together,
                       and which thread ran longest

A thread is taken to be bound if the recording says that it may use one CPU, or if it is one of the
kernel's threads that each CPU has. Other affinities are not looked at: a thread that may use some
CPUs only seems to wait while another one idles. --process chooses the threads that are told of;
what CPUs do is what they do for all. Text shows the first 16 CPUs.";

pub(crate) const USAGE_EXAMPLES: &str = "\
Examples:
  percid trace usage trace.parquet
  percid trace usage trace.parquet --from 12 --to 12.1 --slices 100
  percid trace usage trace.parquet --json | jq '.cpus[] | {cpu, idle_while_waiting_ns}'";

/// The trace, and the number of slices of time
#[derive(Clone, Debug, Args)]
pub struct UsageArguments {
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub question: QuestionArguments,

    /// Divide the time into this number of slices
    #[arg(long, value_name = "N", default_value = "10", value_parser = whole::<1, 1000>)]
    pub slices: u64,
}

pub(crate) const ADVISE_ABOUT: &str = "\
Lost time, and what to change. The results of the other subcommands and of the replay, as findings
in the order of their cost, the largest first. Each finding has:

  lost              lost_ns   thread time that is lost, and how it was computed (`computed`)
  at least, at most at_least_ns, at_most_ns
                              what the truth is between, if the schedule had stayed as it was;
                              null where a model's prices say it, so that nothing bounds it
  evidence          evidence  what was seen, on which CPUs
  change            change    what to change
  moments           moments   when most was lost: the thread, in whose queue it was, which CPU
                              idled; `ts` is the time by the recording's own clock in ns (in JSON
                              clock_from_ns and clock_to_ns), which Perfetto has as `ts`

and `kind`, why a thread that was ready did not run, or what cost more than it had to:

  bound           its CPU ran something else while one idled on which it may not run
  not-migrated    its CPU ran something else while one idled on which it may run
  throttled       it had to stop and its CPU idled, as a CPU quota makes it
  slow-wake-up    it was woken and its CPU went on idling, for 50 us or more on average
  other-process   no CPU idled, and its CPU ran other processes (`others`; `by` is the first)
  same-process    no CPU idled, and its CPU ran another thread of the process: CPUs were busy for
                  it, so that nothing would have been done sooner; at least 0, and at most the waits
  moves           threads moved between CPUs, and find memory farther away: by the machine's
                  prices for 16 kB after each move
  ids             the concurrency IDs of the kernel that was recorded, against percid's table: by
                  the machine's prices for 16 kB behind each ID

Two findings may be about the same idle CPU, so they do not add up. Findings that cost less than
half a percent of the time are left out (`told_from_ns`). A CPU without recorded events, and idle
times without a beginning or end, do not count as idle. At each moment at most 16 idle CPUs count
for one process. There is no advice from an insufficient trace.";

pub(crate) const ADVISE_EXAMPLES: &str = "\
Examples:
  percid trace advise trace.parquet
  percid trace advise trace.parquet --process postgres --html advice.html
  percid trace advise trace.parquet --json | jq '.findings[] | {kind, lost_ns, change}'";

pub(crate) const COMPARE_ABOUT: &str = "\
How do the processes of two recordings differ? Those with one name are taken together and compared
with those that have this name in the other recording. Recordings may be of different lengths, so
counts are for each second. For each name, those that ran longest first, with a line for each
recording and one for the quotient, B by A:

  CPU ms/s      run_ns          time on CPUs
  waits/s       waits           waits for a CPU, as `percid trace latency` counts them
  preempted/s   preempted       of these, after preemption
  mean, median, 99 %, longest
                mean_ns, median_ns, p99_ns, max_ns
                                of the waits, in ms
  wake-up 99 %  wake_up_p99_ns  from when it began to be woken until it ran, in ms

In JSON `run_ns`, `waits` and `preempted` are of the whole recording, or of the part that
--from and --to choose in both; `span_ns` is how long that is. A name that one recording has not
has null there. --process takes names.

The output begins with the quality of each trace. If one is insufficient, no values are printed.
There is one recording of each, so small differences, and those of the longest waits, may be chance.
Compare two recordings of the same thing first.";

pub(crate) const COMPARE_EXAMPLES: &str = "\
Examples:
  percid trace compare before.parquet after.parquet
  percid trace compare a.parquet b.parquet --process nginx,wrk --from 5";

/// The two traces to compare
#[derive(Clone, Debug, Args)]
pub struct CompareArguments {
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub question: QuestionArguments,

    /// The other recording
    #[arg(value_name = "OTHER")]
    pub other: PathBuf,
}
