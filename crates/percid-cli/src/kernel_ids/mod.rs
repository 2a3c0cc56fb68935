//! Behaviour of the running kernel's concurrency IDs: an experiment in a separate process, whose
//! result is explained by the policies of the simulator. The kernel's release is a hint, and the
//! result of the experiment may differ from it.
//!
//! The process is a separate one, because the kernel's IDs depend on the history of a process, and
//! this one has threads.

mod experiment;
mod journal;
mod script;

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use percid::id::Generation;
use percid_command::exit::{Exit, Failure};
use percid_command::output;
use percid_command::report::{self, Report};
use percid_report::{Axis, Bars, Page};
use percid_sim::conformance::Recording;
use percid_sim::explanation::{Behaviour, Explanation};
use serde::Serialize;

/// Result of the experiment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Observation {
    /// The generation of the kernel's IDs, or `cpu-numbers` if the kernel was built without them;
    /// `null` if that is undecided.
    observed: Option<String>,
    /// The generation that the kernel's release suggests; `null` if kernels of that release have no
    /// IDs.
    hinted: Option<String>,
    /// `true` if both are known and differ.
    differs: bool,
    /// Number of IDs that each behaviour explains.
    evidence: Vec<EvidenceReport>,
    /// The reason why it is undecided.
    undecided: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct EvidenceReport {
    behaviour: String,
    compared: usize,
    different: usize,
}

/// Number of repetitions of the experiment. If others use the CPUs, threads may act too late, and
/// one experiment may look like another generation. Two of them do not look like the same wrong
/// one.
const ROUNDS: usize = 2;

/// Determines the behaviour of the kernel's IDs. Takes two or three seconds; starts processes that
/// end before this returns.
pub(crate) fn observe() -> Observation {
    let release = percid::machine::read().kernel_release;
    let hinted = Generation::hinted_by(&release);
    let rounds: Result<Vec<Recording>, String> =
        (0..ROUNDS).map(|_| record_in_another_process()).collect();
    match rounds {
        Ok(rounds) => Observation::new(hinted, &Explanation::from_recordings(&rounds)),
        Err(why) => Observation::undecided(hinted, why),
    }
}

/// Runs the test alone, without the rest of `percid info --check`.
pub(crate) fn run(html: Option<&Path>, json: bool) -> Result<Exit, Failure> {
    let report = Report::to(html)?;
    let observation = observe();
    let printed =
        if json { output::print_json(&observation) } else { output::print_text(&observation) };
    report.write(printed, || observation.page(), Exit::Complete)
}

/// Runs the experiment, in a process that does nothing else. Prints the recording.
pub(crate) fn experiment() -> Result<Exit, Failure> {
    match experiment::record() {
        Ok(recording) => output::print_text(&recording)?,
        Err(why) => output::print_text(&format!("{MISSING}{why}\n"))?,
    }
    Ok(Exit::Complete)
}

/// Prefix of the reason why nothing was recorded.
const MISSING: &str = "not possible: ";

/// The hidden subcommand that runs [`experiment`].
const SUBCOMMAND: [&str; 2] = ["kernel-ids", "--experiment"];

/// Time limit of the experiment: many times its duration.
const PATIENCE: Duration = Duration::from_secs(6);

fn record_in_another_process() -> Result<Recording, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(SUBCOMMAND).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("starting again: {error}"))?;
    let text = printed_by(&mut child);
    let text = text.ok_or_else(|| format!("the experiment took longer than {PATIENCE:?}"))?;
    match text.strip_prefix(MISSING) {
        Some(why) => Err(why.trim_end().to_owned()),
        None => Recording::read(&text).map_err(|error| format!("the experiment: {error}")),
    }
}

/// Returns the output of a process until it ends. If it does not end in time, kills it and returns
/// `None`.
fn printed_by(child: &mut Child) -> Option<String> {
    let mut stdout = child.stdout.take()?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let until = Instant::now() + PATIENCE;
    while !reader.is_finished() && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    let is_late = !reader.is_finished();
    if is_late {
        let _ = child.kill();
    }
    let _ = child.wait();
    let text = reader.join().ok()?.ok()?;
    (!is_late).then_some(text)
}

impl Observation {
    fn new(hinted: Option<Generation>, explanation: &Explanation) -> Observation {
        let decided = explanation.decided();
        let names = |behaviours: Vec<Behaviour>| -> String {
            let names: Vec<String> = behaviours.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        let undecided = match (decided, explanation.candidates()) {
            (Some(_), _) => None,
            (None, several) if several.is_empty() => Some(NOTHING_EXPLAINS.to_owned()),
            (None, several) => Some(format!("all of these explain it: {}", names(several))),
        };
        let report = |evidence: &percid_sim::explanation::Evidence| EvidenceReport {
            behaviour: evidence.behaviour.to_string(),
            compared: evidence.compared,
            different: evidence.different,
        };
        Observation {
            observed: decided.map(|behaviour| behaviour.to_string()),
            differs: decided.is_some_and(|behaviour| hinted.map(Behaviour::Of) != Some(behaviour)),
            hinted: hinted.map(|generation| generation.to_string()),
            evidence: explanation.evidence.iter().map(report).collect(),
            undecided,
        }
    }

    fn undecided(hinted: Option<Generation>, why: String) -> Observation {
        let hinted = hinted.map(|generation| generation.to_string());
        let undecided = Some(why);
        Observation { observed: None, hinted, differs: false, evidence: Vec::new(), undecided }
    }
}

impl Observation {
    fn page(&self) -> Page {
        let explained = |of: &EvidenceReport| of.compared - of.different;
        let observed = self.observed.as_ref().and_then(|observed| {
            self.evidence.iter().find(|evidence| evidence.behaviour == *observed)
        });
        let verdict = match (observed, &self.undecided) {
            (Some(of), _) => format!(
                "The kernel's IDs behave as {}, which explains {} of {} IDs.",
                of.behaviour,
                explained(of),
                of.compared
            ),
            (None, why) => format!(
                "The kernel's IDs are undecided among {} behaviours: {}.",
                self.evidence.len(),
                why.as_deref().unwrap_or_default()
            ),
        };
        let mut page = report::page("percid kernel-ids", verdict, "The IDs of this kernel.", false);
        let mut bars = Bars::grouped(Axis::new("behaviour"), Axis::new("IDs"), ["explained"]);
        for evidence in &self.evidence {
            bars.category(evidence.behaviour.as_str(), [explained(evidence) as f64]);
        }
        if !self.evidence.is_empty() {
            page.chart("IDs explained by each behaviour", "", bars);
        }
        page.section("All that was found", "").printed(self.to_string().trim_end());
        page
    }
}

const NOTHING_EXPLAINS: &str =
    "no generation explains them; where other programs crowd the CPUs, try again";

/// Formats a line for the result, one for the hint, and one for the evidence.
impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Observation { observed, hinted, differs, evidence, undecided } = self;
        match (observed, undecided) {
            (Some(observed), _) => writeln!(f, "the kernel's IDs behave as: {observed}")?,
            (None, why) => {
                let why = why.as_deref().unwrap_or_default();
                writeln!(f, "how the kernel's IDs behave is undecided: {why}")?;
            }
        }
        let hinted = hinted.as_deref().unwrap_or("no IDs");
        let differs = if *differs { ", which is not what they do" } else { "" };
        writeln!(f, "  hint of its release: {hinted}{differs}")?;
        if evidence.is_empty() {
            return Ok(());
        }
        write!(f, "  IDs explained:")?;
        for (nr, EvidenceReport { behaviour, compared, different }) in evidence.iter().enumerate() {
            let comma = if nr == 0 { "" } else { "," };
            write!(f, "{comma} {behaviour} {} of {compared}", compared - different)?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests;
