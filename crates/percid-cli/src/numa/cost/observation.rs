//! A process and the machine's counters while it runs.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::numa::kernel_counters::KernelCounters;
use crate::numa::process::Process;
use percid_command::interrupt::Interrupt;

/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How often its memory is looked at at the most, and how much longer the rest is than a look.
const MEMORY_LOOK: Duration = Duration::from_secs(1);
const MEMORY_REST: u32 = 50;

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
    fn now(process: Process, memory: &mut MemoryLooks) -> Moment {
        Moment {
            at: Instant::now(),
            counters: KernelCounters::read(),
            memory: memory.take(process),
            process: RunTime::of(process),
            machine: RunTime::of_machine(),
        }
    }
}

/// Looks at where memory is, for which the kernel walks over all of it: seldom where that takes long.
#[derive(Debug, Default)]
struct MemoryLooks {
    next: Option<Instant>,
}

impl MemoryLooks {
    fn take(&mut self, process: Process) -> Option<BTreeMap<u32, u64>> {
        let began = Instant::now();
        if self.next.is_some_and(|next| began < next) {
            return None;
        }
        let memory = process.memory_by_node().ok().filter(|memory| !memory.is_empty());
        let rest = (began.elapsed() * MEMORY_REST).max(MEMORY_LOOK);
        self.next = Some(Instant::now() + rest);
        memory
    }
}

/// What happened from the first to the last look at a process.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    pub(super) seconds: f64,
    /// Of the whole machine: in the first half of the time, in the last, and in all of it.
    pub(super) first: KernelCounters,
    pub(super) last: KernelCounters,
    pub(super) all: KernelCounters,
    /// Bytes on each node; `None` where the kernel, or its rights, do not say.
    pub(super) memory_before: Option<BTreeMap<u32, u64>>,
    pub(super) memory_after: Option<BTreeMap<u32, u64>>,
    pub(super) process: Option<RunTime>,
    pub(super) machine: Option<RunTime>,
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
    let mut memory = MemoryLooks::default();
    let mut moments = vec![Moment::now(process, &mut memory)];
    let began = moments[0].at;
    let (mut ended, mut interrupted) = (false, false);
    while !ended && !interrupted && began.elapsed() < limit {
        interrupt.sleep(LOOK.min(limit.saturating_sub(began.elapsed())));
        interrupted = interrupt.pressed();
        ended = !goes_on();
        moments.push(Moment::now(process, &mut memory));
    }
    // The last look, which is worth its time.
    moments.push(Moment::now(process, &mut MemoryLooks::default()));
    summary(&moments, ended, interrupted)
}

fn summary(moments: &[Moment], ended: bool, interrupted: bool) -> Observation {
    let (begin, end) = (&moments[0], &moments[moments.len() - 1]);
    let middle = begin.at + (end.at - begin.at) / 2;
    let half = moments.iter().find(|moment| moment.at >= middle).unwrap_or(end);
    // What has ended says nothing any more: the last that it said.
    let process = moments.iter().rev().find_map(|moment| moment.process);
    let memory = moments.iter().rev().find_map(|moment| moment.memory.clone());
    let since = |now: Option<RunTime>, before: Option<RunTime>| Some(now?.since(before?));
    Observation {
        seconds: (end.at - begin.at).as_secs_f64(),
        first: half.counters.since(&begin.counters),
        last: end.counters.since(&half.counters),
        all: end.counters.since(&begin.counters),
        memory_before: moments.iter().find_map(|moment| moment.memory.clone()),
        memory_after: memory,
        process: since(process, begin.process),
        machine: since(end.machine, begin.machine),
        ended,
        interrupted,
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
