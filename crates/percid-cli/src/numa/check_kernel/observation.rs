//! Observation of a process and of the machine's counters while it runs.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use super::faults::{Faults, OfNode, Threads};
use crate::numa::kernel_counters::KernelCounters;
use crate::numa::process::Process;
use percid_command::interrupt::Interrupt;

/// Interval between two samples of the process.
const LOOK: Duration = Duration::from_millis(100);

/// Minimum intervals between two samples of the memory and of the threads, and the ratio of the
/// pause after a sample to the duration of the sample.
const MEMORY_LOOK: Duration = Duration::from_secs(1);
const THREADS_LOOK: Duration = LOOK;
const REST: u32 = 50;

/// Maximum number of samples kept: those of half an hour; of days, fewer and fewer.
const MAX_SAMPLES: usize = 20_000;

/// Number of accesses that give the local share to within 7 % (three standard deviations).
const WINDOW: u64 = 500;

/// Run time, in ticks of the kernel's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunTime {
    pub(super) user: u64,
    pub(super) system: u64,
}

impl RunTime {
    pub(super) fn all(self) -> u64 {
        self.user + self.system
    }

    fn since(self, before: RunTime) -> RunTime {
        RunTime {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }

    /// Reads the run time of a process from its `stat`: the fields after its name, which is in
    /// parentheses.
    fn read(process: Process) -> Option<RunTime> {
        RunTime::of_process(&String::from_utf8_lossy(&fs::read(process.path("stat")).ok()?))
    }

    fn of_process(stat: &str) -> Option<RunTime> {
        let behind_name = stat.rsplit_once(')')?.1;
        let mut fields = behind_name.split_ascii_whitespace().skip(11);
        Some(RunTime { user: fields.next()?.parse().ok()?, system: fields.next()?.parse().ok()? })
    }

    /// Reads the run time of the whole machine.
    fn of_machine() -> Option<RunTime> {
        RunTime::of_all_cpus(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the first line: user, nice, system, idle, iowait, irq, softirq.
    fn of_all_cpus(stat: &str) -> Option<RunTime> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> =
            line.split_ascii_whitespace().map_while(|time| time.parse().ok()).collect();
        let [user, nice, system, _, _, irq, softirq] = *times.get(..7)? else { return None };
        Some(RunTime { user: user + nice, system: system + irq + softirq })
    }
}

/// One sample of the process and of the machine.
#[derive(Clone, Debug)]
struct Sample {
    at: Instant,
    counters: KernelCounters,
    memory: Option<BTreeMap<u32, u64>>,
    process: Option<RunTime>,
    machine: Option<RunTime>,
}

impl Sample {
    fn now(process: Process, memory_looks: &mut Looks) -> Sample {
        Sample {
            at: Instant::now(),
            counters: KernelCounters::read(),
            memory: memory_looks.take(MEMORY_LOOK, || memory(process)).flatten(),
            process: RunTime::read(process),
            machine: RunTime::of_machine(),
        }
    }
}

/// Schedule of samples that may take long: the kernel walks all memory, or there are thousands of
/// threads. They are taken less often if they take long.
#[derive(Debug, Default)]
struct Looks {
    next: Option<Instant>,
}

impl Looks {
    /// Takes a sample if it is due, and schedules the next one after at least `rest`.
    fn take<T>(&mut self, rest: Duration, look: impl FnOnce() -> T) -> Option<T> {
        let began = Instant::now();
        if self.next.is_some_and(|next| began < next) {
            return None;
        }
        let seen = look();
        self.next = Some(Instant::now() + (began.elapsed() * REST).max(rest));
        Some(seen)
    }
}

fn memory(process: Process) -> Option<BTreeMap<u32, u64>> {
    process.memory_by_node().ok().filter(|memory| !memory.is_empty())
}

/// The changes between the first and the last sample of a process.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub(super) seconds: f64,
    /// Counters of the whole machine: until the first [`WINDOW`] accesses were detected, while the
    /// last [`WINDOW`] were detected, and over the whole time.
    pub(super) first: KernelCounters,
    pub(super) last: KernelCounters,
    pub(super) all: KernelCounters,
    /// Bytes on each node; `None` if the kernel does not report them or access is denied.
    pub(super) memory_before: Option<BTreeMap<u32, u64>>,
    pub(super) memory_after: Option<BTreeMap<u32, u64>>,
    pub(super) process: Option<RunTime>,
    pub(super) machine: Option<RunTime>,
    /// The kernel's per-thread fault counts; `None` if the kernel does not record them.
    pub(super) faults: Option<Faults>,
    /// The same by the nodes on which the threads were last seen.
    pub(super) by_node: BTreeMap<u32, OfNode>,
    /// The result of [`Threads::spread`].
    pub(super) spread: Option<f64>,
    /// `true` if the process ended, or Ctrl-C was pressed, before the time was over.
    pub(super) ended: bool,
    pub(super) interrupted: bool,
}

/// Observes a process until `goes_on` returns `false`, for at most `limit`.
pub(super) fn observe(
    process: Process,
    limit: Duration,
    interrupt: &Interrupt,
    mut goes_on: impl FnMut() -> bool,
) -> Observation {
    let (mut memory, mut rests, mut threads) =
        (Looks::default(), Looks::default(), Threads::default());
    threads.look(process);
    let mut moments = vec![Sample::now(process, &mut memory)];
    let began = moments[0].at;
    let (mut ended, mut interrupted) = (false, false);
    while !ended && !interrupted && began.elapsed() < limit {
        interrupt.sleep(LOOK.min(limit.saturating_sub(began.elapsed())));
        interrupted = interrupt.pressed();
        ended = !goes_on();
        rests.take(THREADS_LOOK, || threads.look(process));
        moments.push(Sample::now(process, &mut memory));
        if moments.len() >= MAX_SAMPLES {
            thin_out(&mut moments);
        }
    }
    // The last sample is always taken, even if it takes long.
    threads.look(process);
    moments.push(Sample::now(process, &mut Looks::default()));
    let (faults, spread) = (threads.all(), threads.spread());
    let by_node = threads.by_node();
    Observation { faults, by_node, spread, ended, interrupted, ..summary(&moments) }
}

/// Removes every other sample of the middle; the windows at both ends keep their resolution.
fn thin_out<T>(moments: &mut Vec<T>) {
    let (mut place, fine, most) = (0, moments.len() / 4, moments.len());
    moments.retain(|_| {
        place += 1;
        place <= fine || place > most - fine || place % 2 == 0
    });
}

/// Returns the counts during the first accesses, before memory could move, and during the last
/// ones: [`WINDOW`] accesses each, or half of all if there are fewer. Windows of time would not
/// work: if memory moves within a second, the first half of a minute is as local as the last half.
fn first_and_last(looks: &[KernelCounters]) -> (KernelCounters, KernelCounters) {
    let Some((begin, end)) = looks.first().zip(looks.last()) else { return Default::default() };
    let faults = |since: KernelCounters| since.numa_hint_faults.unwrap_or(0);
    let enough = WINDOW.min(faults(end.since(begin)) / 2);
    let is_enough = |since: &KernelCounters| faults(*since) >= enough;
    let first = looks.iter().map(|look| look.since(begin)).find(is_enough);
    let last = looks.iter().rev().map(|look| end.since(look)).find(is_enough);
    (first.unwrap_or_default(), last.unwrap_or_default())
}

fn summary(moments: &[Sample]) -> Observation {
    let (begin, end) = (&moments[0], &moments[moments.len() - 1]);
    let counters: Vec<KernelCounters> = moments.iter().map(|moment| moment.counters).collect();
    let (first, last) = first_and_last(&counters);
    // A process that has ended cannot be read: use the last sample that could be.
    let process = moments.iter().rev().find_map(|moment| moment.process);
    let memory = moments.iter().rev().find_map(|moment| moment.memory.clone());
    let since = |now: Option<RunTime>, before: Option<RunTime>| Some(now?.since(before?));
    Observation {
        seconds: (end.at - begin.at).as_secs_f64(),
        first,
        last,
        all: end.counters.since(&begin.counters),
        memory_before: moments.iter().find_map(|moment| moment.memory.clone()),
        memory_after: memory,
        process: since(process, begin.process),
        machine: since(end.machine, begin.machine),
        faults: None,
        by_node: BTreeMap::new(),
        spread: None,
        ended: false,
        interrupted: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_times_are_read_behind_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 5 1 2";
        assert_eq!(RunTime::of_process(stat), Some(RunTime { user: 250, system: 50 }));
        assert_eq!(RunTime::of_process("7 (a) S 1"), None);
        let all = "cpu  100 5 30 900 7 2 3 0 0 0\ncpu0 1\n";
        assert_eq!(RunTime::of_all_cpus(all), Some(RunTime { user: 105, system: 35 }));
        assert_eq!(RunTime::of_all_cpus("cpu 1 2\n"), None);
    }

    /// Local until the first window is over, and from then on: the halves of the time are alike.
    #[test]
    fn the_first_and_the_last_accesses_are_told_apart() {
        let look = |faults, local| KernelCounters {
            numa_hint_faults: Some(faults),
            numa_hint_faults_local: Some(local),
            ..KernelCounters::default()
        };
        let looks = [look(1000, 700), look(1100, 720), look(1600, 820), look(9000, 8200)];
        let share =
            |counts: KernelCounters| (counts.numa_hint_faults, counts.numa_hint_faults_local);
        let (first, last) = first_and_last(&looks);
        assert_eq!(share(first), (Some(600), Some(120)));
        assert_eq!(share(last), (Some(7400), Some(7380)));
        // Less than two windows: half of them.
        let (first, last) = first_and_last(&[look(0, 0), look(100, 10), look(200, 110)]);
        assert_eq!((share(first), share(last)), ((Some(100), Some(10)), (Some(100), Some(100))));
        let none = first_and_last(&[look(5, 5); 3]);
        assert_eq!(share(none.0), (Some(0), Some(0)));
        assert_eq!(first_and_last(&[]), Default::default());
    }

    #[test]
    fn long_observations_keep_their_ends() {
        let mut moments: Vec<u32> = (0..1000).collect();
        thin_out(&mut moments);
        assert_eq!(moments.len(), 750);
        assert_eq!((&moments[..3], moments[250]), (&[0, 1, 2][..], 251));
        assert_eq!((moments[499], moments[500], moments[749]), (749, 750, 999));
    }

    #[test]
    fn this_process_is_observed() {
        let process = Process { number: std::process::id() };
        let interrupt = Interrupt::listen().expect("handlers");
        let mut looks = 0;
        let seen = observe(process, Duration::from_secs(60), &interrupt, || {
            looks += 1;
            looks < 3
        });
        assert!(seen.ended && !seen.interrupted && seen.seconds > 0.0);
        assert!(seen.process.is_some() && seen.machine.is_some());
    }
}
