//! A process and the machine's counters while it runs.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use super::faults::{Faults, OfNode, Threads};
use crate::numa::kernel_counters::KernelCounters;
use crate::numa::process::Process;
use percid_command::interrupt::Interrupt;

/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How often its memory and its threads are looked at at the most, and how much longer the rest is than
/// a look.
const MEMORY_LOOK: Duration = Duration::from_secs(1);
const THREADS_LOOK: Duration = LOOK;
const REST: u32 = 50;

/// So many looks are kept: of half an hour, and less and less exactly of days.
const MOST: usize = 20_000;

/// So many accesses tell the local share to within 7 % (three standard deviations).
const WINDOW: u64 = 500;

/// How long something has run, in ticks of the kernel's clock.
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

    /// Of a process, from its `stat`: the fields behind its name, which is in brackets.
    fn of(process: Process) -> Option<RunTime> {
        RunTime::of_process(&String::from_utf8_lossy(&fs::read(process.path("stat")).ok()?))
    }

    fn of_process(stat: &str) -> Option<RunTime> {
        let behind_name = stat.rsplit_once(')')?.1;
        let mut fields = behind_name.split_ascii_whitespace().skip(11);
        Some(RunTime { user: fields.next()?.parse().ok()?, system: fields.next()?.parse().ok()? })
    }

    /// Of the whole machine.
    fn of_machine() -> Option<RunTime> {
        RunTime::of_all_cpus(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq.
    fn of_all_cpus(stat: &str) -> Option<RunTime> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> =
            line.split_ascii_whitespace().map_while(|time| time.parse().ok()).collect();
        let [user, nice, system, _, _, irq, softirq] = *times.get(..7)? else { return None };
        Some(RunTime { user: user + nice, system: system + irq + softirq })
    }
}

/// What was there at a moment.
#[derive(Clone, Debug)]
struct Moment {
    at: Instant,
    counters: KernelCounters,
    memory: Option<BTreeMap<u32, u64>>,
    process: Option<RunTime>,
    machine: Option<RunTime>,
}

impl Moment {
    fn now(process: Process, memory_looks: &mut Looks) -> Moment {
        Moment {
            at: Instant::now(),
            counters: KernelCounters::read(),
            memory: memory_looks.take(MEMORY_LOOK, || memory(process)).flatten(),
            process: RunTime::of(process),
            machine: RunTime::of_machine(),
        }
    }
}

/// Looks that take long: the kernel walks over all memory, or there are thousands of threads. Seldom
/// where they do.
#[derive(Debug, Default)]
struct Looks {
    next: Option<Instant>,
}

impl Looks {
    /// Looks if it is time, and rests for this long at least.
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

/// What happened from the first to the last look at a process.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub(super) seconds: f64,
    /// Of the whole machine: until [`WINDOW`] accesses were seen, since as many were left to be seen,
    /// and in all the time.
    pub(super) first: KernelCounters,
    pub(super) last: KernelCounters,
    pub(super) all: KernelCounters,
    /// Bytes on each node; `None` where the kernel, or its rights, do not say.
    pub(super) memory_before: Option<BTreeMap<u32, u64>>,
    pub(super) memory_after: Option<BTreeMap<u32, u64>>,
    pub(super) process: Option<RunTime>,
    pub(super) machine: Option<RunTime>,
    /// What the kernel noted of the process's threads; `None` where it does not.
    pub(super) faults: Option<Faults>,
    /// The same by the nodes that the threads were on when they were seen last.
    pub(super) by_node: BTreeMap<u32, OfNode>,
    /// How far the threads share the accesses as they share the run time: [`Threads::spread`].
    pub(super) spread: Option<f64>,
    /// Whether the process ended, or Ctrl-C was pressed, before the time was over.
    pub(super) ended: bool,
    pub(super) interrupted: bool,
}

/// Looks at a process until `goes_on` says no, for `limit` at the longest.
pub(super) fn observe(
    process: Process,
    limit: Duration,
    interrupt: &Interrupt,
    mut goes_on: impl FnMut() -> bool,
) -> Observation {
    let (mut memory, mut rests, mut threads) =
        (Looks::default(), Looks::default(), Threads::default());
    threads.look(process);
    let mut moments = vec![Moment::now(process, &mut memory)];
    let began = moments[0].at;
    let (mut ended, mut interrupted) = (false, false);
    while !ended && !interrupted && began.elapsed() < limit {
        interrupt.sleep(LOOK.min(limit.saturating_sub(began.elapsed())));
        interrupted = interrupt.pressed();
        ended = !goes_on();
        rests.take(THREADS_LOOK, || threads.look(process));
        moments.push(Moment::now(process, &mut memory));
        if moments.len() >= MOST {
            thin_out(&mut moments);
        }
    }
    // The last look, which is worth its time.
    threads.look(process);
    moments.push(Moment::now(process, &mut Looks::default()));
    let (faults, spread) = (threads.all(), threads.spread());
    let by_node = threads.by_node();
    Observation { faults, by_node, spread, ended, interrupted, ..summary(&moments) }
}

/// Leaves out every other moment of the middle: the windows at the ends stay as fine as they are.
fn thin_out<T>(moments: &mut Vec<T>) {
    let (mut place, fine, most) = (0, moments.len() / 4, moments.len());
    moments.retain(|_| {
        place += 1;
        place <= fine || place > most - fine || place % 2 == 0
    });
}

/// What was counted while the first accesses were seen, before memory could move, and while the last
/// ones were: [`WINDOW`] each, or half of all if there are less. Time would not tell: where memory
/// moves within a second, the first half of a minute is as local as the last.
fn first_and_last(looks: &[KernelCounters]) -> (KernelCounters, KernelCounters) {
    let Some((begin, end)) = looks.first().zip(looks.last()) else { return Default::default() };
    let faults = |since: KernelCounters| since.numa_hint_faults.unwrap_or(0);
    let enough = WINDOW.min(faults(end.since(begin)) / 2);
    let is_enough = |since: &KernelCounters| faults(*since) >= enough;
    let first = looks.iter().map(|look| look.since(begin)).find(is_enough);
    let last = looks.iter().rev().map(|look| end.since(look)).find(is_enough);
    (first.unwrap_or_default(), last.unwrap_or_default())
}

fn summary(moments: &[Moment]) -> Observation {
    let (begin, end) = (&moments[0], &moments[moments.len() - 1]);
    let counters: Vec<KernelCounters> = moments.iter().map(|moment| moment.counters).collect();
    let (first, last) = first_and_last(&counters);
    // What has ended says nothing any more: the last that it said.
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
