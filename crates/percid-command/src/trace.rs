//! The arguments of `percid trace`, and the manual that `--help` prints. `percid` parses and
//! completes them and has the manual even if `percid-trace`, a separate program, executes the
//! command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::arguments::{BackendChoice, PolicyChoice, pid, policy, seconds, size, whole};
use crate::trace_questions::{
    self as questions, CompareArguments, CountersArguments, LatencyArguments, MigrationsArguments,
    QuestionArguments, UsageArguments,
};
use crate::trace_top::{TOP_ABOUT, TOP_EXAMPLES, TopArguments};
use crate::trace_window::{TimeArguments, WINDOW, WindowArguments};

const EXIT: &str = "\
Output:
  The result goes to standard output, everything else to standard error. With --json
  standard output is exactly one JSON document (`top`: one a line); times in it are nanoseconds
  unless the name says otherwise. Whatever takes more than two seconds tells its progress.

Exit status:
  0    everything asked for was done
  1    nothing may be recorded here, IDs differ from the kernel's, or a file could not be
       read or written
  2    wrong arguments, or a file that is not what it should be (one line on standard
       error says where, and what was expected)
  130  Ctrl-C or SIGTERM; what was finished by then was printed or written: of a replay the
       policies that had seen the whole trace, or its beginning if none had
  N    `record` and `top -- COMMAND`: that of the command, if the recording itself succeeded";

/// The description of the command.
pub const ABOUT: &str = "\
Scheduler traces: which thread ran on which CPU, when, and why it stopped. Records them
from the running kernel, reads those of perf, trace-cmd, bpftrace and Perfetto, stores them as
Parquet, and replays them under every policy for concurrency IDs: what would this policy
have done with my program?

Formats that are read, by what is in the file, not by its name:
  Parquet        written by `percid trace`, or by anything else with the same columns
  .partial       what `percid trace record` has written so far, or before it was killed
  perf.data      `perf sched record`, `perf record -e sched:...`, also compressed, from a pipe,
                 and directories of `perf record --threads`
  trace.dat      `trace-cmd record`, versions 6 and 7, also compressed; all buffers are merged
  Perfetto       traces with ftrace events, compact scheduling events too
  text           `trace-cmd report`, the kernel's `trace` file, `perf script`, `perf sched
                 timehist`, Android's systrace (HTML), docs/how-to/schedule.bt by bpftrace; lines
                 that cannot be read are counted
Each of them may be compressed by gzip or zstd. `-` is standard input, of which 4 GiB are read at
most.

A command takes one recording (`compare`: two), of one machine: also text of trace-cmd report is
refused if several files were given to that.

Not read, and said so: JSON of `perf data convert`, times of clocks that do not count nanoseconds
(uptime, counter, x86-tsc), perf script --deltatime, xz.";

/// Examples of all subcommands.
pub const EXAMPLES: &str = "\
Examples:
  percid trace top                             who runs and who waits, every second
  percid trace record -- make -j8              record a build
  percid trace replay trace.parquet            under all policies, on this machine
  percid trace replay perf.data --policy percid-table,linux-6.14,per-cpu --machine epyc-9654
  percid trace replay trace.parquet --process postgres --html report.html
  percid trace convert perf.data trace.parquet
  percid trace info trace.dat                  what trace-cmd recorded
  perf script --ns | percid trace latency -    or any of the formats from a pipe
  percid trace convert trace.parquet trace.pftrace --policy percid-table
                                               to look at with ui.perfetto.dev";

/// The subcommands.
#[derive(Clone, Debug, Subcommand)]
pub enum TracePart {
    /// Record the schedule of a command, a process or the whole system
    #[command(long_about = RECORD_ABOUT, after_long_help = manual(RECORD_EXAMPLES))]
    Record(RecordArguments),
    /// Show the schedule while it happens: who runs, who waits, and for whom
    #[command(long_about = TOP_ABOUT, after_long_help = manual(TOP_EXAMPLES))]
    Top(TopArguments),
    /// Finish a recording whose recorder was killed
    #[command(
        long_about = RECOVER_ABOUT,
        after_long_help = manual("Examples:\n  percid trace recover trace.parquet.partial\n  percid trace recover trace.parquet.partial -o /other/disk/trace.parquet"),
    )]
    Recover(RecoverArguments),
    /// Show what is in a trace
    #[command(
        long_about = format!("{INFO_ABOUT}\n\n{WINDOW}"),
        after_long_help = manual("Examples:\n  percid trace info perf.data\n  percid trace info trace.parquet --from 12 --to 12.5\n  percid trace info trace.parquet --json | jq .processes"),
    )]
    Info(InfoArguments),
    /// Write a trace in another format
    #[command(long_about = format!("{CONVERT_ABOUT}\n\n{CUT}"), after_long_help = manual(CONVERT_EXAMPLES))]
    Convert(ConvertArguments),
    /// Replay a trace under policies for concurrency IDs
    #[command(long_about = format!("{REPLAY_ABOUT}\n\n{WINDOW}"), after_long_help = manual(REPLAY_EXAMPLES))]
    Replay(ReplayArguments),
    /// Compare the IDs that the kernel gave with those of its policy
    #[command(
        name = "check-ids",
        long_about = KERNEL_IDS_ABOUT,
        after_long_help = manual("Examples:\n  percid trace record -o ids.parquet -- ./server --threads 8\n  percid trace check-ids ids.parquet"),
    )]
    KernelIds(KernelIdsArguments),
    /// Tell how long threads wait for a CPU, and what runs instead
    #[command(
        long_about = questions::about(questions::LATENCY_ABOUT),
        after_long_help = manual(questions::LATENCY_EXAMPLES),
    )]
    Latency(LatencyArguments),
    /// Tell who keeps whom from running
    #[command(
        long_about = questions::about(questions::PREEMPTIONS_ABOUT),
        after_long_help = manual(questions::PREEMPTIONS_EXAMPLES),
    )]
    Preemptions(QuestionArguments),
    /// Tell which threads move from CPU to CPU, how far, and what that would cost
    #[command(
        long_about = questions::about(questions::MIGRATIONS_ABOUT),
        after_long_help = manual(questions::MIGRATIONS_EXAMPLES),
    )]
    Migrations(MigrationsArguments),
    /// Tell what CPUs run over time, and when they idle while a thread waits elsewhere
    #[command(
        long_about = questions::about(questions::USAGE_ABOUT),
        after_long_help = manual(questions::USAGE_EXAMPLES),
    )]
    Usage(UsageArguments),
    /// Tell what was counted while threads ran, by where they had run before
    #[command(
        long_about = questions::about(questions::COUNTERS_ABOUT),
        after_long_help = manual(questions::COUNTERS_EXAMPLES),
    )]
    Counters(CountersArguments),
    /// Tell where time is lost, and what to change
    #[command(
        long_about = questions::about(questions::ADVISE_ABOUT),
        after_long_help = manual(questions::ADVISE_EXAMPLES),
    )]
    Advise(MigrationsArguments),
    /// Compare the waits of two recordings
    #[command(
        long_about = questions::COMPARE_ABOUT,
        after_long_help = manual(questions::COMPARE_EXAMPLES),
    )]
    Compare(CompareArguments),
}

const RECORD_ABOUT: &str = "\
Records which threads run where: switches, wake-ups, migrations, new threads, exec, exit,
affinities as far as they can be seen, timer ticks, and the concurrency IDs that the
kernel hands out (rseq:rseq_update, where it has that event).

  -- COMMAND ...   the command, and all processes and threads that come of it, until it ends. If
                   --seconds or Ctrl-C comes first, the command goes on. With --json its standard
                   output goes to standard error: on standard output there is one document
  --pid PID        that process, and what it creates from now on
  neither          the whole system, until Ctrl-C or --seconds

If it is permitted, all other threads are recorded too: otherwise the trace would not show which
threads delayed the command, nor whether a CPU idled. The trace stores which processes it is about,
and the subcommands report these; --all adds the others. --only records no others, which writes
less; perf events do the same if kernel.perf_event_paranoid is above 0. The trace stores that, too.

--numa-scan also records the kernel's NUMA balancing: the regions of memory that its scan skips,
with the reason (sched:sched_skip_vma_numa, Linux 6.7 and later); the threads that it moves
between nodes or does not (sched_move_numa, sched_stick_numa, sched_swap_numa); and the pages
that are moved (migrate:mm_migrate_pages and mm_migrate_pages_start). If the kernel has kprobes,
probes are set during the recording. Then the trace also has each pass, the memory that it arms,
each hint fault, and their durations. The probe of page faults makes all page faults a little
slower. The regions of scanned processes are read from /proc when they have changed. Events that
this kernel does not have are named. It needs tracefs, memory on at least two nodes, and
kernel.numa_balancing=1: if the kernel does not scan, the missing condition is reported.

--counters also records what the processor and the kernel count in each turn of a thread, from the
switch to it until the switch away from it, in user space and in the kernel; `percid trace
counters` shows it. Up to eight, by perf's names:

  of the processor  cycles, instructions, cache-references, cache-misses, branches, branch-misses,
                    bus-cycles, ref-cycles, stalled-cycles-frontend, stalled-cycles-backend,
                    L1-dcache-loads, L1-dcache-load-misses, LLC-loads, LLC-load-misses,
                    LLC-stores, LLC-store-misses, dTLB-loads, dTLB-load-misses, node-loads,
                    node-load-misses, and its own numbers: r01c2
  of the kernel     task-clock, page-faults, minor-faults, major-faults, context-switches,
                    cpu-migrations, alignment-faults, emulation-faults; every machine has them

It needs kernel.perf_event_paranoid of at most 0, or CAP_PERFMON, because the counters of each CPU
are read at each of its switches. A counter that is not available is refused before the recording
begins, with a list of those that are: most virtual machines have no counters of the processor.

There are two ways to record. The first that is permitted is used:

  tracefs   the kernel's own event buffers. Needs root, or rights on /sys/kernel/tracing
  perf      perf events. Any user may record own commands where
            kernel.perf_event_paranoid is at most 2; switches, new threads and exits only

If neither is permitted, the missing right is named. Events that were lost because buffers were
full are counted; a larger --kernel-buffer-kib helps.

Events are written to FILE.partial while they are recorded. So memory grows with the number of
threads and not with time, and if the recorder is killed, only about the last 0.25 s are missing.
When the recording ends, also after Ctrl-C, FILE.partial is converted to the Parquet file FILE and
removed. Both exist for a moment, so the disk needs room for both. Subcommands that read traces
read a FILE.partial too, and `percid trace recover` finishes it.

  --max-file-size SIZE
      ends the recording before FILE is larger, and says so; what is there is whole. FILE.partial
      stays below three quarters of SIZE, because FILE may be up to a third larger. If the disk is
      full earlier, the recording ends as well, and FILE.partial has all that was written
  --flight-recorder SIZE
      nothing is written while it records. The last events are kept in SIZE of memory (1 to 5
      bytes each), and written to FILE at Ctrl-C, SIGTERM, when the command ends or --seconds are
      over. At SIGUSR1 they are written at once to a file of their own, trace.1.parquet,
      trace.2.parquet ... for trace.parquet: the first name that is free; the recording continues.
      If the recorder is killed, what it had not written is gone. While a file is written it takes
      up to twice SIZE";

const RECORD_EXAMPLES: &str = "\
Examples:
  percid trace record -- make -j8
  percid trace record -o db.parquet --pid $(pgrep -o postgres) --seconds 5
  percid trace record --backend perf -- ./server
  percid trace record --only -- ./server       nothing of other programs
  percid trace record --max-file-size 2G       the whole system, until there are 2 GiB
  percid trace record --flight-recorder 64M -- ./server      only the end of it
  kill -USR1 $(pgrep -nx percid-trace)         what happened just now, in trace.1.parquet
  percid trace record --counters cycles,instructions,cache-misses -- ./server
  percid trace record --numa-scan --pid $(pgrep -o postgres) --seconds 60";

const RECOVER_ABOUT: &str = "\
Makes the Parquet file of a FILE.partial that `percid trace record` left behind: it was killed, or
the disk was full. Says how much there is, and how much may be missing: what happened in about the
last 0.25 s before the end, and what was being written then. The file appears under its name when
it is complete, and FILE.partial is removed then. A recording that still goes on is refused.
It takes little memory, however long the recording is.";

const INFO_ABOUT: &str = "\
Shows where a trace comes from, how many events of each kind it has, whether some were
lost, and its processes: threads, most threads that ran at once, turns on CPUs.";

const CONVERT_ABOUT: &str = "\
Writes a trace in another format, by the name of the file that is written:

  .parquet                       all there is; docs/reference/trace-format.md has the columns
  .pftrace, .perfetto-trace      for ui.perfetto.dev and the Perfetto trace processor: CPUs,
                                 processes and threads. With --policy also a track for
                                 each ID of each process, and arrows from CPU to CPU where
                                 an ID was stolen. Events of NUMA balancing are left out

The file appears under its name when it is complete.";

const CUT: &str = "\
With --from and --to, in seconds since the first event, only that part is written. It begins with
what was known by then: names, processes and affinities of the threads that lived.";

const CONVERT_EXAMPLES: &str = "\
Examples:
  percid trace convert perf.data trace.parquet
  percid trace convert trace.parquet part.parquet --from 12 --to 12.5
  percid trace convert trace.parquet trace.pftrace --policy percid-table
  duckdb -c \"select event, count(*) from 'trace.parquet' group by 1\"";

const REPLAY_ABOUT: &str = "\
Runs policies for concurrency IDs on a recorded schedule: which ID would each thread have had at
each of its turns, and which thread had used that ID's memory before? The schedule stays as it was
recorded. A process is one address space: it begins with exec. Its threads are known from
task:task_newtask, from the thread records of perf and Perfetto, or from tgids in text. Without
these each thread counts as a process by itself, and is marked so.

For each process, whatever the policy: threads, the most that ran at once, time and turns
on CPUs, and how far its threads were moved. For each policy, in JSON the keys of
`policies`:

  IDs          ids_used          different IDs that were used: the number of copies of the data
  bound        ids_bound         the largest ID, plus one
  density      density           most threads that ran at once / IDs; 1 is the best
  CPU core L3 node
               same_cpu, same_core, same_l3, same_node
                                 percent of the acquisitions of an ID that found it where it
                                 was used last: on the same CPU, at least on the same core,
                                 behind the same last-level cache, on the same node; in JSON
                                 shares from 0 to 1
  steals       steals            IDs taken away from another CPU
  far          across_l3s        acquisitions of an ID last used behind another L3 cache
  nodes        across_nodes      the same on another node
  memory       memory_bytes      all copies: IDs x --area-bytes
  us/turn      ns_per_turn       mean cost of touching the 16 kB behind an ID after each
                                 acquisition, by the machine's prices
                                 (docs/explanation/simulator-model.md); in JSON in nanoseconds

A thread acquires an ID when a CPU begins to run it, and when a timer tick finds that its ID has
changed. If a trace has no ticks, they are assumed at the machine's rate.
In JSON also: `first_uses`, acquisitions of an ID that had never been used; `scans` and
`slow_paths` of the policy; `left_out`, policies that could not go on with a process, because the
trace shows what no kernel does; `whole_trace`, false after Ctrl-C.

The output begins with the quality of the trace, in JSON `quality`: `level` is good, limited
or insufficient, `limitations` has the reasons. There is no advice from an insufficient one, for
example of sampled switches or of switches away from threads only.

For a trace with NUMA balancing (`record --numa-scan`) the output also has what each set of rules
for the kernel's scan would have scanned and skipped: of the same regions, at the same passes, with
the same users. linux-6.3 scans every region; base is Linux 6.4 to 6.6; windows, partial and
selective (Linux 6.7) the published series step by step; own-sequences and linux-6.12 the later
fixes; by-activity an idea that is in no kernel. The rules of the recorded kernel are marked *:
there both should agree, and lines of only one of them are counted. In JSON `numa_scan`, with one of
`processes` for each that was scanned: `source` (probes, or tracepoints: what was armed is
inferred), `kernel`, and for each of `rules`

  MiB, pieces  scanned_bytes, pieces
                             memory that was armed, and in how many pieces; of `kernel`
                             without probes: parts of regions
  regions      regions       different regions of which something was armed
  sequences    sequences     how often all regions were walked
  (reasons)    skipped       how often a region was left out, or remarked on, by reason
  same passes  same_passes   passes that say the same as the kernel's, line by line
  same lines   same_lines    lines (a region left out, a piece armed) that both say
  kernel only, rules only    lines that only one of them says
  same %       same          same lines among all that either says; in JSON from 0 to 1
               guessed_pieces
                             pieces of which the trace does not say how many pages change

first_difference has the first pass in which they part. `costs` has what balancing took (pass_ms,
hint_fault_ms with the moves of the pages, and the longest of each), how many pages were seen
(`pages`, of which pages_of_several_threads), and how many moved (`moves`, of which moves_again had
moved before), which share of the accesses was to pages of the thread's own node (`local`, and
local_by_node), and what percid's balancer would have made of the same accesses (percid_local,
percid_moves); null if the trace has no times, as without probes.
docs/reference/trace-inputs-and-quality.md explains what is inferred, and how.

Processes with most turns come first; beyond the first 10000 (or --limit, if that is more) the
others are counted only, in JSON as `processes_left_out`. The memory of a policy for processes that
live at once is limited to 1 GiB: processes beyond it are not replayed, but counted as
`processes_refused`.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  percid trace replay trace.parquet
  percid trace replay perf.data --policy percid-table,linux-6.4 --machine epyc-9654
  percid trace replay trace.parquet --process 1234,nginx --json | jq '.processes[0].policies'
  percid trace replay trace.parquet --html report.html";

const KERNEL_IDS_ABOUT: &str = "\
Replays a trace under the policy of the kernel that made it, and compares: does each
thread have the ID that the kernel really gave it (rseq:rseq_update)? Only for processes
that the trace shows from their exec on, from kernels with concurrency IDs (Linux 6.3 and
later) and that event. If the trace does not suffice, the missing part is named.";

/// A trace
#[derive(Clone, Debug, Args)]
pub struct InfoArguments {
    /// The trace, in any format that is read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub window: WindowArguments,
}

/// The subject, the backend and the duration of a recording
#[derive(Clone, Debug, Args)]
pub struct RecordArguments {
    /// The file to be written
    #[arg(short, long, value_name = "FILE", default_value = "trace.parquet")]
    pub output: PathBuf,

    /// Record this process
    #[arg(long, value_name = "PID", value_parser = pid, conflicts_with = "command")]
    pub pid: Option<u32>,

    /// Record no other threads beside those of the command or process
    #[arg(long)]
    pub only: bool,

    /// Record by this backend [default: the first that is permitted]
    #[arg(long, value_name = "BACKEND", value_enum)]
    pub backend: Option<BackendChoice>,

    /// Stop after this time, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,

    /// Stop before the file is larger: a number of bytes, or 100M, 2G, ...
    #[arg(long, value_name = "SIZE", value_parser = size::<{ 1 << 16 }, { 1 << 50 }>)]
    pub max_file_size: Option<u64>,

    /// Keep only the last events, in this much memory, and write them at the end or at SIGUSR1
    #[arg(long, value_name = "SIZE", value_parser = size::<{ 1 << 18 }, { 1 << 36 }>, conflicts_with = "max_file_size")]
    pub flight_recorder: Option<u64>,

    /// Memory for events that have not been read yet, in KiB for each CPU
    #[arg(long, value_name = "KIB", default_value = "4096", value_parser = whole::<8, 4_194_304>)]
    pub kernel_buffer_kib: u64,

    /// Record NUMA balancing too: the walk of its scan, hint faults, moved threads and pages
    #[arg(long)]
    pub numa_scan: bool,

    /// Count these in every turn of a thread, separated by commas: cycles,cache-misses ...
    #[arg(long, value_name = "COUNTERS", value_delimiter = ',')]
    pub counters: Vec<String>,

    /// The command to be recorded, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The recording to finish
#[derive(Clone, Debug, Args)]
pub struct RecoverArguments {
    /// The file that the recorder left
    #[arg(value_name = "FILE.partial")]
    pub file: PathBuf,

    /// The file to be written [default: FILE.partial without its .partial]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The trace, and the file to write
#[derive(Clone, Debug, Args)]
pub struct ConvertArguments {
    /// The trace to be read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The file to be written: .parquet, .pftrace or .perfetto-trace
    #[arg(value_name = "TO")]
    pub to: PathBuf,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub time: TimeArguments,

    /// For Perfetto: also the IDs under this policy
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub policy: Option<PolicyChoice>,

    /// The machine of that replay: a name from `percid sim list`, `this`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "this", requires = "policy")]
    pub machine: String,
}

/// The trace, the machine, and the output
#[derive(Clone, Debug, Args)]
pub struct ReplayArguments {
    /// The trace, in any format that is read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Policies, separated by commas, or `all`
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', default_value = "all", value_parser = policy)]
    pub policy: Vec<PolicyChoice>,

    /// A machine's name from `percid sim list`, `this`, or a file
    #[arg(long, value_name = "MACHINE", default_value = "this")]
    pub machine: String,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub window: WindowArguments,

    /// Show this number of processes; --json has 10000, or this number if it is more
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<1, 1_000_000>)]
    pub limit: u64,

    /// Memory behind each ID, in bytes
    #[arg(long, value_name = "BYTES", default_value = "16384", value_parser = whole::<1, { 1 << 40 }>)]
    pub area_bytes: u64,

    /// Also write a report with the time line
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The trace and the processes to compare
#[derive(Clone, Debug, Args)]
pub struct KernelIdsArguments {
    /// The trace, in any format that is read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Only this process
    #[arg(long, value_name = "PID", value_parser = pid)]
    pub process: Option<u32>,
}

/// Returns the end of a subcommand's manual: its examples, and the common end.
pub fn manual(examples: &str) -> String {
    format!("{examples}\n\n{EXIT}")
}
