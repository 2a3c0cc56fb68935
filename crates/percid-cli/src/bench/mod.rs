//! `percid bench`: measures this machine, all of it or one part.

mod accounts;
mod areas;
mod benchmark;
mod cpu;
mod figures;
mod increments;
mod intermittent;
mod loops;
mod mask;
mod memory;
mod ops;
mod page;
mod samples;
mod shuffle;
mod summary;
mod team;
mod thread_usage;
mod titles;
pub(crate) mod wander;

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::cli::{
    BenchArguments, BenchPart, EverythingArguments, IncrementsArguments, IntermittentArguments,
    Length,
};
use crate::machine::MachineReport;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::{Report, expect_file};

pub(crate) use cpu::pin_this_thread;
use increments::IncrementsReport;
use intermittent::IntermittentReport;
use mask::MaskReport;
use memory::MemoryReport;
use ops::OpsReport;
use summary::{Costs, Facts};
use wander::WanderReport;

const VERSION: &str = env!("CARGO_PKG_VERSION");

const DEFAULT_EVERYTHING: Duration = Duration::from_secs(20);
const DEFAULT_OPS: Duration = Duration::from_secs(10);
const DEFAULT_MASK: Duration = Duration::from_secs(3);
const DEFAULT_WANDER: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &BenchArguments, json: bool) -> Result<Exit, Failure> {
    match &arguments.part {
        None => everything(&arguments.everything, json),
        Some(BenchPart::Ops(length)) => ops_only(*length, json),
        Some(BenchPart::Increments(arguments)) => increments_only(arguments, json),
        Some(BenchPart::Mask(length)) => mask_only(*length, json),
        Some(BenchPart::Wander(length)) => wander_only(*length, json),
        Some(BenchPart::Intermittent(arguments)) => intermittent_only(arguments, json),
    }
}

/// The machine, and what follows from all parts in a few lines; all their tables where that is wanted.
pub(crate) fn everything(arguments: &EverythingArguments, json: bool) -> Result<Exit, Failure> {
    let report = Report::to(arguments.html.as_deref())?;
    let length = arguments.length.seconds.unwrap_or(DEFAULT_EVERYTHING);
    let mut session = Session::start(json)?;
    let plan = intermittent::Plan::fitting(length / 2, &session.cpus);
    let (mask, wander) = (length / 20, length / 10);
    let ops = length.saturating_sub(plan.expected() + mask + wander);

    session.document.memory = memory::measure(&session.cpus, percid::init().source);
    session.document.ops = session.part(|cpus, interrupt| ops::measure(cpus, ops, interrupt))?;
    session.tell_costs()?;
    session.document.mask = session.part(|cpus, interrupt| mask::measure(cpus, mask, interrupt))?;
    session.document.wander =
        session.part(|cpus, interrupt| wander::measure(cpus, wander, interrupt))?;
    session.document.intermittent =
        session.part(|_, interrupt| intermittent::measure(plan, interrupt))?;
    session.tell(&Facts(&session.document))?;
    if arguments.full {
        session.tell(&format_args!("\n{}", session.document))?;
    }
    let printed = session.finish();
    report.write(printed, || page::page(&session.document), session.document.exit())
}

fn ops_only(length: Length, json: bool) -> Result<Exit, Failure> {
    let length = length.seconds.unwrap_or(DEFAULT_OPS);
    Session::only(json, |session| {
        session.document.ops =
            session.part(|cpus, interrupt| ops::measure(cpus, length, interrupt))?;
        Ok(())
    })
}

fn increments_only(arguments: &IncrementsArguments, json: bool) -> Result<Exit, Failure> {
    let svg = arguments.svg.as_deref();
    svg.map_or(Ok(()), |path| expect_file("--svg", path))?;
    let length = arguments.length.seconds.unwrap_or(DEFAULT_OPS);
    let mut session = Session::start(json)?;
    let report = session
        .part(|cpus, interrupt| increments::measure(arguments.threads, cpus, length, interrupt))?;
    session.document.increments = report;
    session.tell(&session.document)?;
    session.finish()?;
    if let (Some(path), Some(report)) = (svg, &session.document.increments) {
        let machine = session.document.machine.name();
        let note = arguments.note.as_deref().map_or(String::new(), |note| format!("; {note}"));
        let cpus = session.cpus.len();
        let caption = format!("{machine}, CPUs: {cpus}; medians; percid {VERSION}{note}");
        report.draw(path, &caption)?;
    }
    Ok(session.document.exit())
}

fn mask_only(length: Length, json: bool) -> Result<Exit, Failure> {
    let length = length.seconds.unwrap_or(DEFAULT_MASK);
    Session::only(json, |session| {
        session.document.mask =
            session.part(|cpus, interrupt| mask::measure(cpus, length, interrupt))?;
        Ok(())
    })
}

fn wander_only(length: Length, json: bool) -> Result<Exit, Failure> {
    let length = length.seconds.unwrap_or(DEFAULT_WANDER);
    Session::only(json, |session| {
        session.document.wander =
            session.part(|cpus, interrupt| wander::measure(cpus, length, interrupt))?;
        Ok(())
    })
}

fn intermittent_only(arguments: &IntermittentArguments, json: bool) -> Result<Exit, Failure> {
    Session::only(json, |session| {
        let plan = intermittent::Plan::asked(arguments, &session.cpus);
        session.document.intermittent =
            session.part(|_, interrupt| intermittent::measure(plan, interrupt))?;
        Ok(())
    })
}

/// One run of `percid bench`. JSON is printed at the end.
#[derive(Debug)]
struct Session {
    json: bool,
    interrupt: Interrupt,
    cpus: Vec<u32>,
    document: Document,
}

/// The JSON document: the keys of each part beside each other, those of parts that did not run left out.
#[derive(Debug, Serialize)]
struct Document {
    machine: MachineReport,
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryReport>,
    #[serde(flatten)]
    ops: Option<OpsReport>,
    #[serde(flatten)]
    increments: Option<IncrementsReport>,
    #[serde(flatten)]
    mask: Option<MaskReport>,
    #[serde(flatten)]
    wander: Option<WanderReport>,
    #[serde(flatten)]
    intermittent: Option<IntermittentReport>,
}

impl Session {
    fn start(json: bool) -> Result<Self, Failure> {
        let interrupt = Interrupt::listen()?;
        let cpus = percid::machine::read().allowed.iter().collect();
        let session = Session { json, interrupt, cpus, document: Document::new() };
        session.tell(&format_args!("{}\n", session.document.machine.summary()))?;
        Ok(session)
    }

    /// One part and its tables.
    fn only(
        json: bool,
        measure: impl FnOnce(&mut Session) -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        let mut session = Session::start(json)?;
        measure(&mut session)?;
        session.tell(&session.document)?;
        session.finish()?;
        Ok(session.document.exit())
    }

    /// Measures, unless Ctrl-C came first.
    fn part<R>(
        &self,
        measure: impl FnOnce(&[u32], &Interrupt) -> Result<R, Failure>,
    ) -> Result<Option<R>, Failure> {
        let wanted = !self.interrupt.pressed();
        wanted.then(|| measure(&self.cpus, &self.interrupt)).transpose()
    }

    fn tell_costs(&self) -> Result<(), Failure> {
        let document = &self.document;
        let costs = document.ops.as_ref().and_then(|ops| Costs::of(ops, &document.machine));
        costs.map_or(Ok(()), |costs| self.tell(&costs))
    }

    fn tell(&self, text: &impl fmt::Display) -> Result<(), Failure> {
        if self.json { Ok(()) } else { output::print_text(text) }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.document.interrupted = self.interrupt.pressed();
        if self.json {
            output::print_json(&self.document)
        } else {
            if self.document.interrupted {
                complain(format_args!("interrupted: the figures are those measured so far"));
            }
            Ok(())
        }
    }
}

/// All tables of the parts that were measured.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: [Option<&dyn fmt::Display>; 5] = [
            self.ops.as_ref().map(|part| part as _),
            self.increments.as_ref().map(|part| part as _),
            self.mask.as_ref().map(|part| part as _),
            self.wander.as_ref().map(|part| part as _),
            self.intermittent.as_ref().map(|part| part as _),
        ];
        parts.into_iter().flatten().try_for_each(|part| writeln!(f, "{part}"))
    }
}

impl Document {
    fn new() -> Self {
        Document {
            machine: MachineReport::read(),
            interrupted: false,
            memory: None,
            ops: None,
            increments: None,
            mask: None,
            wander: None,
            intermittent: None,
        }
    }

    fn exit(&self) -> Exit {
        if !self.is_exact() {
            Exit::WrongCount
        } else if self.interrupted {
            Exit::Interrupted
        } else {
            Exit::Complete
        }
    }

    /// Whether everything that was counted is as it must be.
    fn is_exact(&self) -> bool {
        self.ops.as_ref().is_none_or(|ops| ops.sums_exact)
            && self.increments.as_ref().is_none_or(|increments| increments.increments_exact)
            && self.mask.as_ref().is_none_or(|mask| mask.mask_exact)
            && self.wander.as_ref().is_none_or(|wander| wander.wander_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use accounts::tests::{Conduct, benchmark_of};

    #[test]
    fn what_was_lost_or_doubled_ends_in_an_error() {
        for (conduct, exit) in [
            (Conduct::Honest, Exit::Interrupted),
            (Conduct::LosesOne, Exit::WrongCount),
            (Conduct::DoublesOne, Exit::WrongCount),
        ] {
            let mut document = Document::new();
            document.interrupted = true;
            assert_eq!(document.exit(), Exit::Interrupted);
            document.ops = Some(OpsReport::of(&benchmark_of(conduct), Duration::ZERO));
            assert_eq!(document.exit(), exit, "ops, {conduct:?}");
            document.ops = None;
            document.mask = Some(MaskReport::of(&benchmark_of(conduct)));
            assert_eq!(document.exit(), exit, "mask, {conduct:?}");
        }
    }
}
