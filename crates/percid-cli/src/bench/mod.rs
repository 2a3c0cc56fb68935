//! `percid bench`: measures this machine, completely or one part.

mod accounts;
mod alloc;
#[cfg_attr(not(target_os = "linux"), path = "no_areas.rs")]
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
#[cfg(feature = "metrics-peers")]
mod metrics;
mod ops;
mod page;
mod published;
mod samples;
mod shuffle;
mod summary;
mod sync;
mod team;
mod thread_usage;
mod titles;
pub(crate) mod wander;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::cli::{
    AllocArguments, BenchArguments, BenchPart, EverythingArguments, IncrementsArguments,
    IntermittentArguments, PartArguments,
};
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::{Report, expect_file};

pub(crate) use cpu::{has_realtime_priority, pin_this_thread};
use document::Document;
use summary::{Costs, Facts};

const VERSION: &str = env!("CARGO_PKG_VERSION");

const DEFAULT_EVERYTHING: Duration = Duration::from_secs(20);
const DEFAULT_OPS: Duration = Duration::from_secs(10);
const DEFAULT_MASK: Duration = Duration::from_secs(3);
const DEFAULT_SYNC: Duration = Duration::from_secs(10);
const DEFAULT_ALLOC: Duration = Duration::from_secs(10);
#[cfg(feature = "metrics-peers")]
const DEFAULT_METRICS: Duration = Duration::from_secs(20);
const DEFAULT_WANDER: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &BenchArguments, json: bool) -> Result<Exit, Failure> {
    let Some(part) = &arguments.part else { return everything(&arguments.everything, json) };
    if let BenchPart::Increments(IncrementsArguments { svg: Some(path), .. }) = part {
        expect_file("--svg", path)?;
    }
    if let BenchPart::Intermittent(IntermittentArguments {
        compete: Some(cpu), other_memory, ..
    }) = part
    {
        let kib = other_memory.first().copied().unwrap_or(0);
        return intermittent::compete(*cpu as u32, kib);
    }
    if let BenchPart::Alloc(AllocArguments { idle_of: Some(of), idle_threads, .. }) = part {
        return alloc::idle::child(of, idle_threads[0]);
    }
    #[cfg(not(feature = "metrics-peers"))]
    if let BenchPart::Metrics(_) = part {
        return Err(no_clients());
    }
    let report = Report::to(html(part))?;
    let plan = plan(part)?;
    let mut session = Session::start(json)?;
    let length = |part: &PartArguments, default| part.length.seconds.unwrap_or(default);
    let name = match part {
        BenchPart::Ops(ops) => {
            session.ops(length(ops, DEFAULT_OPS))?;
            "ops"
        }
        BenchPart::Increments(increments) => return session.increments(increments),
        BenchPart::Mask(mask) => {
            session.mask(length(mask, DEFAULT_MASK))?;
            "mask"
        }
        #[cfg(feature = "metrics-peers")]
        BenchPart::Metrics(metrics) => {
            session.metrics(metrics.length.seconds.unwrap_or(DEFAULT_METRICS))?;
            return session.tables();
        }
        #[cfg(not(feature = "metrics-peers"))]
        BenchPart::Metrics(_) => return Err(no_clients()),
        BenchPart::Sync(sync) => {
            session.sync(sync.length.seconds.unwrap_or(DEFAULT_SYNC))?;
            return session.tables();
        }
        BenchPart::Alloc(alloc) => {
            session.alloc(alloc)?;
            return session.tables();
        }
        BenchPart::Wander(wander) => {
            session.wander(length(wander, DEFAULT_WANDER))?;
            "wander"
        }
        BenchPart::Intermittent(arguments) => {
            let Some(plan) = plan else { return session.published(arguments, &report) };
            session.intermittent(plan)?;
            "intermittent"
        }
    };
    let printed = session.tables();
    let document = &session.document;
    report.write(printed.map(|_| ()), || page::of_part(name, document), document.exit())
}

/// Returns the path of the HTML report of a part.
fn html(part: &BenchPart) -> Option<&Path> {
    match part {
        BenchPart::Ops(part) | BenchPart::Mask(part) | BenchPart::Wander(part) => {
            part.html.as_deref()
        }
        BenchPart::Intermittent(arguments) => arguments.html.as_deref(),
        BenchPart::Increments(_)
        | BenchPart::Metrics(_)
        | BenchPart::Sync(_)
        | BenchPart::Alloc(_) => None,
    }
}

/// Returns the plan of the intermittent benchmark if it alone is requested. It may name CPUs that
/// do not exist; the error is then reported before anything else.
fn plan(part: &BenchPart) -> Result<Option<intermittent::Plan>, Failure> {
    match part {
        BenchPart::Intermittent(arguments) if !arguments.published => {
            intermittent::Plan::asked(arguments, &percid::machine::read().cpus).map(Some)
        }
        _ => Ok(None),
    }
}

/// Measures all parts, and prints the machine and a summary of a few lines, or all tables if
/// requested.
pub(crate) fn everything(arguments: &EverythingArguments, json: bool) -> Result<Exit, Failure> {
    let report = Report::to(arguments.html.as_deref())?;
    let length = arguments.length.seconds.unwrap_or(DEFAULT_EVERYTHING);
    let mut session = Session::start(json)?;
    let plan = intermittent::Plan::fitting(length / 2, &percid::machine::read().cpus)?;
    let (mask, wander) = (length / 20, length / 10);
    let ops = length.saturating_sub(plan.expected() + mask + wander);

    session.document.memory = memory::measure(&session.cpus, percid::init().source);
    session.ops(ops)?;
    session.tell_costs()?;
    session.mask(mask)?;
    if cpu::CAN_PIN {
        session.wander(wander)?;
        session.intermittent(plan)?;
    }
    session.tell(&Facts(&session.document))?;
    if arguments.full {
        session.tell(&format_args!("\n{}", session.document))?;
    }
    let printed = session.finish();
    report.write(printed, || page::page(&session.document), session.document.exit())
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

    fn ops(&mut self, length: Duration) -> Result<(), Failure> {
        self.document.ops = self.part(|cpus, interrupt| ops::measure(cpus, length, interrupt))?;
        Ok(())
    }

    fn mask(&mut self, length: Duration) -> Result<(), Failure> {
        self.document.mask = self.part(|cpus, interrupt| mask::measure(cpus, length, interrupt))?;
        Ok(())
    }

    #[cfg(feature = "metrics-peers")]
    fn metrics(&mut self, length: Duration) -> Result<(), Failure> {
        self.document.metrics =
            self.part(|cpus, interrupt| metrics::measure(cpus, length, interrupt))?;
        Ok(())
    }

    fn sync(&mut self, length: Duration) -> Result<(), Failure> {
        self.document.sync = self.part(|cpus, interrupt| sync::measure(cpus, length, interrupt))?;
        Ok(())
    }

    fn alloc(&mut self, arguments: &AllocArguments) -> Result<(), Failure> {
        let length = arguments.length.seconds.unwrap_or(DEFAULT_ALLOC);
        let idle = &arguments.idle_threads;
        self.document.alloc =
            self.part(|cpus, interrupt| alloc::measure(cpus, length, idle, interrupt))?;
        Ok(())
    }

    fn wander(&mut self, length: Duration) -> Result<(), Failure> {
        needs_pinning("percid bench wander")?;
        self.document.wander =
            self.part(|cpus, interrupt| wander::measure(cpus, length, interrupt))?;
        Ok(())
    }

    fn intermittent(&mut self, plan: intermittent::Plan) -> Result<(), Failure> {
        needs_pinning("percid bench intermittent")?;
        self.document.intermittent =
            self.part(|_, interrupt| intermittent::measure(plan, interrupt))?;
        Ok(())
    }

    /// Measures all parts of the published benchmark, and writes an HTML report if requested.
    fn published(
        mut self,
        arguments: &IntermittentArguments,
        report: &Report,
    ) -> Result<Exit, Failure> {
        needs_pinning("percid bench intermittent --published")?;
        self.document.published = published::measure(arguments, &self.interrupt)?;
        let printed = self.tell(&self.document).and_then(|()| self.finish());
        let Document { machine, interrupted, published, .. } = &self.document;
        let Some(measured) = published else { return printed.map(|()| self.document.exit()) };
        let page = || measured.page(&machine.summary(), *interrupted);
        report.write(printed, page, self.document.exit())
    }

    /// Measures increments, and draws them if requested.
    fn increments(mut self, arguments: &IncrementsArguments) -> Result<Exit, Failure> {
        let svg = arguments.svg.as_deref();
        let length = arguments.length.seconds.unwrap_or(DEFAULT_OPS);
        self.document.increments = self.part(|cpus, interrupt| {
            increments::measure(arguments.threads, cpus, length, interrupt)
        })?;
        let exit = self.tables()?;
        if let (Some(path), Some(report)) = (svg, &self.document.increments) {
            let machine = self.document.machine.name();
            let note = arguments.note.as_deref().map_or(String::new(), |note| format!("; {note}"));
            let cpus = self.cpus.len();
            let caption = format!("{machine}, CPUs: {cpus}; medians; percid {VERSION}{note}");
            match report.hiding() {
                Some(noise) => complain(format_args!("no picture: {noise}")),
                None => report.report.draw(path, &caption)?,
            }
        }
        Ok(exit)
    }

    /// Ends a run of one part: prints its tables, or the document.
    fn tables(&mut self) -> Result<Exit, Failure> {
        self.tell(&self.document)?;
        self.finish()?;
        Ok(self.document.exit())
    }

    /// Measures a part, unless Ctrl-C came first.
    fn part<R>(
        &self,
        measure: impl FnOnce(&[u32], &Interrupt) -> Result<R, Failure>,
    ) -> Result<Option<R>, Failure> {
        let wanted = !self.interrupt.pressed();
        wanted.then(|| measure(&self.cpus, &self.interrupt)).transpose()
    }

    fn tell_costs(&self) -> Result<(), Failure> {
        let document = &self.document;
        let Some(ops) = &document.ops else { return Ok(()) };
        if let Some(noise) = ops.hiding() {
            return self.tell(&ops.without_times(noise));
        }
        let costs = Costs::of(&ops.report, &document.machine);
        costs.map_or(Ok(()), |costs| self.tell(&costs))
    }

    fn tell(&self, text: &impl fmt::Display) -> Result<(), Failure> {
        if self.json { Ok(()) } else { output::print_text(text) }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.document.interrupted = self.interrupt.pressed();
        self.document.sum_up();
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

/// Returns the failure of a program that was built without the metrics clients.
#[cfg(not(feature = "metrics-peers"))]
fn no_clients() -> Failure {
    Failure::Usage(
        "this program was built without the clients that it would measure; build it with --features metrics-peers"
            .to_owned(),
    )
}

fn needs_pinning(part: &str) -> Result<(), Failure> {
    if cpu::CAN_PIN { Ok(()) } else { Err(Failure::not_supported(part, "Linux")) }
}
