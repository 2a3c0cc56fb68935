//! `percid numa demo`: the workload that the published scan was measured with, without balancing
//! and with it.

mod area;
mod document;
mod place;
mod plan;
mod workload;

use percid_numa::Balancer;

use super::nodes;
use crate::cli::DemoArguments;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;

use document::{Document, RunReport};
use plan::Plan;

pub(crate) fn run(arguments: &DemoArguments, json: bool) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let plan = Plan::asked(arguments, &nodes::all())?;
    let mut runs = Vec::new();
    for balanced in [false, true] {
        if !interrupt.pressed() {
            runs.push(one(&plan, balanced, &interrupt)?);
        }
    }
    let interrupted = interrupt.pressed();
    let document = Document::new(&plan, runs, interrupted);
    if json { output::print_json(&document) } else { output::print_text(&document) }?;
    if interrupted {
        complain(format_args!("interrupted"));
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Complete)
}

/// One run in fresh memory.
fn one(plan: &Plan, balanced: bool, interrupt: &Interrupt) -> Result<RunReport, Failure> {
    let balancer = if balanced { Some(published(plan)?) } else { None };
    let course = workload::run(plan, balancer.as_ref(), interrupt)?;
    Ok(RunReport::new(plan, &course))
}

/// A balancer that other processes can watch.
fn published(plan: &Plan) -> Result<Balancer, Failure> {
    let balancer = Balancer::builder()
        .settings(plan.settings)
        .rules(plan.rules.rules())
        .build()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    match balancer.publish() {
        Ok(()) => complain(format_args!("`percid numa watch {}` shows it", std::process::id())),
        Err(error) => complain(format_args!("cannot publish the balancer's report: {error}")),
    }
    Ok(balancer)
}
