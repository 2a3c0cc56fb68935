//! `percid bench`: measures this machine, all of it or one part.

mod accounts;
mod areas;
mod benchmark;
mod cpu;
mod document;
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

use crate::cli::{
    BenchArguments, BenchPart, EverythingArguments, IncrementsArguments, IntermittentArguments,
    Length,
};
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::{Report, expect_file};

pub(crate) use cpu::pin_this_thread;
use document::Document;
use summary::{Costs, Facts};

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

/// The machine, and what follows from all parts in a few lines; all their tables where that is
/// wanted.
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
