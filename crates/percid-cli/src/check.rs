//! `percid info --check`: tests percid's guarantees on this kernel at length.

mod aborts;
mod stress;

use std::fmt;
use std::time::Duration;

use percid::Source;
use serde::Serialize;

use crate::bench::wander::{self, WanderReport};
use crate::judged::{Judged, NoiseOf};
use crate::kernel_ids::{self, Observation};
use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;

use aborts::AbortsReport;
use stress::StressReport;

/// The object `check` of the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct CheckReport {
    /// `true` if the source that percid selects by default keeps its guarantees; `null` if that was
    /// not checked.
    as_promised: Option<bool>,
    /// `true` if the kernel aborted every critical section that it had to abort.
    kernel_as_promised: bool,
    interrupted: bool,
    /// Parts of which nothing was tested.
    not_checked: Vec<&'static str>,
    /// Parts whose times are noise.
    noise: Vec<NoiseOf>,
    /// Parts whose time was over before everything was tested.
    partial: Vec<&'static str>,
    aborts: AbortsReport,
    /// Behaviour of the kernel's own IDs.
    kernel_ids: Observation,
    stress: StressReport,
    #[serde(flatten)]
    wander: Judged<WanderReport>,
}

/// Checks for about `length`, or until Ctrl-C.
pub(crate) fn run(length: Duration) -> Result<CheckReport, Failure> {
    let interrupt = Interrupt::listen()?;
    let cpus: Vec<u32> = percid::machine::read().allowed.iter().collect();
    let aborts = AbortsReport::measure(length / 4, &interrupt);
    let kernel_ids = kernel_ids::observe();
    let stress = stress::run(&cpus, length / 2, &interrupt)?;
    let wander = wander::measure(&cpus, length / 4, &interrupt)?;
    let kernel_as_promised = aborts.as_promised();
    // Atomics do not depend on aborts.
    let choice_is_safe = kernel_as_promised || percid::init().source == Source::Atomic;
    let right = choice_is_safe && stress.as_promised() && wander.report.wander_exact;
    let interrupted = interrupt.pressed();
    let noise = wander.noise().into_iter().collect();
    let not_checked = [aborts.not_checked(), stress.not_checked()];
    let not_checked: Vec<_> = not_checked.into_iter().flatten().collect();
    let as_promised = judged(right, not_checked.is_empty());
    let partial = [aborts.partial(), stress.partial(), wander.partial()];
    let partial = partial.into_iter().flatten().collect();
    Ok(CheckReport {
        as_promised,
        kernel_as_promised,
        interrupted,
        not_checked,
        noise,
        partial,
        aborts,
        kernel_ids,
        stress,
        wander,
    })
}

/// Returns the verdict; `None` if no fault was found, but something was not tested.
fn judged(right: bool, was_tried: bool) -> Option<bool> {
    if right && !was_tried { None } else { Some(right) }
}

fn exit(as_promised: Option<bool>, interrupted: bool) -> Exit {
    match as_promised {
        Some(false) => Exit::WrongCount,
        _ if interrupted => Exit::Interrupted,
        None => Exit::NotChecked,
        Some(true) => Exit::Complete,
    }
}

impl CheckReport {
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Returns the verdict in a few words.
    pub(crate) fn verdict(&self) -> &'static str {
        match (self.as_promised, self.interrupted, self.partial.is_empty()) {
            (Some(false), ..) => "NOT AS PROMISED",
            _ if !self.kernel_as_promised => {
                "as promised by what percid chose; THE KERNEL BREAKS ITS PROMISE"
            }
            (None, ..) => "NOT CHECKED",
            (Some(true), true, _) => "as promised, as far as it was checked: interrupted",
            (Some(true), false, false) => "as promised, as far as it was checked: partial",
            (Some(true), false, true) => "as promised",
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        exit(self.as_promised, self.interrupted)
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.aborts)?;
        writeln!(f, "{}", self.kernel_ids)?;
        writeln!(f, "{}", self.stress)?;
        writeln!(f, "{}", self.wander)?;
        let separator = if self.not_checked.is_empty() { "" } else { ": " };
        let parts = self.not_checked.join(", ");
        writeln!(f, "check       {}{separator}{parts}", self.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_tried_is_not_as_promised() {
        assert_eq!(judged(true, true), Some(true));
        assert_eq!(judged(true, false), None);
        assert_eq!([true, false].map(|was_tried| judged(false, was_tried)), [Some(false); 2]);
        let exits = [Some(true), None, Some(false)].map(|judged| exit(judged, false));
        assert_eq!(exits, [Exit::Complete, Exit::NotChecked, Exit::WrongCount]);
        let exits = [Some(true), None, Some(false)].map(|judged| exit(judged, true));
        assert_eq!(exits, [Exit::Interrupted, Exit::Interrupted, Exit::WrongCount]);
    }
}
