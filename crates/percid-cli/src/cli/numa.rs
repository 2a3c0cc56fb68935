//! The arguments of `percid numa`, and its manual.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use percid_numa::{AccessMethod, Rules};
use serde::Serialize;

use percid_command::arguments::{seconds, whole};

use super::manual::manual;

pub(super) const ABOUT: &str = "\
Shows and tries NUMA balancing that a program switches on for its own memory, with
percid-numa: its pages follow the threads that use them, without root and without the
kernel's machine-wide switch.

Without a subcommand it reports on this machine, as `percid numa report` does.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid numa                        the nodes here, and the processes that balance
  percid numa report --pid 1234      what the balancers of a process have done and seen
  percid numa watch 1234             the same as it changes, once a second
  percid numa check-kernel --pid 1234        whether the kernel's balancing is good for a process
  percid numa demo                   the effect of balancing here, on a workload that needs it";

const REPORT_ABOUT: &str = "\
Without --pid: this machine's nodes with their CPUs, memory and distances, the switch of
the kernel's own balancing and its counters since the machine was started (/proc/vmstat),
whether the kernel moves pages for this program, and the processes that publish a balancer's report (Balancer::publish). A process that this user
may not look into is counted only.

With --pid: where the process's memory is, and each of its balancers: what it has done
since it was made. The report is made on request, and looks up where the pages are now. The columns, in JSON the keys of `regions`:

  region      start, end      addresses; those that are `gone` are left alone, because
                              something else is mapped there now
  access      access          how accesses are seen: reported, trapped or written
  node N      pages_by_node   pages on each node; in the table in percent of those that
                              have memory; absent: pages that have none
  local       local, remote   first accesses to armed pages by threads on the page's
                              node, and by others; in the table their local share
  private     private, shared the same by the thread that was seen there before, and by
                              others; in the table their private share
  active      active          bits of the threads that used the region recently
  scanned     scanned         pages that were armed
  moved, pending              pages that were moved, and those that are to move
  scan, move  scan_ns, move_ns
                              time spent on arming and on moving
  skipped     skipped         how often a pass left the region out, by reason; but
                              ignore_pid_inactive counts visits in spite of one:
    unsuitable           its pages cannot move, or a memory policy says where they belong
    shared_ro            a file's pages that cannot be written
    inaccessible         it has no access rights, so no access can be seen
    scan_delay           it is too new
    seq_completed        it was scanned in this sequence already
    pid_inactive         the thread that a pass is for did not use it recently
    ignore_pid_inactive  the same, but its scan had begun and is completed
  failed      failed          pages that could not be looked up, armed or moved, by errno

Beside them stand the kernel's counters of its own balancing (/proc/vmstat), in JSON
`kernel_counters` and `balancer_counters`. They are those of the whole machine since it was
started; one that this kernel has not is absent, in JSON null:

  kernel                  balancers  counts
  numa_pte_updates        scanned    pages armed
  numa_huge_pte_updates              huge pages armed
  numa_hint_faults        accesses   accesses to armed pages that were seen
  numa_hint_faults_local  local      those by threads on the page's own node
  numa_pages_migrated     moved      pages moved to their users
  pgmigrate_success                  pages moved for any reason, a balancer's too
  pgmigrate_fail          failed     pages that could not be moved; a balancer's also those
                                     that could not be looked up or armed

With --timeline, and always in JSON (`timeline`), for the last times that regions were new or
their use changed, oldest first; times in JSON are since the balancer was made, and null
where a stage was not reached:

  began        began_ns        a region was registered, or a change of use was noticed
  start delay  armed_ns        until the first pages were armed: the scan delay, or what was
                               left of a period
  until used   seen_ns         until the first access to one was seen
  filter       pending_ns      until the first page was to move: the two-stage filter
  moving       moved_ns        until the last page had moved
  moved, looked again, batches pages, rearmed, batches
                               pages that moved, pages that were armed again because one
                               more access was to decide, and system calls that moved pages

A balancer's scan_share is a share of the time that the process's threads ran since it was
made, 3 % at most but for a last pass that took long; its move_share is one of its age.
`collisions` is the number of threads that share their bit in the sets of active threads
with another. Balancers are numbered in the order of their file descriptors.

Exit status 1: there is no such process or it must not be looked into, it has no
balancer (its memory is shown nevertheless), or one did not answer in time or with
something else than a report (the others are shown).";

const REPORT_EXAMPLES: &str = "\
Examples:
  percid numa report
  percid numa report --json | jq '.nodes[] | [.node, .memory_free]'
  percid numa report --pid 1234
  percid numa report --pid 1234 --timeline
  percid numa report --pid 1234 --json | jq '.balancers[].regions[].skipped'";

const WATCH_ABOUT: &str = "\
Reads the reports of a process's balancers again and again, and prints the changes,
until the process ends, Ctrl-C is pressed, or --count intervals are over. The
columns:

  time       seconds since the first report
  balancer   its number, see `percid numa report`
  passes     passes over its regions in the interval
  scanned/s  pages that were armed per second
  moved/s    pages that were moved per second
  pending    pages that are to move now
  local %    local share of the accesses that were seen in the interval
  node N %   share of its regions' memory that is on the node now
  skipped    how often each reason was given in the interval

With --json every interval is one line with one document: seconds, and for each balancer
the same (passes, scanned, moved, local, remote, skipped, failed: counts of the interval;
interval_ns its length by the balancer's own clock), with totals and by region;
kernel_counters is what the kernel's counters of `percid numa report`, those of the whole
machine, went up by meanwhile. The last
line has `ended` (the process, or its publication) and `interrupted`.

A balancer spends a tenth of a CPU on reports at most, so with much memory they may come
more seldom than requested.

Exit status 0: the process ended, or the count is reached; 1: there is nothing to watch;
130: Ctrl-C.";

const WATCH_EXAMPLES: &str = "\
Examples:
  percid numa demo & percid numa watch $!
  percid numa watch 1234 --interval 0.5 --count 20
  percid numa watch 1234 --json | jq -c '[.seconds, .balancers[].moved]'";

const COST_ABOUT: &str = "\
Says what the kernel's own NUMA balancing (kernel.numa_balancing) costs and brings a
process, and whether it should be on or off for it: with a confidence, and the reason.
The switch is the machine's: a verdict for one process is advice for a machine that is
its own, or for a memory policy, which takes a process's memory out of balancing. Memory
of a program's own can be balanced by percid-numa in either case.

The counts are those of the whole machine (/proc/vmstat) in the time that the process was
observed, so they are the process's as far as it was the one that ran:

  local accesses   local_share_first, local_share_last: of the first 500 accesses that
                   balancing saw, and of the last, the share by threads on the page's own
                   node; of the first and the last half of them if it saw less than 1000
  of one thread    threads: what the kernel notes of the process's own threads
                   (/proc/PID/task/TID/sched): `private` accesses by the thread that used
                   the page before too, `shared` by another, `local` to pages on the
                   thread's node after they were moved, and pages `moved`
                   by_node: of these accesses, how many the threads that are on each node
                   made, and how many of them are `local`
  in proportion    spread: the share of these accesses that the threads made in proportion
                   to their run time; 1/n where one of n threads is first wherever all go
  memory           memory_before, memory_after: bytes on each node (/proc/PID/numa_maps)
  moved            moved_share: pages that balancing moved, as a share of the process's pages
  in the kernel    system_share: the part of its run time that the process spent in the
                   kernel; the scan, the faults and the moves are at most that
  of the machine   share_of_machine: the process's part of what all processes ran

The verdict, in JSON `verdict` with `advice`, `confidence` and `reason`:

  on           more than 1 % of the memory moved, and at least 80 % of the accesses are to
               memory of single threads (`private` of all, times `spread`); or at least 65 %,
               and of the last accesses 80 % are local, or hardly any since the threads have
               just gone elsewhere (10 %); or nine of ten are local, a tenth more than at first
  off          less moved; or else: several threads use the memory
  cannot_tell  one node has memory, the balancing is off, it saw less than 200 accesses, or the
               kernel does not say where they, or the process's pages, were

Kernels that note nothing of threads leave the machine's counts: on where the local share rose
by a tenth, or is 90 % while pages move; off where it is 90 % and nothing moves, where more
than 1.5 times the memory was moved, or where the share does not rise.

The confidence is high where the figures are clear and nine tenths of what ran was the
process; at most medium where it was half; low otherwise.

What each set of rules would have scanned and left out is recorded by `percid trace record
--numa-scan` and said by `percid trace replay`.

Exit status 0, also where there is no verdict; 1: there is no such process, or the command
cannot be run; 130: Ctrl-C, after which what was seen until then is printed. A command's
own exit status is not passed on, and it goes on if the time is over first.";

const COST_EXAMPLES: &str = "\
Examples:
  percid numa check-kernel --pid 1234 --seconds 60
  percid numa check-kernel -- sleep 1
  percid numa check-kernel --json -- sleep 1 | jq .verdict";

const DEMO_ABOUT: &str = "\
Runs the workload that the published scan was measured with (NUMA01_THREADLOCAL), scaled
to this machine, without balancing and with it, and says what balancing did and how surely.

Threads share one region of memory. Each first writes zeros to all of it while its memory
policy is bound to the first node, so that all pages are there. Then each writes zeros to a
slice of its own, again and again, under the default policy. Threads are confined to
the nodes in turn, so that it is known where each slice belongs. The pages are small.

A pair is a run without balancing and one with it, each in fresh memory and for --seconds
after that beginning. Pairs take turns in which of their runs comes first, so that a machine
that becomes faster or slower meanwhile favours neither. By default there are six pairs of
5 s a run: one minute, and twelve beginnings. If only one node has memory, there is one pair.

The output begins with the state of the kernel's balancing (/proc/sys/kernel/numa_balancing; in JSON
kernel_balancing, null without the file): 0 off, 1 on, 2 among memory tiers only, 3 both.
If it is on it moves pages in all runs, and percid is compared with the kernel instead of
with nothing; root switches it off by `sysctl kernel.numa_balancing=0`.

The figures of a run, in JSON the keys of `runs`, in the order in which they ran:

  pair, balanced     which pair it belongs to, and which run of it it is
  placed             share of the pages that are on the node of their slice's thread:
                     placed_before and placed_after the slices were used
  pages by node      pages_before, pages_after
  GB/s               bytes written per second in the first and in the last second of the
                     run (a quarter of it, if it is shorter than four seconds):
                     bytes_per_second_first, bytes_per_second_last
  balancer           of runs with it, here for all of them together: passes, sequence;
                     pages scanned, moved, pending and failed; local, remote and
                     local_share of the accesses seen; scan_share and move_share, time
                     spent on arming and on moving as a share of the balancer's age, which
                     includes the beginning; skipped: how often the region was left out

What the pairs say, in JSON the keys of `comparison`:

  ratios             for each pair the throughput in the last second with balancing, in
                     multiples of that without; null where one is missing
  estimate           null of fewer than two ratios; pairs: how many there are; ratio:
                     their geometric mean; low, high: the ends of the interval that covers
                     the true one with `confidence` (0.95). The `method` is Student's t
                     interval of the mean of the ratios' logarithms
  placement          where the pages are at the end with balancing, beside without: alike
                     (5 points at most between placed_with and placed_without, the means
                     of placed_after), better or worse; null where the kernel hides it
  verdict            faster or slower: the whole interval is above or below 1;
                     no_difference_shown: it includes 1; too_few_pairs: no estimate;
                     nothing_to_gain: one node has memory
  gain               the estimate where the verdict is faster and the placement better,
                     else null: whatever makes runs faster that end with their pages
                     alike, it is not balancing
  kernel_balances_both
                     whether the kernel moves pages among these nodes in all runs

The scan's constants are shorter than the library's defaults, as a run of seconds needs;
those used are printed. --rules fixed is Linux 6.12's walk and the library's default,
selective the published series, base the kernel before it. A balancer cannot see that a
thread's policy is bound at the beginning, which is why the kernel gave the workload's
memory up under base; here it may be scanned under all three. While a run with balancing
lasts, `percid numa watch PID` shows it; the PID is printed on standard error.

With one node there is nothing to balance: nothing is armed, and both runs show the same
work.

The beginning of a run may take three times --seconds and three times as long as writing
all memory takes at 64 MB a second; then no more is run, and `partial` is true.

Exit status 0: all pairs were run, whatever the verdict; 130: Ctrl-C; the pairs that were
finished are printed.";

const DEMO_EXAMPLES: &str = "\
Examples:
  percid numa demo
  percid numa demo --pairs 12 --seconds 20
  percid numa demo --html demo.html
  percid numa demo --rules base --access trapped --memory 512M --threads 16
  percid numa demo --json | jq '.comparison | [.verdict, .gain]'
  percid numa demo --json | jq '.runs[] | [.pair, .balanced, .placed_after]'";

#[derive(Clone, Debug, Args)]
pub(crate) struct NumaArguments {
    #[command(subcommand)]
    pub(crate) part: Option<NumaPart>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum NumaPart {
    /// Show this machine's nodes and balancing processes, or the balancers of a process
    #[command(long_about = REPORT_ABOUT, after_long_help = manual(REPORT_EXAMPLES))]
    Report(ReportArguments),
    /// Show what the balancers of a process do, interval by interval
    #[command(long_about = WATCH_ABOUT, after_long_help = manual(WATCH_EXAMPLES))]
    Watch(WatchArguments),
    /// Show what the kernel's balancing costs and brings a process, and whether it should be on
    #[command(long_about = COST_ABOUT, after_long_help = manual(COST_EXAMPLES))]
    CheckKernel(CheckKernelArguments),
    /// Run the published workload here, without balancing and with it, in pairs
    #[command(long_about = DEMO_ABOUT, after_long_help = manual(DEMO_EXAMPLES))]
    Demo(DemoArguments),
}

/// How long to wait for an answer
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Patience {
    /// The time that a balancer may take to answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ReportArguments {
    /// Report on this process
    #[arg(long, value_name = "PID", value_parser = process)]
    pub(crate) pid: Option<u32>,

    /// Show where the time goes from a change to memory that is placed
    #[arg(long, requires = "pid")]
    pub(crate) timeline: bool,

    #[command(flatten)]
    pub(crate) patience: Patience,

    /// Write a page with the same, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { timeout: Duration::from_secs(5) }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WatchArguments {
    /// The process
    #[arg(value_name = "PID", value_parser = process)]
    pub(crate) pid: u32,

    /// Time between two reports, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) interval: Duration,

    /// The number of intervals to show [default: until the process ends]
    #[arg(long, value_name = "N", value_parser = whole::<1, 1_000_000_000>)]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) patience: Patience,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CheckKernelArguments {
    /// Observe this process
    #[arg(long, value_name = "PID", value_parser = process, conflicts_with = "command")]
    pub(crate) pid: Option<u32>,

    /// For how long, in seconds [default: 10; a command until it ends]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,

    /// Run this command and observe it
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    /// Write a report with the same, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArguments {
    /// Threads [default: one for each allowed CPU, two at least]
    #[arg(long, value_name = "N", value_parser = whole::<1, 4096>)]
    pub(crate) threads: Option<u64>,

    /// Memory of the region, in bytes or with K, M or G (1024 each) [default: an eighth of what is
    /// free on the first node, at most 1G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,

    /// Pairs of runs, one without balancing and one with it; an error bound needs two [default: 6,
    /// where one node has memory 1]
    #[arg(long, value_name = "N", value_parser = whole::<1, 1000>)]
    pub(crate) pairs: Option<u64>,

    /// Length of each run, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) seconds: Duration,

    /// The rules that choose the regions to scan
    #[arg(long, value_enum, default_value = "fixed")]
    pub(crate) rules: RulesChoice,

    /// The method by which the balancer detects accesses
    #[arg(long, value_parser = access_methods(), default_value = "reported")]
    pub(crate) access: AccessMethod,

    /// Write a report with the same, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// The walks, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RulesChoice {
    Base,
    Selective,
    Fixed,
}

impl RulesChoice {
    pub(crate) fn name(self) -> &'static str {
        match self {
            RulesChoice::Base => "base",
            RulesChoice::Selective => "selective",
            RulesChoice::Fixed => "fixed",
        }
    }

    pub(crate) fn rules(self) -> Rules {
        match self {
            RulesChoice::Base => Rules::BASE,
            RulesChoice::Selective => Rules::SELECTIVE,
            RulesChoice::Fixed => Rules::LINUX_6_12,
        }
    }
}

/// Returns a parser of access methods by name, which lists the names in the manual.
fn access_methods() -> impl TypedValueParser<Value = AccessMethod> {
    let by_name = |name: String| AccessMethod::ALL.into_iter().find(|one| one.name() == name);
    PossibleValuesParser::new(AccessMethod::ALL.map(AccessMethod::name))
        .map(move |name| by_name(name).expect("the parser accepts no other name"))
}

/// Parses a process ID, up to the largest one of Linux (`PID_MAX_LIMIT`).
fn process(text: &str) -> Result<u32, String> {
    whole::<1, 4_194_304>(text).map(|number| number as u32)
}

fn size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.char_indices().last() {
        Some((end, 'K' | 'k')) => (&text[..end], 10),
        Some((end, 'M' | 'm')) => (&text[..end], 20),
        Some((end, 'G' | 'g')) => (&text[..end], 30),
        _ => (text, 0),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| (1 << 20..=1 << 40).contains(bytes))
        .ok_or_else(|| "allowed are 1M to 1024G, as in 512M".to_owned())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes() {
        assert_eq!(size("1M"), Ok(1 << 20));
        assert_eq!(size("1048576"), Ok(1 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        for bad in ["", "M", "1", "1023K", "1025G", "99999999999999999999G", "-1M", "1 M", "1é"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
