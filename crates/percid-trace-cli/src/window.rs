//! The part of a recording that is looked at: from when to when, and of which processes.

use std::path::Path;

use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::trace_window::{TimeArguments, WindowArguments};
use percid_trace::event::Tid;
use percid_trace::quality::Quality;
use percid_trace::replay::{self, SpaceSummary};
use percid_trace::window::Window;
use percid_trace::{Trace, gaps, subject};

use crate::file;
use crate::printable::printable;

/// Reads a trace in any format, and cuts out the requested window.
pub(crate) fn load(
    path: &Path,
    time: &TimeArguments,
    interrupt: &Interrupt,
) -> Result<Trace, Failure> {
    let trace = file::load(path, interrupt)?;
    let window = within(&trace, time)?;
    Ok(if window == Window::default() { trace } else { window.cut(&trace) })
}

/// Reads a trace for a replay: adds the detectable switches that the kernel did not trace. Also
/// returns the conclusions that it permits.
pub(crate) fn load_closed(
    path: &Path,
    time: &TimeArguments,
    interrupt: &Interrupt,
) -> Result<(Trace, Quality), Failure> {
    let mut trace = load(path, time, interrupt)?;
    gaps::close(&mut trace);
    let quality = Quality::from_trace(&trace);
    Ok((trace, quality))
}

/// Returns the requested window. Refuses a window that contains nothing of the trace.
pub(crate) fn within(trace: &Trace, time: &TimeArguments) -> Result<Window, Failure> {
    let window = Window { from: time.from.unwrap_or(0), to: time.to.unwrap_or(u64::MAX) };
    let ends = trace.events.first().zip(trace.events.last());
    let length = ends.map_or(0, |(first, last)| last.time.saturating_sub(first.time));
    let seconds = |ns: u64| ns as f64 / 1e9;
    if window.from > length {
        let said =
            format!("--from {}: the trace is {} s long", seconds(window.from), seconds(length));
        return Err(Failure::Usage(said));
    }
    if window.to <= window.from {
        let to = seconds(window.to);
        return Err(Failure::Usage(format!("--to {to}: expected a time after --from")));
    }
    Ok(window)
}

/// Returns the processes that were requested by number or name, or else those that the recording is
/// about; an empty list means all.
pub(crate) fn wanted(trace: &Trace, arguments: &WindowArguments) -> Result<Wanted, Failure> {
    let WindowArguments { process: names, all, .. } = arguments;
    Ok(match (*all, names.is_empty()) {
        (true, _) => Wanted::default(),
        (false, true) => Wanted { processes: subject::processes(trace), is_subject: true },
        (false, false) => Wanted { processes: named(trace, names)?, is_subject: false },
    })
}

/// The processes that an answer covers.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// The selected processes; all if it is empty.
    pub(crate) processes: Vec<Tid>,
    is_subject: bool,
}

impl Wanted {
    /// Returns their number, if they were not requested but are the subject of the recording.
    pub(crate) fn of_subject(&self) -> Option<usize> {
        Some(self.processes.len()).filter(|&processes| self.is_subject && processes > 0)
    }
}

/// The numbers of processes with these names or numbers.
fn named(trace: &Trace, names: &[String]) -> Result<Vec<Tid>, Failure> {
    let summaries = replay::summaries(trace);
    let mut wanted = Vec::new();
    for name in names {
        let number = name.parse().ok();
        let found = summaries
            .iter()
            .filter(|summary| Some(summary.process) == number || summary.name == *name);
        let before = wanted.len();
        wanted.extend(found.map(|summary| summary.process));
        if wanted.len() == before {
            let none = "no process of the trace has this number or name";
            let there = there(&most_active(&summaries));
            return Err(Failure::Usage(format!("--process {name}: {none}; {there}")));
        }
    }
    Ok(wanted)
}

/// Describes the processes that a recording has.
fn there(processes: &[String]) -> String {
    match processes {
        [] => "none runs in it".to_owned(),
        some => format!("it has {}", some.join(", ")),
    }
}

/// The processes with most turns, for a message that suggests them: names, and numbers of those
/// without.
fn most_active(summaries: &[SpaceSummary]) -> Vec<String> {
    let mut summaries: Vec<&SpaceSummary> = summaries.iter().collect();
    summaries.sort_by_key(|summary| std::cmp::Reverse(summary.turns));
    let mut suggested: Vec<String> = Vec::new();
    for summary in summaries {
        let known = match summary.name.as_str() {
            "" => summary.process.to_string(),
            name => printable(name),
        };
        if suggested.len() < 10 && !suggested.contains(&known) {
            suggested.push(known);
        }
    }
    suggested
}
