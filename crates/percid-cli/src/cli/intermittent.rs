//! The arguments of `percid bench intermittent`, and its manual.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use percid_command::arguments::whole;

pub(super) const ABOUT: &str = "\
Measures what it costs to come back to per-CPU memory after a pause, and whether a CPU
comes back to the same memory.

One thread is pinned to each of the --cpus. All threads meet, so that all hold an ID at
once; then they take turns, one at a time, in an order shuffled once. In a burst a thread
adds one to each of the 16384 one-byte integers (256 cache lines of 64 bytes) of the
area that its index selects. A thread's first turn consists of its warm-up bursts and
its first timed burst; every further turn is one timed burst. The delay lies between the
turns of two threads, so a thread pauses for delay x threads. The indices:

  cpu            the CPU's number
  kernel         the kernel's concurrency ID
  table          percid's own concurrency ID
  thread         the thread's number
  forced-remote  moves on to another CPU's area with every burst, to show the price of
                 losing locality

The indices are measured within the same turn, each with memory of its own, starting
with another index each time. A burst that counts for none comes first, so that no index
pays for waking up; with a single --index there is none, as in the published benchmark.
The columns, in JSON the keys:

  others      overcommit                processes that compete for each CPU
  KiB         other_memory_kib          memory that each of them touches
  ns hot      ns_hot                    the timed burst right after the warm-up
  ns later    ns_later                  the timed bursts after a pause: their mean
  min         ns_later_min              the fastest of them
  median      ns_later_median           and the one in the middle
  ns/burst    ns_per_burst              all timed bursts, the way results are published:
                                        with 5 bursts (hot + 4 x later) / 5
  IDs         ids_used                  distinct indices that any thread used
  per CPU     indices_per_cpu_max       the most distinct indices that one CPU saw over
                                        all its bursts, warm-up included: 1 is cache-local
  faults 1st  minor_faults_first_burst  minor page faults of a thread's very first burst
  per burst   minor_faults_per_burst    minor page faults of a timed burst

Times are means where nothing else is said; they include one reading of the clock, and
not the choice of the index. A burst in the midst of which the kernel took the CPU away
is not timed (bursts_preempted). The areas are mapped copy-on-write and not written to
before, so a first visit costs page faults; --prefault takes those out and leaves the
cost of the caches. On virtual machines the times after long pauses depend little on the
index; the counts are exact everywhere.

--cpus takes the four parts of a machine for which results were published (Linux commit
7e019dcc470f, on 384 hardware threads with 24 L3 caches), here as far as this machine and
the process's affinity have them, or a list:

  one-l3         one CPU of each core behind one L3 cache   published as 8-core/1-L3
  one-per-l3     one CPU behind each L3 cache               24-core/24-L3
  cores          one CPU of each core                       192-core/24-L3
  threads        all of them                                384-thread/24-L3
  LIST           the kernel's numbers, such as 0,2,4-7

What the machine lacks for such a part is said, and which parts are the same CPUs here
(`selection` in JSON).

--overcommit N pins N other processes to each of the CPUs. They never sleep: each adds
one to a byte of every cache line of --other-memory of its own, over and over. So between
two turns other data takes the areas' place in the caches. They are normal programs; if
percid was given a real-time priority (chrt -f 10 percid ...), they have the lowest such
one, so that nothing but them runs between the turns. With several numbers the rows of
all stand beside each other, measured in turn in each repetition. With --other-memory 0
they compute and touch nothing, which shows what a busy CPU loses all the same.

--published measures what was published: all four parts at both delays, with one index
at a time (cpu, kernel and table), each run in a process of its own, 5 repetitions. Beside
each figure stand the published one, and what the simulator forecasts for this machine:

  measured       measured_ns        the mean of the repetitions' ns/burst; from - to the
                                    lowest and the highest
  published      published_ns       of 2 x AMD EPYC 9654; of the kernel's IDs those of its
                                    generation, of percid's table those that are
                                    cache-local, which it is measured against
  forecast       forecast_ns        this machine's CPUs and caches, with the prices of the
                                    published machine
  error          forecast_error     of the forecast against what was measured
  with hot       with_hot_ns        the same where a hot burst costs what it costs here,
                                    measured apart from the benchmark
  error          with_hot_error

No price is taken from what is forecast. The means and the worst of the errors follow the
table, whatever they are. The generation of the kernel's IDs is determined before
(percid kernel-ids); if that is undecided, its release decides. Parts that have a single
CPU here are left out, since there is no other thread to take turns with; parts with the
same CPUs are measured once. The expected duration is printed first: on the published
machine about three hours. Ctrl-C ends it with what was finished.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid bench intermittent
  percid bench intermittent --delay-ms 200 --bursts 20 --prefault
  percid bench intermittent --cpus one-l3 --seed 7 --json | jq '.rows[] | [.index, .ns_later]'
  percid bench intermittent --overcommit 0,1,4 --delay-ms 1,10 --repetitions 5
  percid bench intermittent --overcommit 1 --other-memory 0,1024,16384 --delay-ms 1
  percid bench intermittent --published --html published.html
  percid bench intermittent --published --repetitions 1 --delay-ms 1,10";

#[derive(Clone, Debug, Args)]
pub(crate) struct IntermittentArguments {
    /// Pauses between two threads' turns, in milliseconds, separated by commas
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "10,200", value_parser = whole::<1, 10_000>)]
    pub(crate) delay_ms: Vec<u64>,

    /// Timed bursts per thread and delay
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole::<2, 10_000>)]
    pub(crate) bursts: u64,

    /// Warm-up bursts per thread and index
    #[arg(long, value_name = "N", default_value = "20000", value_parser = whole::<1, 10_000_000>)]
    pub(crate) warmup: u64,

    /// The number of times that all is measured, with new threads and new memory [default: 1; with --published 5]
    #[arg(long, value_name = "N", value_parser = whole::<1, 1_000>)]
    repetitions: Option<u64>,

    /// Write to all memory before the first burst, so that no burst pays for page faults
    #[arg(long)]
    pub(crate) prefault: bool,

    /// one-l3, one-per-l3, cores, threads, or a list such as 0,2,4-7 [default: all allowed CPUs]
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    pub(crate) cpus: Option<CpusChoice>,

    /// The indices that select areas, separated by commas [default: all]
    #[arg(long, value_name = "INDEX", value_delimiter = ',', value_enum)]
    pub(crate) index: Vec<IndexChoice>,

    /// Other processes that compete for each CPU, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0", value_parser = whole::<0, 64>)]
    pub(crate) overcommit: Vec<u64>,

    /// Memory that each of them touches, in KiB, separated by commas
    #[arg(long, value_name = "KIB", value_delimiter = ',', default_value = "1024", value_parser = whole::<0, 1_048_576>)]
    pub(crate) other_memory: Vec<u64>,

    /// Seed of the order in which threads take turns
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) seed: u64,

    /// Measure the published parts of the machine, beside what was published and forecast
    #[arg(long, conflicts_with_all = ["cpus", "index", "overcommit", "other_memory"])]
    pub(crate) published: bool,

    /// Write a page with charts and all figures, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Be one of the processes that compete for a CPU, until stdin is closed
    #[arg(long, value_name = "CPU", hide = true, value_parser = whole::<0, { u32::MAX as u64 }>)]
    pub(crate) compete: Option<u64>,
}

impl IntermittentArguments {
    /// Returns the number of repetitions.
    pub(crate) fn repetitions(&self) -> u64 {
        self.repetitions.unwrap_or(if self.published { 5 } else { 1 })
    }
}

/// The index that selects the area of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IndexChoice {
    Cpu,
    Kernel,
    Table,
    Thread,
    ForcedRemote,
}

/// Selection of the CPUs to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CpusChoice {
    /// One CPU of each core of one last-level cache.
    OneL3,
    /// One CPU of each last-level cache.
    OnePerL3,
    /// One CPU of each core.
    Cores,
    /// All allowed CPUs.
    Threads,
    /// These CPUs, in ascending order.
    List(Vec<u32>),
}

impl CpusChoice {
    /// The parts of a machine for which results were published, in the order of the table.
    pub(crate) const PUBLISHED: [CpusChoice; 4] =
        [CpusChoice::OneL3, CpusChoice::OnePerL3, CpusChoice::Cores, CpusChoice::Threads];
}

impl fmt::Display for CpusChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CpusChoice::OneL3 => "one-l3",
            CpusChoice::OnePerL3 => "one-per-l3",
            CpusChoice::Cores => "cores",
            CpusChoice::Threads => "threads",
            CpusChoice::List(_) => "list",
        })
    }
}

fn cpus(text: &str) -> Result<CpusChoice, String> {
    let named = CpusChoice::PUBLISHED.into_iter().find(|choice| choice.to_string() == text);
    named.or_else(|| Some(CpusChoice::List(list(text)?))).ok_or_else(|| {
        "expected one-l3, one-per-l3, cores, threads, or a list of CPUs such as 0,2,4-7".to_owned()
    })
}

/// Parses CPUs in the kernel's list format; `None` if it is no such list.
fn list(text: &str) -> Option<Vec<u32>> {
    /// Larger than any CPU number of a kernel.
    const MAX_CPU: u32 = 65_536;
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_named_or_listed() {
        assert_eq!(cpus("one-per-l3"), Ok(CpusChoice::OnePerL3));
        assert_eq!(cpus("4-6,0,2,5"), Ok(CpusChoice::List(vec![0, 2, 4, 5, 6])));
        for wrong in ["", "1,", "3-1", "-1", "one-l4", "0x1", "65536", "1-2-3"] {
            assert!(cpus(wrong).is_err(), "{wrong}");
        }
    }
}
