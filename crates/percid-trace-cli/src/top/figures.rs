//! The figures of one interval.

use std::cmp::Reverse;
use std::collections::HashMap;

use percid_command::trace_top::Sort;
use percid_sim::machine::Machine;
use percid_sim::run_control::RunControl;
use percid_sim::topology::{Place, Topology};
use percid_trace::Trace;
use percid_trace::event::{Stage, Tid, What};
use percid_trace::questions::{
    LatencySettings, MigrationsSettings, PreemptionsSettings, UsageSettings, Wakeups, Who, latency,
    migrations, preemptions, usage,
};
use percid_trace::spool::Interval;
use percid_trace::threads::{ThreadNumber, Threads};
use percid_trace::window::Window;
use serde::Serialize;

use crate::questions::names::Names;

/// The figures of a screen, and of the JSON document.
#[derive(Debug, Serialize)]
pub(super) struct TopFigures {
    pub(super) since_ns: u64,
    pub(super) until_ns: u64,
    /// The part of that time which the figures cover.
    pub(super) covered_ns: u64,
    pub(super) switches: u64,
    pub(super) wakeups: u64,
    pub(super) lost: u64,
    pub(super) left_out: u64,
    pub(super) intervals_skipped: u64,
    /// `None` where some processes only are watched.
    pub(super) idle_while_waiting_ns: Option<u64>,
    /// `None` if the system does not report it.
    pub(super) own_cpu_ns: Option<u64>,
    /// The time that `own_cpu_ns` covers, until this screen.
    pub(super) own_span_ns: u64,
    pub(super) cpus: Vec<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threads: Option<Vec<Line>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) processes: Option<Vec<Line>>,
}

/// Settings of the figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) sort: Sort,
    pub(super) by_process: bool,
    /// `true` if only some processes are watched: others are not reported.
    pub(super) of_processes: bool,
}

/// The activity of a CPU. The rest of the time is not known.
#[derive(Debug, Serialize)]
pub(super) struct Cpu {
    pub(super) cpu: usize,
    pub(super) busy_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) idle_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) idle_while_waiting_ns: Option<u64>,
}

/// A thread, or a process.
#[derive(Debug, Default, Clone, Serialize)]
pub(super) struct Line {
    /// `None` for a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<Tid>,
    pub(super) name: String,
    pub(super) process: Tid,
    pub(super) run_ns: u64,
    pub(super) waited_ns: u64,
    pub(super) longest_wait_ns: u64,
    pub(super) waits: u64,
    pub(super) switches: u64,
    pub(super) migrations: u64,
    pub(super) preempted: u64,
    pub(super) preempted_by: Option<By>,
}

/// The thread or process that preempted a thread most often.
#[derive(Debug, Clone, Serialize)]
pub(super) struct By {
    pub(super) name: String,
    /// The number of the thread, or of the process in a line of a process.
    pub(super) number: Tid,
    pub(super) times: u64,
}

/// Figures of a thread before it has a name.
#[derive(Debug, Default, Clone)]
struct ThreadTally {
    line: Line,
    /// Number of preemptions, by what ran then.
    by: HashMap<Who, u64>,
}

/// Names of what took the CPU, and how often, by number.
type Takers = HashMap<Tid, (String, u64)>;

impl TopFigures {
    /// Asks an interval. `skipped` were over before it and are not shown; `own` is what this program took
    /// of CPUs in a time.
    pub(super) fn new(
        interval: &Interval,
        wanted: Wanted,
        skipped: u64,
        own: (Option<u64>, u64),
    ) -> TopFigures {
        let Interval { trace, window, since, until, left_out } = interval;
        let (switches, wakeups) = happened(trace, *window);
        let Wanted { sort, by_process, of_processes } = wanted;
        let (known, mut counts, cpus) = counted(trace, *window, of_processes);
        if of_processes {
            // The processes of other threads are not recorded.
            let is_stranger = |thread: &ThreadNumber| known.get(*thread).process.is_none();
            let strangers = (0..known.len() as ThreadNumber).filter(is_stranger);
            strangers.for_each(|thread| {
                update(&mut counts, thread, |counts| *counts = ThreadTally::default())
            });
        }
        let names = Names::new(trace, &known);
        let mut lines = if by_process {
            processes(counts, &known, &names)
        } else {
            threads(counts, &known, &names)
        };
        lines.retain(Line::has_any);
        lines.sort_by_cached_key(|line| (Reverse(line.sort_key(sort)), line.process, line.thread));
        let (threads, processes) =
            if by_process { (None, Some(lines)) } else { (Some(lines), None) };
        TopFigures {
            since_ns: *since,
            until_ns: *until,
            covered_ns: window.to.saturating_sub(window.from),
            switches,
            wakeups,
            lost: trace.origin.lost,
            left_out: *left_out,
            intervals_skipped: skipped,
            idle_while_waiting_ns: cpus.iter().map(|cpu| cpu.idle_while_waiting_ns).sum(),
            own_cpu_ns: own.0,
            own_span_ns: own.1,
            cpus,
            threads,
            processes,
        }
    }

    /// Leaves out all lines but the first.
    pub(super) fn keep(&mut self, lines: Option<usize>) {
        let all = [&mut self.threads, &mut self.processes].into_iter().flatten();
        all.for_each(|all| all.truncate(lines.unwrap_or(usize::MAX)));
    }

    /// The lines of the table.
    pub(super) fn lines(&self) -> &[Line] {
        self.threads.as_deref().or(self.processes.as_deref()).unwrap_or_default()
    }
}

/// Returns the number of switches and wake-ups.
fn happened(trace: &Trace, window: Window) -> (u64, u64) {
    let ready = Wakeups::from_trace(trace);
    let begin = trace.events.first().map_or(0, |event| event.time);
    let within = trace.events.iter().filter(|event| window.contains(event.time - begin));
    within.fold((0, 0), |(switches, wakeups), event| match event.what {
        What::Switch { prev, next, .. } => (switches + u64::from(prev != next), wakeups),
        What::Wakeup { stage: Stage::Waking, .. } if ready.woken => (switches, wakeups),
        What::Wakeup { .. } => (switches, wakeups + 1),
        _ => (switches, wakeups),
    })
}

/// Runs the four analyses.
fn counted(
    trace: &Trace,
    window: Window,
    of_processes: bool,
) -> (Threads, Vec<ThreadTally>, Vec<Cpu>) {
    let control = RunControl::default();
    let used = usage(trace, &UsageSettings { window, slices: 1, ..Default::default() }, &control);
    let mut counts = vec![ThreadTally::default(); used.known.len()];
    for cell in &used.cells {
        update(&mut counts, cell.thread, |counts| counts.line.run_ns += cell.ns);
    }
    let settings = LatencySettings { window, ..LatencySettings::default() };
    for (thread, waits) in &latency(trace, &settings, &control).threads {
        update(&mut counts, *thread, |ThreadTally { line, .. }| {
            line.waits = waits.run_queue.count;
            line.waited_ns = waits.run_queue.sum_ns;
            line.longest_wait_ns = waits.run_queue.max_ns;
        });
    }
    let settings = MigrationsSettings { window, ..MigrationsSettings::default() };
    let travels = migrations(trace, &flat(trace), &settings, &control);
    for (thread, travels) in travels.iter().flat_map(|found| &found.threads) {
        update(&mut counts, *thread, |ThreadTally { line, .. }| {
            (line.switches, line.migrations) = (travels.turns, travels.moves());
        });
    }
    let settings = PreemptionsSettings { window, ..PreemptionsSettings::default() };
    for delay in preemptions(trace, &settings, &control).delays {
        if delay.preempted > 0 {
            update(&mut counts, delay.victim, |counts| {
                counts.line.preempted += delay.preempted;
                *counts.by.entry(delay.by).or_default() += delay.preempted;
            });
        }
    }
    let cpus = used.cpus.iter().enumerate().filter_map(|(cpu, found)| {
        let slice = found.slices.first()?;
        let busy_ns = slice.busy_ns;
        let seen = busy_ns + slice.idle_ns > 0;
        let idle_ns = (!of_processes).then_some(slice.idle_ns);
        let idle_while_waiting_ns = idle_ns.map(|_| slice.idle_while_waiting_ns);
        seen.then_some(Cpu { cpu, busy_ns, idle_ns, idle_while_waiting_ns })
    });
    let cpus = cpus.collect();
    (used.known, counts, cpus)
}

/// Each question numbers the threads of a trace in the same order.
fn update(counts: &mut [ThreadTally], thread: ThreadNumber, change: impl FnOnce(&mut ThreadTally)) {
    if let Some(counts) = counts.get_mut(thread as usize) {
        change(counts);
    }
}

/// A machine without distances: moves are counted, not priced.
fn flat(trace: &Trace) -> Machine {
    let place = |cpu| Place { core: cpu, l3: 0, socket: 0, node: 0 };
    let cpus = trace.largest_cpu().unwrap_or(0) + 1;
    let any = Machine::preset("epyc-9654").expect("a machine that comes with the simulator");
    Machine { topology: Topology::new((0..cpus).map(place).collect()), ..any }
}

fn threads(counts: Vec<ThreadTally>, known: &Threads, names: &Names) -> Vec<Line> {
    let line = |(thread, counts): (ThreadNumber, ThreadTally)| {
        let named = names.thread(thread);
        let mut by: Takers = HashMap::new();
        for (who, times) in &counts.by {
            if let Who::Thread(thread) = *who {
                let name = names.thread(thread).name;
                by.entry(known.get(thread).tid).or_insert((name, 0)).1 += times;
            }
        }
        let (thread, name, process) = (Some(named.thread), named.name, named.process);
        Line { thread, name, process, preempted_by: most(by), ..counts.line }
    };
    (0..).zip(counts).map(line).collect()
}

fn processes(counts: Vec<ThreadTally>, known: &Threads, names: &Names) -> Vec<Line> {
    let process = |thread| known.get(thread).process_or_self();
    let mut lines: HashMap<Tid, (Line, Takers)> = HashMap::new();
    for (thread, counts) in (0..).zip(counts) {
        let process_of = process(thread);
        let (line, by) = lines.entry(process_of).or_default();
        line.process = process_of;
        line.name = names.process(process_of);
        line.add(&counts.line);
        for (who, times) in counts.by {
            if let Who::Thread(thread) = who {
                let number = process(thread);
                by.entry(number).or_insert_with(|| (names.process(number), 0)).1 += times;
            }
        }
    }
    lines.into_values().map(|(line, by)| Line { preempted_by: most(by), ..line }).collect()
}

fn most(by: Takers) -> Option<By> {
    let most = by.into_iter().max_by_key(|(number, (_, times))| (*times, Reverse(*number)));
    most.map(|(number, (name, times))| By { name, number, times })
}

impl Line {
    fn add(&mut self, other: &Line) {
        self.run_ns += other.run_ns;
        self.waited_ns += other.waited_ns;
        self.longest_wait_ns = self.longest_wait_ns.max(other.longest_wait_ns);
        self.waits += other.waits;
        self.switches += other.switches;
        self.migrations += other.migrations;
        self.preempted += other.preempted;
    }

    /// Returns `true` if it has any activity.
    fn has_any(&self) -> bool {
        self.run_ns + self.waits + self.switches + self.preempted > 0
    }

    /// Returns the sort key: the figure to sort by, and then the run time.
    fn sort_key(&self, sort: Sort) -> (u64, u64) {
        let figure = match sort {
            Sort::Wait => self.waited_ns,
            Sort::Run => self.run_ns,
            Sort::Switches => self.switches,
            Sort::Migrations => self.migrations,
            Sort::Preempted => self.preempted,
        };
        (figure, self.run_ns)
    }
}
