//! `percid bench`: measures this machine, all of it or one part.

mod accounts;
mod areas;
mod benchmark;
mod cpu;
mod figures;
mod intermittent;
mod loops;
mod mask;
mod ops;
mod samples;
mod shuffle;
mod team;
mod thread_usage;
pub(crate) mod wander;

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::cli::{BenchArguments, BenchPart, IntermittentArguments, Length};
use crate::machine::MachineReport;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;

pub(crate) use cpu::pin_this_thread;
use intermittent::IntermittentReport;
use mask::MaskReport;
use ops::OpsReport;
use wander::WanderReport;

const DEFAULT_EVERYTHING: Duration = Duration::from_secs(20);
const DEFAULT_OPS: Duration = Duration::from_secs(10);
const DEFAULT_MASK: Duration = Duration::from_secs(3);
const DEFAULT_WANDER: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &BenchArguments, json: bool) -> Result<Exit, Failure> {
    match &arguments.part {
        None => everything(arguments.length, json),
        Some(BenchPart::Ops(length)) => ops_only(*length, json),
        Some(BenchPart::Mask(length)) => mask_only(*length, json),
        Some(BenchPart::Wander(length)) => wander_only(*length, json),
        Some(BenchPart::Intermittent(arguments)) => intermittent_only(arguments, json),
    }
}

/// The machine's summary, then operations, the mask, wandering threads, and the intermittent benchmark.
pub(crate) fn everything(length: Length, json: bool) -> Result<Exit, Failure> {
    let length = length.seconds.unwrap_or(DEFAULT_EVERYTHING);
    let mut session = Session::start(json)?;
    let plan = intermittent::Plan::fitting(length / 2, session.cpus());
    let mask = length / 20;
    let wander = length / 10;
    session.ops(length.saturating_sub(plan.expected() + mask + wander))?;
    session.mask(mask)?;
    session.wander(wander)?;
    session.intermittent(plan)?;
    session.finish()
}

fn ops_only(length: Length, json: bool) -> Result<Exit, Failure> {
    let mut session = Session::start(json)?;
    session.ops(length.seconds.unwrap_or(DEFAULT_OPS))?;
    session.finish()
}

fn mask_only(length: Length, json: bool) -> Result<Exit, Failure> {
    let mut session = Session::start(json)?;
    session.mask(length.seconds.unwrap_or(DEFAULT_MASK))?;
    session.finish()
}

fn wander_only(length: Length, json: bool) -> Result<Exit, Failure> {
    let mut session = Session::start(json)?;
    session.wander(length.seconds.unwrap_or(DEFAULT_WANDER))?;
    session.finish()
}

fn intermittent_only(arguments: &IntermittentArguments, json: bool) -> Result<Exit, Failure> {
    let mut session = Session::start(json)?;
    let plan = intermittent::Plan::asked(arguments, session.cpus());
    session.intermittent(plan)?;
    session.finish()
}

/// One run of `percid bench`. Text is printed part by part, JSON at the end.
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
    #[serde(flatten)]
    ops: Option<OpsReport>,
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
        session.tell(&session.document.machine.summary())?;
        Ok(session)
    }

    fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn ops(&mut self, length: Duration) -> Result<(), Failure> {
        if self.interrupt.pressed() {
            return Ok(());
        }
        let report = ops::measure(&self.cpus, length, &self.interrupt)?;
        self.tell(&report)?;
        self.document.ops = Some(report);
        Ok(())
    }

    fn mask(&mut self, length: Duration) -> Result<(), Failure> {
        if self.interrupt.pressed() {
            return Ok(());
        }
        let report = mask::measure(&self.cpus, length, &self.interrupt)?;
        self.tell(&report)?;
        self.document.mask = Some(report);
        Ok(())
    }

    fn wander(&mut self, length: Duration) -> Result<(), Failure> {
        if self.interrupt.pressed() {
            return Ok(());
        }
        let report = wander::measure(&self.cpus, length, &self.interrupt)?;
        self.tell(&report)?;
        self.document.wander = Some(report);
        Ok(())
    }

    fn intermittent(&mut self, plan: intermittent::Plan) -> Result<(), Failure> {
        if self.interrupt.pressed() {
            return Ok(());
        }
        let report = intermittent::measure(plan, &self.interrupt)?;
        self.tell(&report)?;
        self.document.intermittent = Some(report);
        Ok(())
    }

    fn tell(&self, part: &impl fmt::Display) -> Result<(), Failure> {
        if self.json { Ok(()) } else { output::print_text(&format_args!("{part}\n")) }
    }

    fn finish(mut self) -> Result<Exit, Failure> {
        self.document.interrupted = self.interrupt.pressed();
        if self.json {
            output::print_json(&self.document)?;
        } else if self.document.interrupted {
            complain(format_args!("interrupted: the figures are those measured so far"));
        }
        Ok(self.document.exit())
    }
}

impl Document {
    fn new() -> Self {
        Document {
            machine: MachineReport::read(),
            interrupted: false,
            ops: None,
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
