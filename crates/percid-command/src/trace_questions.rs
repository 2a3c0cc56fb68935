//! What can be asked of a recorded schedule, whatever the IDs: the arguments of these subcommands of
//! `percid trace`, and their manuals.

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
    pub top: u64,

    /// Also write a report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// What the window is for these subcommands, and when they have no answer.
const COMMON: &str = "\
--from and --to choose a part of the recording, in seconds since its first event; what happened
before it is still followed, so that a wait which began earlier has its whole length. --process
chooses processes by number or name, separated by commas.

First comes what may be concluded from the recording as a whole, in JSON `trustworthiness`. Of an
insufficient one no figures are given; the JSON document then has null in their place. Nothing is
made up: what counts has a beginning and an end that were recorded.";

/// A manual of one of these subcommands.
pub(crate) fn about(of: &str) -> String {
    format!("{of}\n\n{COMMON}")
}

pub(crate) const LATENCY_ABOUT: &str = "\
How long do threads wait for a CPU? For each process and thread, in milliseconds:

  run queue    run_queue   from when it was ready until it ran: after it was woken, and after it
                           had to stop though it could have gone on (preempted, or yielded)
  preempted    preempted   of these, how often it was the second, and how long altogether
  wake-up      wake_up     from when another thread began to wake it (sched_waking) until it ran;
                           without that event from when it was ready (sched_wakeup)

each with how often, the mean, the median, the 99th percentile and the longest. Count, mean and
longest are exact; percentiles are at most a quarter above the exact ones, or 0.25 us. Where a
recording has sched_waking and no sched_wakeup (perf sched record), a run-queue time after a
wake-up begins with the waking. Where it has neither (recorded by perf events), there are
run-queue times after preemption only.

Then a histogram of the run-queue times of all, and the longest waits one by one: who, when, in
which CPU's queue, and what that CPU ran instead, as far as its last 64 turns tell. `idle` is a CPU
that was asleep, or idle until it noticed. In JSON `processes` have `threads`, each with
`histogram`: how many waits were shorter than `below_ns` and not shorter than the bin before;
`worst` has the longest waits.";

pub(crate) const LATENCY_EXAMPLES: &str = "\
Examples:
  percid trace latency trace.parquet
  percid trace latency trace.parquet --process postgres --worst 20
  percid trace latency trace.parquet --from 12.3 --to 12.4 --json | jq '.worst[0]'";

/// Whose waits are told, and how many of the longest
#[derive(Clone, Debug, Args)]
pub struct LatencyArguments {
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub question: QuestionArguments,

    /// Tell of this number of the longest waits
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<0, 10_000>)]
    pub worst: u64,
}
