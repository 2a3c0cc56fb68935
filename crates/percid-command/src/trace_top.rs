//! The arguments of `percid trace top`, and its manual.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::arguments::{BackendChoice, pid, seconds, whole};

pub(crate) const TOP_ABOUT: &str = "\
Shows the schedule while it happens: after every interval a screen, until Ctrl-C, --count, or the
end of what is watched.

  -- COMMAND ...   the command, and all that comes of it; its standard output goes to standard error
  --pid PID        that process, and what it creates from now on
  neither          the whole system

It needs the rights that `percid trace record` needs. With perf events usually only the user's own
processes are watched, without wake-ups: then there are waits after preemption only.

The head of a screen, in JSON keys of the document:

  from, to         since_ns, until_ns    the interval, since the recording began
  switches         switches              of the CPUs, from one thread to another
  wake-ups         wakeups               threads that became ready
  lost             lost                  events that the kernel had no room for, also in intervals
                                         that are not shown; try --kernel-buffer-kib
  left out         left_out              events beyond --max-events: figures then are of
                                         `covered_ns`, the beginning of the interval
  not shown        intervals_skipped     intervals before this one that were over while an earlier one
                                         was still drawn
  idle while work waited
                   idle_while_waiting_ns CPUs idled while a thread that is not bound to one CPU was
                                         in the queue of another one, which was busy; of all CPUs
  percid           own_cpu_ns            what percid itself took of CPUs since the screen before, in
                                         own_span_ns
  CPU n            cpus                  for each on which something ran: busy_ns, idle_ns,
                                         idle_while_waiting_ns

The table, in JSON `threads`, or `processes` with --processes: with the most of --sort first

  thread           name, thread, process the name and number; of threads also that of the process
  run %            run_ns                the share of the interval in which a CPU ran it; of
                                         processes up to 100 for each CPU
  waited ms        waited_ns             how long it waited for a CPU: from when it was ready until
                                         it ran
  longest          longest_wait_ns       the longest of these waits
  waits            waits                 how many
  switches         switches              how often a CPU began to run it
  moves            migrations            of these, on another CPU than before
  preempted        preempted             how often it was preempted
  mostly by        preempted_by          which thread, or process, took the CPU from it most often:
                                         name, number and times; null if none is known

A wait belongs to the interval in which it ends, in its whole length: so it may be longer than the
interval, is never counted twice, and appears only when it is over. Time on a CPU belongs to the
interval in which it passes. A CPU is unknown until its first switch. Changes of affinities are not
followed. If a process or a command is watched, the table has its threads only, and a CPU is busy
while it runs them. Idle times are unknown then: `idle_while_waiting_ns` is null, and there is no
`idle_ns`.

On a terminal each screen replaces the one before, as large as the terminal is; when it is over the
last one stays. Elsewhere screens follow each other. With --json each interval is one JSON document in
a line of its own, with all threads. The output of a command to the same terminal appears between
the screens: redirect it.";

pub(crate) const TOP_EXAMPLES: &str = "\
Examples:
  percid trace top
  percid trace top --sort preempted --rows 10 -- make -j8
  percid trace top --processes --interval 5
  percid trace top --pid $(pgrep -o postgres) --count 1
  percid trace top --json --count 10 | jq -c '.threads[0]'";

/// The processes to watch, and the output
#[derive(Clone, Debug, Args)]
pub struct TopArguments {
    /// Watch this process
    #[arg(long, value_name = "PID", value_parser = pid, conflicts_with = "command")]
    pub pid: Option<u32>,

    /// Record by this backend [default: the first that is permitted]
    #[arg(long, value_name = "BACKEND", value_enum)]
    pub backend: Option<BackendChoice>,

    /// The length of an interval, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: Duration,

    /// End after this number of screens
    #[arg(long, value_name = "N", value_parser = whole::<1, 1_000_000_000>)]
    pub count: Option<u64>,

    /// Sort the lines by this value, the largest first
    #[arg(long, value_name = "FIGURE", value_enum, default_value = "wait")]
    pub sort: Sort,

    /// Show processes, each with all its threads together
    #[arg(long)]
    pub processes: bool,

    /// Show this number of lines [default: what the terminal has room for, else 20; all with --json]
    #[arg(long, value_name = "N", value_parser = whole::<1, 1_000_000>)]
    pub rows: Option<u64>,

    /// Look at this number of events of an interval at most: 32 bytes each
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = whole::<1000, 1_000_000_000>)]
    pub max_events: u64,

    /// Memory for events that have not been read yet, in KiB for each CPU
    #[arg(long, value_name = "KIB", default_value = "4096", value_parser = whole::<8, 4_194_304>)]
    pub kernel_buffer_kib: u64,

    /// The command to be watched, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The value that lines are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Time waited for a CPU
    Wait,
    /// Time on a CPU
    Run,
    /// Number of times that a CPU began to run it
    Switches,
    /// Turns on another CPU than before
    Migrations,
    /// Number of times that it was preempted
    Preempted,
}
