//! `percid bench`: measures this machine, all of it or one part.

mod areas;
mod cpu;
mod intermittent;
mod loops;
mod ops;
#[cfg(feature = "peers")]
mod peers;
mod samples;
mod shuffle;
mod team;
mod thread_usage;

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::cli::{BenchArguments, BenchPart, IntermittentArguments, Length};
use crate::interrupt::Interrupt;
use crate::machine::MachineReport;
use crate::outcome::{Failure, Outcome, complain};
use crate::output;

use intermittent::IntermittentReport;
use ops::OpsReport;

const DEFAULT_EVERYTHING: Duration = Duration::from_secs(20);
const DEFAULT_OPS: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: &BenchArguments, json: bool) -> Result<Outcome, Failure> {
    match &arguments.part {
        None => everything(arguments.length, json),
        Some(BenchPart::Ops(length)) => ops_only(*length, json),
        Some(BenchPart::Intermittent(arguments)) => intermittent_only(arguments, json),
    }
}

/// The machine's summary, then operations, then the intermittent benchmark.
pub(crate) fn everything(length: Length, json: bool) -> Result<Outcome, Failure> {
    let length = length.seconds.unwrap_or(DEFAULT_EVERYTHING);
    let mut session = Session::start(json)?;
    let plan = intermittent::Plan::fitting(length / 2, session.cpus());
    session.ops(length.saturating_sub(plan.expected()))?;
    session.intermittent(plan)?;
    session.finish()
}

fn ops_only(length: Length, json: bool) -> Result<Outcome, Failure> {
    let mut session = Session::start(json)?;
    session.ops(length.seconds.unwrap_or(DEFAULT_OPS))?;
    session.finish()
}

fn intermittent_only(arguments: &IntermittentArguments, json: bool) -> Result<Outcome, Failure> {
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
    intermittent: Option<IntermittentReport>,
}

impl Session {
    fn start(json: bool) -> Result<Self, Failure> {
        let interrupt = Interrupt::listen()?;
        let machine = MachineReport::read();
        let cpus = percid::machine::read().allowed.iter().collect();
        let session = Session {
            json,
            interrupt,
            cpus,
            document: Document { machine, interrupted: false, ops: None, intermittent: None },
        };
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

    fn finish(mut self) -> Result<Outcome, Failure> {
        self.document.interrupted = self.interrupt.pressed();
        if self.json {
            output::print_json(&self.document)?;
        } else if self.document.interrupted {
            complain(format_args!("interrupted: the figures are those measured so far"));
        }
        Ok(self.outcome())
    }

    fn outcome(&self) -> Outcome {
        match &self.document.ops {
            Some(ops) if !ops.sums_exact => Outcome::WrongSum,
            _ if self.document.interrupted => Outcome::Interrupted,
            _ => Outcome::Complete,
        }
    }
}
