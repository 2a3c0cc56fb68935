//! The IDs that the kernel gave while it was recorded are those of its generation's policy.

use percid_sim::Ns;
use percid_sim::conformance::{Conformance, generation};
use percid_sim::policies::find;
use percid_trace::kernel_ids::{self, Insufficient};
use percid_trace::record::Backend;

use crate::recording::{self, Handicap, Recording};
use crate::verdict::Verdict;
use crate::{cpus, heartbeat};

/// This many IDs must be compared in one recording, for each CPU. The first part of the workload
/// alone has more.
const DECIDED: usize = 20;

/// Number of recordings. Emulated CPUs stop sometimes. If the work of another CPU at that time
/// matters, the comparison ends, so a recording may show less than another. None may differ.
const RECORDINGS: usize = 4;

/// The negative control: the next generation, which differs only in the ID that a CPU gets again
/// after it has lost its own.
const OTHER: &str = "linux-6.13";

pub(crate) fn run() -> Verdict {
    let online = cpus::of_class("online")?;
    let mut figures = Vec::new();
    let mut most = Conformance::default();
    for _ in 0..RECORDINGS {
        let recording =
            heartbeat::during(&online, || recording::of_command(Backend::Tracefs, Handicap::NONE))?;
        let Recording { recorded, notes, .. } = &recording;
        let release = recorded.trace.origin.release.as_deref().unwrap_or_default();
        let Some(policy) = generation(release) else { return has_none(&recording) };
        let own = kernel_ids::compare_under(&recorded.trace, notes.process, policy);
        let own = own.map_err(|missing| missing.to_string())?;
        figures.push(format!("{} {own} inferred={}", policy.name, recorded.inferred));
        if let Some(first) = own.differences.first() {
            show_until(&recording, first.time);
            return Err(figures.join("; "));
        }
        if own.compared > most.compared {
            most = own;
        }
        if most.compared >= DECIDED * online.len() {
            figures.push(control(&recording)?);
            return Ok(figures.join("; "));
        }
    }
    let decided = DECIDED * online.len();
    Err(format!("{}: expected {decided} that are compared", figures.join("; ")))
}

/// Prints what led to a difference.
fn show_until(recording: &Recording, time: Ns) {
    let Recording { recorded, notes, .. } = recording;
    let steps = kernel_ids::recording(&recorded.trace, notes.process).map(|all| all.steps);
    let steps = steps.unwrap_or_default();
    let end = steps.partition_point(|step| step.time <= time);
    steps[end.saturating_sub(SHOWN)..end].iter().for_each(|step| println!("{step}"));
}

/// This many steps before a difference are printed.
const SHOWN: usize = 100;

/// Checks a kernel without IDs, which the recording must report.
fn has_none(recording: &Recording) -> Verdict {
    let Recording { recorded, notes, .. } = recording;
    if !recorded.without.contains(&"concurrency IDs") {
        return Err(format!("only {:?} are missing", recorded.without));
    }
    match kernel_ids::compare(&recorded.trace, notes.process) {
        Err(insufficient @ Insufficient::NoGeneration(_)) => Ok(insufficient.to_string()),
        other => Err(format!("expected no generation, found {other:?}")),
    }
}

/// Checks that the policy of another generation gives other IDs, for the events in the order of the
/// trace.
fn control(recording: &Recording) -> Verdict {
    let Recording { recorded, notes, .. } = recording;
    let other = find(OTHER).ok_or("no such policy")?;
    let steps = kernel_ids::recording(&recorded.trace, notes.process);
    let comparison = steps.map_err(|missing| missing.to_string())?.compare(other);
    let (compared, different) = (comparison.compared, comparison.differences.len());
    match different {
        0 => Err(format!("{OTHER}: {compared} IDs are the same")),
        _ => Ok(format!("control: {OTHER} compared={compared} different={different}")),
    }
}
