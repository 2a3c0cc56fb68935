//! `percid info --check`: tests at length what percid promises on this kernel.

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
    /// What percid chooses by itself is as promised.
    as_promised: bool,
    /// The kernel aborted every critical section that it had to abort.
    kernel_as_promised: bool,
    interrupted: bool,
    /// Parts of which nothing was tried.
    not_checked: Vec<&'static str>,
    /// Parts whose times are noise.
    noise: Vec<NoiseOf>,
    /// Parts that the time was over for before all was tried.
    partial: Vec<&'static str>,
    aborts: AbortsReport,
    /// What the kernel's own IDs do.
    kernel_ids: Observation,
    stress: StressReport,
    #[serde(flatten)]
    wander: Judged<WanderReport>,
}

/// Checks for about `length`, or until Ctrl-C.
pub(crate) fn run(length: Duration) -> Result<CheckReport, Failure> {
    let interrupt = Interrupt::listen()?;
    let cpus: Vec<u32> = percid::machine::read().allowed.iter().collect();
    let aborts = AbortsReport::of(length / 4, &interrupt);
    let kernel_ids = kernel_ids::observe();
    let stress = stress::run(&cpus, length / 2, &interrupt)?;
    let wander = wander::measure(&cpus, length / 4, &interrupt)?;
    let kernel_as_promised = aborts.as_promised();
    // Atomics need no aborts.
    let choice_is_safe = kernel_as_promised || percid::init().source == Source::Atomic;
    let as_promised = choice_is_safe && stress.as_promised() && wander.report.wander_exact;
    let interrupted = interrupt.pressed();
    let noise = wander.noise().into_iter().collect();
    let not_checked = [aborts.not_checked(), stress.not_checked()];
    let not_checked = not_checked.into_iter().flatten().collect();
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

impl CheckReport {
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Whether all is as promised, in a few words.
    pub(crate) fn verdict(&self) -> &'static str {
        match (self.as_promised, self.interrupted, self.partial.is_empty()) {
            (false, ..) => "NOT AS PROMISED",
            _ if !self.kernel_as_promised => {
                "as promised by what percid chose; THE KERNEL BREAKS ITS PROMISE"
            }
            _ if !self.not_checked.is_empty() => "NOT CHECKED",
            (true, true, _) => "as promised, as far as it was checked: interrupted",
            (true, false, false) => "as promised, as far as it was checked: partial",
            (true, false, true) => "as promised",
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        if !self.as_promised {
            Exit::WrongCount
        } else if self.interrupted {
            Exit::Interrupted
        } else if !self.not_checked.is_empty() {
            Exit::NotChecked
        } else {
            Exit::Complete
        }
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
