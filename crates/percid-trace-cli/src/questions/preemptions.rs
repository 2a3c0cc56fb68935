//! `percid trace preemptions`: threads that keep other threads from running.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use percid_command::exit::{Exit, Failure};
use percid_command::table::Table;
use percid_command::trace_questions::QuestionArguments;
use percid_report::Page;
use percid_trace::Trace;
use percid_trace::event::Tid;
use percid_trace::questions::{self, Delay, Preemptions, PreemptionsSettings, Who};
use serde::Serialize;

use super::names::{Named, Names};
use super::recording::{AnalysisFigures, LoadedRecording};
use crate::printable::labelled;
use crate::times::{ms, percent};

pub(crate) fn run(arguments: &QuestionArguments, json: bool) -> Result<Exit, Failure> {
    let recording = LoadedRecording::load(arguments)?;
    if !recording.permits_figures() {
        return recording.tell(TITLE, PreemptionFigures::default(), true, json);
    }
    let processes = recording.processes.clone();
    let settings = PreemptionsSettings { window: recording.window, processes };
    let found = recording
        .ask("preemptions", |control| questions::preemptions(&recording.trace, &settings, control));
    let figures = PreemptionFigures::new(&recording.trace, &found, recording.lines());
    recording.tell(TITLE, figures, found.is_whole, json)
}

const TITLE: &str = "percid trace preemptions";

/// The figures of the JSON document. `None` stands for what the recording does not support.
#[derive(Debug, Default, Serialize)]
struct PreemptionFigures {
    waited_ns: Option<u64>,
    unattributed_ns: Option<u64>,
    /// Between processes, the longest first.
    processes: Option<Vec<Pair>>,
    processes_left_out: usize,
    /// Between threads, the longest first.
    threads: Option<Vec<Pair>>,
    threads_left_out: usize,
}

/// A victim and what delayed it.
#[derive(Debug, Serialize)]
struct Pair {
    victim: Named,
    /// `null`: the CPU did nothing.
    by: Option<Named>,
    ns: u64,
    waits: u64,
    longest_ns: u64,
    preempted: u64,
}

impl PreemptionFigures {
    fn new(trace: &Trace, found: &Preemptions, lines: usize) -> PreemptionFigures {
        let names = Names::new(trace, &found.known);
        let (threads, threads_left_out) = longest(found.delays.clone(), lines);
        let thread = |delay: Delay| {
            let by = match delay.by {
                Who::Thread(by) => Some(names.thread(by)),
                Who::Idle | Who::Unknown => None,
            };
            Pair::new(names.thread(delay.victim), by, delay)
        };
        let by_process = by_process(found);
        let sums: Vec<Delay> = by_process.values().copied().collect();
        let (processes, processes_left_out) = longest(sums, lines);
        let process = |number: Tid| {
            let name = names.process(number);
            Named { thread: number, name, process: number }
        };
        let of_thread = |thread| found.known.get(thread).process_or_self();
        let pair = |delay: Delay| {
            let by = match delay.by {
                Who::Thread(by) => Some(process(of_thread(by))),
                Who::Idle | Who::Unknown => None,
            };
            Pair::new(process(of_thread(delay.victim)), by, delay)
        };
        PreemptionFigures {
            waited_ns: Some(found.waited_ns),
            unattributed_ns: Some(found.unattributed_ns),
            processes: Some(processes.into_iter().map(pair).collect()),
            processes_left_out,
            threads: Some(threads.into_iter().map(thread).collect()),
            threads_left_out,
        }
    }
}

/// The delays between processes; each has a thread of either in their place.
fn by_process(found: &Preemptions) -> HashMap<(Tid, Option<Tid>), Delay> {
    let process = |thread| found.known.get(thread).process_or_self();
    let mut sums: HashMap<(Tid, Option<Tid>), Delay> = HashMap::new();
    for delay in &found.delays {
        let by = match delay.by {
            Who::Thread(by) => Some(process(by)),
            Who::Idle | Who::Unknown => None,
        };
        let none = Delay { ns: 0, waits: 0, longest_ns: 0, preempted: 0, ..*delay };
        let sum = sums.entry((process(delay.victim), by)).or_insert(none);
        sum.ns += delay.ns;
        sum.waits += delay.waits;
        sum.longest_ns = sum.longest_ns.max(delay.longest_ns);
        sum.preempted += delay.preempted;
    }
    sums
}

/// The longest delays, and how many others there are.
fn longest(mut delays: Vec<Delay>, lines: usize) -> (Vec<Delay>, usize) {
    delays.sort_unstable_by_key(|delay| (Reverse(delay.ns), delay.victim, delay.by));
    let left_out = delays.len().saturating_sub(lines);
    delays.truncate(lines);
    (delays, left_out)
}

impl Pair {
    fn new(victim: Named, by: Option<Named>, delay: Delay) -> Pair {
        let Delay { ns, waits, longest_ns, preempted, .. } = delay;
        Pair { victim, by, ns, waits, longest_ns, preempted }
    }

    fn row(&self) -> [String; 6] {
        let idle = || "idle".to_owned();
        [
            labelled(&self.victim.name, self.victim.thread),
            self.by.as_ref().map_or_else(idle, |by| labelled(&by.name, by.thread)),
            ms(self.ns),
            self.waits.to_string(),
            ms(self.longest_ns),
            self.preempted.to_string(),
        ]
    }
}

fn table(pairs: &[Pair], top: usize) -> Table {
    let mut table = Table::new(["waited", "for", "ms", "waits", "longest", "preempted by it"], 2);
    pairs.iter().take(top).for_each(|pair| table.row(pair.row()));
    table
}

impl PreemptionFigures {
    fn summary(&self) -> String {
        let (waited, unknown) = (self.waited_ns.unwrap_or(0), self.unattributed_ns.unwrap_or(0));
        let share = percent(unknown, waited);
        format!(
            "Threads waited {} ms for CPUs, of which {share} % cannot be attributed to a thread.",
            ms(waited)
        )
    }

    fn parts(&self) -> [(&'static str, &[Pair], usize); 2] {
        [
            (
                "Between processes",
                self.processes.as_deref().unwrap_or_default(),
                self.processes_left_out,
            ),
            ("Between threads", self.threads.as_deref().unwrap_or_default(), self.threads_left_out),
        ]
    }
}

impl AnalysisFigures for PreemptionFigures {
    fn text(&self, top: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary())?;
        for (title, pairs, left_out) in self.parts() {
            writeln!(f, "\n{title}:\n\n{}", table(pairs, top))?;
            let more = left_out + pairs.len().saturating_sub(top);
            if more > 0 {
                writeln!(f, "  and {more} more pairs")?;
            }
        }
        Ok(())
    }

    fn verdict(&self) -> String {
        self.summary()
    }

    fn show(&self, top: usize, page: &mut Page) {
        for (title, pairs, left_out) in self.parts() {
            let pairs_told = format!("{} pairs.", pairs.len() + left_out);
            page.section(title, pairs_told);
            table(pairs, top).show_on(page);
        }
    }
}
