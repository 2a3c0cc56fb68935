//! `percid trace latency`: how long threads wait for a CPU, and what runs instead.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use percid_command::exit::{Exit, Failure};
use percid_command::table::Table;
use percid_command::trace_questions::LatencyArguments;
use percid_report::{Axis, Bars, Dot, Dots, Page};
use percid_trace::Trace;
use percid_trace::event::Tid;
use percid_trace::questions::{
    self, Bin, Histogram, Latency, LatencySettings, LongWait, ThreadLatency, Who,
};
use serde::Serialize;

use super::names::{Named, Names};
use super::recording::{AnalysisFigures, LoadedRecording};
use crate::printable::labelled;
use crate::times::{ms, ms_if, seconds};

pub(crate) fn run(arguments: &LatencyArguments, json: bool) -> Result<Exit, Failure> {
    let recording = LoadedRecording::load(&arguments.question)?;
    if !recording.permits_figures() {
        return recording.tell(TITLE, LatencyFigures::default(), true, json);
    }
    let settings = LatencySettings {
        window: recording.window,
        processes: recording.processes.clone(),
        worst: arguments.worst as usize,
    };
    let found = recording
        .ask("latency", |control| questions::latency(&recording.trace, &settings, control));
    let figures = LatencyFigures::new(&recording.trace, &found, recording.lines());
    recording.tell(TITLE, figures, found.is_whole, json)
}

const TITLE: &str = "percid trace latency";

/// The figures of the JSON document. `None` stands for what the recording does not support.
#[derive(Debug, Default, Serialize)]
struct LatencyFigures {
    /// The reason why some figures are missing, or begin later than they should.
    note: Option<&'static str>,
    /// The waits of all threads together.
    all: Option<Waits>,
    /// Processes, those that waited longest altogether first.
    processes: Option<Vec<ProcessWaits>>,
    /// Processes, and threads of those that are there, which are not in the document.
    processes_left_out: usize,
    threads_left_out: usize,
    worst: Option<Vec<WaitFigures>>,
}

#[derive(Debug, Serialize)]
struct ProcessWaits {
    process: Tid,
    name: String,
    #[serde(flatten)]
    waits: Waits,
    threads: Vec<ThreadWaits>,
}

#[derive(Debug, Serialize)]
struct ThreadWaits {
    thread: Tid,
    name: String,
    #[serde(flatten)]
    waits: Waits,
}

/// The waits of a thread, a process or all threads.
#[derive(Debug, Serialize)]
struct Waits {
    run_queue: Times,
    preempted: u64,
    preempted_ns: u64,
    /// `null` if the recording has no wake-ups.
    wake_up: Option<Times>,
}

#[derive(Debug, Serialize)]
struct Times {
    count: u64,
    sum_ns: u64,
    mean_ns: Option<u64>,
    median_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: u64,
    histogram: Vec<Bin>,
}

/// One long wait.
#[derive(Debug, Serialize)]
struct WaitFigures {
    #[serde(flatten)]
    who: Named,
    since_ns: u64,
    ns: u64,
    preempted: bool,
    queue_cpu: u32,
    cpu: u32,
    instead: Vec<Instead>,
}

/// A thread, or idleness, that a CPU ran during a wait, and for how long.
#[derive(Debug, Serialize)]
struct Instead {
    /// `thread`, `idle` or `unknown`.
    kind: &'static str,
    #[serde(flatten)]
    who: Option<Named>,
    ns: u64,
    #[serde(skip)]
    label: String,
}

const NO_WAKEUPS: &str = "The recording has no wake-ups (sched_waking, sched_wakeup): there are the waits of \
threads that had been preempted, and none of threads that slept.";
const NO_WOKEN: &str = "The recording has sched_waking and no sched_wakeup: run-queue times after a wake-up \
begin with the waking, so they are some microseconds too long.";
const NO_WAKING: &str = "The recording has sched_wakeup and no sched_waking: wake-up times begin when the \
thread is ready, so they are some microseconds too short.";

impl LatencyFigures {
    fn new(trace: &Trace, found: &Latency, lines: usize) -> LatencyFigures {
        let names = Names::new(trace, &found.known);
        let has_wakeups = found.wakeups.waking || found.wakeups.woken;
        let note = match (found.wakeups.waking, found.wakeups.woken) {
            (false, false) => Some(NO_WAKEUPS),
            (true, false) => Some(NO_WOKEN),
            (false, true) => Some(NO_WAKING),
            (true, true) => None,
        };
        let mut all = ThreadLatency::default();
        let mut processes: HashMap<Tid, (ThreadLatency, Vec<usize>)> = HashMap::new();
        for (place, (thread, waits)) in found.threads.iter().enumerate() {
            all.add(waits);
            let process = found.known.get(*thread).process_or_self();
            let (sum, threads) = processes.entry(process).or_default();
            sum.add(waits);
            threads.push(place);
        }
        let mut processes: Vec<(Tid, (ThreadLatency, Vec<usize>))> =
            processes.into_iter().collect();
        processes.sort_by_key(|(process, (sum, _))| (Reverse(sum.run_queue.sum_ns), *process));
        let processes_left_out = processes.len().saturating_sub(lines);
        let mut room = lines;
        let mut threads_left_out = 0;
        let told = processes.into_iter().take(lines).map(|(process, (sum, mut threads))| {
            threads.sort_by_key(|&place| Reverse(found.threads[place].1.run_queue.sum_ns));
            threads_left_out += threads.len().saturating_sub(room);
            threads.truncate(room);
            room -= threads.len();
            let thread = |place: usize| {
                let (thread, waits) = &found.threads[place];
                let Named { thread, name, .. } = names.thread(*thread);
                ThreadWaits { thread, name, waits: Waits::from_latency(waits, has_wakeups) }
            };
            ProcessWaits {
                process,
                name: names.process(process),
                waits: Waits::from_latency(&sum, has_wakeups),
                threads: threads.into_iter().map(thread).collect(),
            }
        });
        let told: Vec<ProcessWaits> = told.collect();
        LatencyFigures {
            note,
            all: Some(Waits::from_latency(&all, has_wakeups)),
            processes: Some(told),
            processes_left_out,
            threads_left_out,
            worst: Some(found.worst.iter().map(|wait| WaitFigures::new(wait, &names)).collect()),
        }
    }

    /// Returns the distribution of each process's waits.
    fn dots(&self, top: usize) -> Dots {
        let time = Axis::new("wait").unit("ms").logarithmic();
        let mut dots = Dots::new(Axis::new("process"), time, ["median", "99 %", "longest"]);
        for process in self.processes.iter().flatten().take(top) {
            let Times { median_ns, p99_ns, max_ns, .. } = process.waits.run_queue;
            let values = [median_ns, p99_ns, Some(max_ns)];
            let values = values.map(|ns| ns.map(|ns| ns as f64 / 1e6));
            dots.row(labelled(&process.name, process.process), [Dot::new(values)]);
        }
        dots
    }

    fn table(&self, top: usize) -> Table {
        let columns = [
            "process / thread",
            "waits",
            "mean",
            "median",
            "99 %",
            "longest",
            "preempted",
            "for",
            "wake-ups",
            "mean",
            "99 %",
            "longest",
        ];
        let mut table = Table::new(columns, 1);
        for process in self.processes.iter().flatten().take(top) {
            table.row(row(labelled(&process.name, process.process), &process.waits));
            let threads = if process.threads.len() > 1 { &process.threads[..] } else { &[] };
            for thread in threads.iter().take(top) {
                let name = format!("  {}", labelled(&thread.name, thread.thread));
                table.row(row(name, &thread.waits));
            }
        }
        table
    }
}

fn row(name: String, waits: &Waits) -> [String; 12] {
    let Waits { run_queue, preempted, preempted_ns, wake_up } = waits;
    let woken = wake_up.as_ref();
    [
        name,
        run_queue.count.to_string(),
        ms_if(run_queue.mean_ns),
        ms_if(run_queue.median_ns),
        ms_if(run_queue.p99_ns),
        ms(run_queue.max_ns),
        preempted.to_string(),
        ms(*preempted_ns),
        woken.map_or_else(|| "-".to_owned(), |times| times.count.to_string()),
        ms_if(woken.and_then(|times| times.mean_ns)),
        ms_if(woken.and_then(|times| times.p99_ns)),
        ms_if(woken.map(|times| times.max_ns)),
    ]
}

impl Waits {
    fn from_latency(waits: &ThreadLatency, has_wakeups: bool) -> Waits {
        Waits {
            run_queue: Times::from_histogram(&waits.run_queue),
            preempted: waits.preempted,
            preempted_ns: waits.preempted_ns,
            wake_up: has_wakeups.then(|| Times::from_histogram(&waits.wake_up)),
        }
    }
}

impl Times {
    fn from_histogram(times: &Histogram) -> Times {
        Times {
            count: times.count,
            sum_ns: times.sum_ns,
            mean_ns: times.mean_ns(),
            median_ns: times.quantile_ns(0.5),
            p99_ns: times.quantile_ns(0.99),
            max_ns: times.max_ns,
            histogram: times.bins(),
        }
    }
}

impl WaitFigures {
    fn new(wait: &LongWait, names: &Names<'_>) -> WaitFigures {
        let instead = |&(who, ns): &(Who, u64)| Instead {
            kind: match who {
                Who::Thread(_) => "thread",
                Who::Idle => "idle",
                Who::Unknown => "unknown",
            },
            who: match who {
                Who::Thread(thread) => Some(names.thread(thread)),
                Who::Idle | Who::Unknown => None,
            },
            ns,
            label: names.who(who),
        };
        WaitFigures {
            who: names.thread(wait.thread),
            since_ns: wait.since,
            ns: wait.ns,
            preempted: wait.preempted,
            queue_cpu: wait.queue,
            cpu: wait.cpu,
            instead: wait.instead.iter().map(instead).collect(),
        }
    }
}

/// Number of threads that a line names as running during a wait.
const INSTEAD: usize = 4;

impl fmt::Display for WaitFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WaitFigures { who, since_ns, ns, queue_cpu, cpu, .. } = self;
        let why = if self.preempted { "preempted" } else { "woken" };
        write!(f, "{} ms: {}, {why}", ms(*ns), who.label())?;
        write!(f, " at {} s, waited for CPU {queue_cpu}", seconds(*since_ns))?;
        if cpu != queue_cpu {
            write!(f, " and ran on CPU {cpu}")?;
        }
        write!(f, "; instead: ")?;
        let told = self.instead.iter().take(INSTEAD);
        let told: Vec<String> =
            told.map(|instead| format!("{} {} ms", instead.label, ms(instead.ns))).collect();
        match (told.is_empty(), self.instead.len().saturating_sub(INSTEAD)) {
            (true, _) => write!(f, "unknown"),
            (false, 0) => write!(f, "{}", told.join(", ")),
            (false, more) => write!(f, "{} and {more} more", told.join(", ")),
        }
    }
}

/// The longest bar, in characters.
const BAR: u64 = 50;

/// Counts as bars of text.
struct Bins<'a>(&'a [Bin]);

impl fmt::Display for Bins<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.0.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
        for bin in self.0 {
            let length = (bin.count * BAR).div_ceil(most);
            let bar = "#".repeat(length as usize);
            writeln!(f, "  < {:>12} ms {:>10} {bar}", ms(bin.below_ns), bin.count)?;
        }
        Ok(())
    }
}

const NOBODY: &str = "No thread waited and then ran.";

impl AnalysisFigures for LatencyFigures {
    fn text(&self, top: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(note) = self.note {
            writeln!(f, "{note}")?;
        }
        let Some(all) = self.all.as_ref().filter(|all| all.run_queue.count > 0) else {
            return writeln!(f, "{NOBODY}");
        };
        writeln!(f, "Waits for a CPU, in ms:\n\n{}", self.table(top))?;
        let more = self.processes_left_out + self.processes.iter().flatten().skip(top).count();
        if more > 0 {
            writeln!(f, "  and {more} more processes that waited less\n")?;
        }
        writeln!(f, "Run-queue times of all:\n\n{}", Bins(&all.run_queue.histogram))?;
        let worst = self.worst.iter().flatten();
        if worst.clone().next().is_some() {
            writeln!(f, "The longest waits:\n")?;
        }
        worst.into_iter().try_for_each(|moment| writeln!(f, "  {moment}"))
    }

    fn verdict(&self) -> String {
        let Some(Waits { run_queue, .. }) = &self.all else {
            return "0 waits were seen.".to_owned();
        };
        let (count, longest) = (run_queue.count, ms(run_queue.max_ns));
        let most = run_queue
            .p99_ns
            .map_or(String::new(), |ns| format!("99 % of them at most {} ms and ", ms(ns)));
        format!("Threads waited {count} times for a CPU, {most}{longest} ms at the longest.")
    }

    fn show(&self, top: usize, page: &mut Page) {
        let Some(all) = self.all.as_ref().filter(|all| all.run_queue.count > 0) else {
            page.section(NOBODY, "");
            return;
        };
        page.section("Waits for a CPU, in ms", self.note.unwrap_or(""));
        self.table(top).show_on(page);
        let mut bars =
            Bars::grouped(Axis::new("shorter than").unit("ms"), Axis::new("waits"), ["waits"]);
        for bin in &all.run_queue.histogram {
            bars.category(ms(bin.below_ns), [bin.count as f64]);
        }
        page.chart("Run-queue times of all", "", bars);
        let shown = "Dots from the median over the 99th percentile to the longest.";
        page.chart("Run-queue times of processes", shown, self.dots(top));
        let worst: Vec<String> = self.worst.iter().flatten().map(WaitFigures::to_string).collect();
        page.section("The longest waits", worst.join("\n\n"));
    }
}
