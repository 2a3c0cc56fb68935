//! `percid trace info`: what is in a trace.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::text_table::{Align, TextTable};
use percid_command::trace::InfoArguments;
use percid_trace::event::{Event, Tid};
use percid_trace::quality::Quality;
use percid_trace::replay::{self, SpaceSummary};
use percid_trace::{Origin, Trace};
use serde::Serialize;

use crate::printable::printable;
use crate::window::{self, Wanted};

/// The number of processes shown as text.
const SHOWN: usize = 20;

pub(crate) fn run(arguments: &InfoArguments, json: bool) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let began = Instant::now();
    let trace = window::load(&arguments.file, &arguments.window.time, &interrupt)?;
    let read = began.elapsed();
    let wanted = window::wanted(&trace, &arguments.window)?;
    let contents = Contents::new(&trace, &arguments.file, read, &wanted);
    if json {
        output::print_json(&contents)?
    } else {
        output::print_text(&contents)?
    }
    Ok(Exit::Complete)
}

/// The origin and subject of a trace.
#[derive(Debug, Serialize)]
pub(crate) struct About {
    file: String,
    release: Option<String>,
    clock: Option<String>,
    command: Option<String>,
    pub(crate) duration_ns: u64,
    pub(crate) events: usize,
    lost: u64,
    /// The CPUs on which something happened.
    cpus: usize,
    /// Number of processes that the answer covers: those of the recorded command or process. `null`
    /// for all processes, or for those that were requested.
    subject_processes: Option<usize>,
}

impl About {
    pub(crate) fn new(trace: &Trace, file: &Path, subject_processes: Option<usize>) -> About {
        let Origin { release, clock, command, lost, .. } = trace.origin.clone();
        let ends = trace.events.first().zip(trace.events.last());
        About {
            file: file.display().to_string(),
            release,
            clock,
            command,
            duration_ns: ends.map_or(0, |(first, last)| last.time - first.time),
            events: trace.events.len(),
            lost,
            cpus: cpus(&trace.events),
            subject_processes,
        }
    }
}

fn cpus(events: &[Event]) -> usize {
    let mut seen = Vec::new();
    for event in events {
        let cpu = event.cpu as usize;
        if cpu >= seen.len() {
            seen.resize(cpu + 1, false);
        }
        seen[cpu] = true;
    }
    seen.into_iter().filter(|&seen| seen).count()
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.duration_ns as f64 / 1e9;
        let (file, events, cpus) = (&self.file, self.events, self.cpus);
        write!(f, "{file}: {events} events on {cpus} CPUs in {seconds:.3} s")?;
        if let Some(release) = &self.release {
            write!(f, "; Linux {}", printable(release))?;
        }
        if let Some(command) = &self.command {
            write!(f, "; {}", printable(command))?;
        }
        writeln!(f)?;
        match self.subject_processes {
            Some(1) => writeln!(f, "For the recorded process; --all is for those beside it too."),
            Some(more) => writeln!(
                f,
                "For the {more} processes of what was recorded; --all is for those beside them too."
            ),
            None => Ok(()),
        }
    }
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Contents {
    quality: Quality,
    #[serde(flatten)]
    about: About,
    /// Time to read the file.
    read_ns: u64,
    kinds: Vec<Kind>,
    processes: Vec<Process>,
}

/// Figures of an address space that need no machine: the number of its moves, not their distance.
#[derive(Debug, Serialize)]
struct Process {
    process: Tid,
    name: String,
    guessed: bool,
    begin_ns: u64,
    end_ns: u64,
    threads: u32,
    most_threads: u32,
    most_running: u32,
    run_ns: u64,
    turns: u64,
    moves: u64,
}

impl From<SpaceSummary> for Process {
    fn from(summary: SpaceSummary) -> Process {
        Process {
            process: summary.process,
            name: summary.name,
            guessed: summary.guessed,
            begin_ns: summary.begin_ns,
            end_ns: summary.end_ns,
            threads: summary.threads,
            most_threads: summary.most_threads,
            most_running: summary.most_running,
            run_ns: summary.run_ns,
            turns: summary.turns,
            moves: summary.moves.all(),
        }
    }
}

/// Number of events of one kind.
#[derive(Debug, Serialize)]
struct Kind {
    event: &'static str,
    count: u64,
}

impl Contents {
    fn new(trace: &Trace, file: &Path, read: Duration, wanted: &Wanted) -> Contents {
        let mut kinds: Vec<Kind> = Vec::new();
        let schedule = trace.events.iter().map(|event| event.what.name());
        let numa = trace.numa.iter().map(|event| event.what.name());
        let counted = trace.counted.iter().map(|_| "count");
        for name in schedule.chain(numa).chain(counted) {
            match kinds.iter_mut().find(|kind| kind.event == name) {
                Some(kind) => kind.count += 1,
                None => kinds.push(Kind { event: name, count: 1 }),
            }
        }
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
        let mut processes = replay::summaries(trace);
        let only = &wanted.processes;
        processes.retain(|summary| only.is_empty() || only.contains(&summary.process));
        processes.sort_by_key(|summary| std::cmp::Reverse(summary.turns));
        let processes = processes.into_iter().map(Process::from).collect();
        let read_ns = read.as_nanos() as u64;
        let quality = Quality::from_trace(trace);
        let about = About::new(trace, file, wanted.of_subject());
        Contents { quality, about, read_ns, kinds, processes }
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.quality, self.about)?;
        let seconds = self.read_ns as f64 / 1e9;
        let rate = self.about.events as f64 / seconds / 1e6;
        writeln!(f, "Read in {seconds:.3} s, {rate:.1} million events a second.\n")?;
        let mut kinds = TextTable::new([("event", Align::Left), ("count", Align::Right)]);
        for kind in &self.kinds {
            kinds.row(vec![kind.event.to_owned(), kind.count.to_string()]);
        }
        writeln!(f, "{kinds}")?;
        let columns = ["process", "name"].map(|name| (name, Align::Left)).into_iter();
        let figures = ["threads", "most at once", "most running", "CPU time s", "turns", "moves"];
        let mut table = TextTable::new(columns.chain(figures.map(|name| (name, Align::Right))));
        for summary in self.processes.iter().take(SHOWN) {
            table.row(vec![
                summary.process.to_string(),
                printable(&summary.name),
                summary.threads.to_string(),
                summary.most_threads.to_string(),
                summary.most_running.to_string(),
                format!("{:.3}", summary.run_ns as f64 / 1e9),
                summary.turns.to_string(),
                summary.moves.to_string(),
            ]);
        }
        write!(f, "{table}")?;
        match self.processes.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more"),
        }
    }
}
