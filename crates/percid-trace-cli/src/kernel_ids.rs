//! `percid trace check-ids`: the IDs that the kernel gave, and those of its policy.

use std::collections::{HashMap, HashSet};
use std::fmt;

use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::trace::KernelIdsArguments;
use percid_command::trace_window::TimeArguments;
use percid_command::watch::watched;
use percid_sim::conformance::{Conformance, generation};
use percid_sim::explanation;
use percid_trace::Trace;
use percid_trace::event::{Tid, What};
use percid_trace::kernel_ids::{self, Insufficient};
use percid_trace::quality::Quality;
use percid_trace::replay;
use serde::Serialize;

use crate::printable::printable;
use crate::window;

pub(crate) fn run(arguments: &KernelIdsArguments, json: bool) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let (trace, quality) =
        window::load_closed(&arguments.file, &TimeArguments::default(), &interrupt)?;
    let answer = Answer::new(&trace, quality, arguments.process, &interrupt);
    if json {
        output::print_json(&answer)?
    } else {
        output::print_text(&answer)?
    }
    Ok(match () {
        () if answer.interrupted => Exit::Interrupted,
        () if answer.different > 0 => Exit::Differs,
        () => Exit::Complete,
    })
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Answer {
    quality: Quality,
    release: Option<String>,
    /// The policy that explains the IDs best, with which they were compared.
    policy: Option<&'static str>,
    /// The policy that the release suggests.
    hinted: Option<&'static str>,
    /// Number of IDs that each policy would have given differently.
    evidence: Vec<Evidence>,
    compared: usize,
    different: usize,
    /// `true` if Ctrl-C came first: processes that were not compared by then are missing.
    interrupted: bool,
    processes: Vec<Process>,
}

/// How well a policy explains the IDs of all processes.
#[derive(Debug, Serialize)]
struct Evidence {
    policy: &'static str,
    compared: usize,
    different: usize,
}

/// The result for one process.
#[derive(Debug, Serialize)]
struct Process {
    process: Tid,
    name: String,
    compared: usize,
    different: usize,
    /// Time since which two decisions were too close to distinguish, in nanoseconds since its exec.
    undecided_from_ns: Option<u64>,
    /// The first ones that differ.
    differences: Vec<String>,
    /// The reason why nothing was compared.
    insufficient: Option<String>,
}

/// The number of differences named: most others follow from the first.
const NAMED: usize = 5;

impl Answer {
    fn new(trace: &Trace, quality: Quality, only: Option<Tid>, interrupt: &Interrupt) -> Answer {
        let candidates = candidates(trace, only);
        let numbers: Vec<Tid> = candidates.iter().map(|(process, _)| *process).collect();
        let found = watched("compare", Some(trace.events.len() as u64), interrupt, |progress| {
            kernel_ids::compare_all(trace, &numbers, progress)
        });
        let interrupted = found.processes.len() < candidates.len();
        let compared = candidates.into_iter().zip(found.processes);
        let processes: Vec<Process> =
            compared.map(|((process, name), found)| Process::new(process, name, found)).collect();
        let release = trace.origin.release.clone();
        Answer {
            quality,
            policy: found.behaviour.map(|behaviour| behaviour.policy().name),
            hinted: release.as_deref().and_then(generation).map(|entry| entry.name),
            evidence: found.explanation.evidence.iter().map(Evidence::from_counts).collect(),
            release,
            compared: processes.iter().map(|process| process.compared).sum(),
            different: processes.iter().map(|process| process.different).sum(),
            interrupted,
            processes,
        }
    }
}

/// Returns the processes that start a program within the trace, or the requested one.
fn candidates(trace: &Trace, only: Option<Tid>) -> Vec<(Tid, String)> {
    let summaries = replay::summaries(trace);
    // Later programs of a process overwrite earlier ones.
    let names: HashMap<Tid, &str> =
        summaries.iter().map(|summary| (summary.process, summary.name.as_str())).collect();
    let name = |process| names.get(&process).copied().unwrap_or_default().to_owned();
    if let Some(process) = only {
        return vec![(process, name(process))];
    }
    let mut seen = HashSet::new();
    let started = trace.events.iter().filter_map(|event| match event.what {
        What::Exec { thread, .. } => Some(thread),
        _ => None,
    });
    started.filter(|&thread| seen.insert(thread)).map(|thread| (thread, name(thread))).collect()
}

impl Evidence {
    fn from_counts(evidence: &explanation::Evidence) -> Evidence {
        let explanation::Evidence { behaviour, compared, different } = *evidence;
        Evidence { policy: behaviour.policy().name, compared, different }
    }
}

impl Process {
    fn new(process: Tid, name: String, found: Result<Conformance, Insufficient>) -> Process {
        let (comparison, insufficient) = match found {
            Ok(comparison) => (comparison, None),
            Err(insufficient) => (Conformance::default(), Some(insufficient.to_string())),
        };
        let named = comparison.differences.iter().take(NAMED);
        Process {
            process,
            name,
            compared: comparison.compared,
            different: comparison.differences.len(),
            undecided_from_ns: comparison.border,
            differences: named.map(ToString::to_string).collect(),
            insufficient,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = self.release.as_deref().unwrap_or("of unknown release");
        let policy = self.policy.unwrap_or("none that is known");
        writeln!(f, "{}", self.quality)?;
        write!(f, "Linux {release}, its policy: {policy}")?;
        match self.hinted {
            hinted if hinted == self.policy => writeln!(f)?,
            Some(hinted) => writeln!(f, ", though its release suggests {hinted}")?,
            None => writeln!(f, ", though kernels of its release have no IDs")?,
        }
        for process in &self.processes {
            write!(f, "{process}")?;
        }
        let (compared, different) = (self.compared, self.different);
        writeln!(f, "{compared} IDs compared, {different} different")
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {} ({}): ", printable(&self.name), self.process)?;
        if let Some(why) = &self.insufficient {
            return writeln!(f, "not compared: {why}");
        }
        write!(f, "{} compared, {} different", self.compared, self.different)?;
        if let Some(from) = self.undecided_from_ns {
            write!(f, "; from {} ms on it is too close to tell", from / 1_000_000)?;
        }
        writeln!(f)?;
        self.differences.iter().try_for_each(|difference| writeln!(f, "    {difference}"))
    }
}
