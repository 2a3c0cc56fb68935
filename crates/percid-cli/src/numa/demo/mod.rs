//! `percid numa demo`: the workload that the published scan was measured with, without and with
//! balancing, in pairs of runs.

mod area;
mod balancers;
mod comparison;
mod document;
mod estimate;
mod heading;
mod kernel;
mod place;
mod plan;
mod student;
mod workload;

use percid_numa::Balancer;

use super::nodes::{self, KernelBalancing};
use crate::cli::DemoArguments;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::Report;

use document::{Document, RunReport};
use heading::Heading;
use plan::Plan;
use workload::Stage;

pub(crate) fn run(arguments: &DemoArguments, json: bool) -> Result<Exit, Failure> {
    let report = Report::to(arguments.html.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let plan = Plan::asked(arguments, &nodes::all())?;
    let kernel = KernelBalancing::read();
    if !json {
        output::print_text(&Heading { plan: &plan, kernel })?;
    }
    let mut pairs = Vec::new();
    for number in 0..plan.pairs {
        let Some(pair) = pair(&plan, number, &interrupt)? else { break };
        pairs.push(pair);
    }
    let interrupted = interrupt.pressed() && pairs.len() < plan.pairs;
    let partial = !interrupted && pairs.len() < plan.pairs;
    let finished = pairs.len();
    let document = Document::new(&plan, kernel, pairs, interrupted, partial);
    let printed = if json { output::print_json(&document) } else { output::print_text(&document) };
    if interrupted {
        complain(format_args!("interrupted after {finished} of {} pairs", plan.pairs));
    }
    let exit = if interrupted { Exit::Interrupted } else { Exit::Complete };
    let what = Heading { plan: &plan, kernel }.to_string();
    report.write(printed, || document.page(&what), exit)
}

/// Returns whether the first and the second run of a pair are balanced. The order alternates
/// between pairs, so that drifts of the machine's speed favour neither kind.
fn order(pair: usize) -> [bool; 2] {
    if pair.is_multiple_of(2) { [false, true] } else { [true, false] }
}

/// Executes both runs of a pair; `None` if Ctrl-C, or the end of the time, came before they were
/// over.
fn pair(
    plan: &Plan,
    number: usize,
    interrupt: &Interrupt,
) -> Result<Option<[RunReport; 2]>, Failure> {
    let [first, second] = order(number);
    let Some(first) = one(plan, number, 0, first, interrupt)? else { return Ok(None) };
    let second = one(plan, number, 1, second, interrupt)?;
    Ok(second.map(|second| [first, second]))
}

/// Executes one run in fresh memory, the first or second (0, 1) of its pair; `None` if Ctrl-C came
/// before it was over.
fn one(
    plan: &Plan,
    pair: usize,
    place: usize,
    balanced: bool,
    interrupt: &Interrupt,
) -> Result<Option<RunReport>, Failure> {
    if interrupt.pressed() {
        return Ok(None);
    }
    let balancer = if balanced { Some(published(plan, pair)?) } else { None };
    let kind = if balanced { "with" } else { "without" };
    let label = format!("pair {} of {}, {kind} balancing", pair + 1, plan.pairs);
    let stage = Stage { label, over: 2 * pair + place, all: 2 * plan.pairs };
    let course = workload::run(plan, balancer.as_ref(), &stage, interrupt)?;
    Ok((!course.cut_short).then(|| RunReport::new(plan, pair + 1, &course)))
}

/// Creates a balancer that other processes can watch. For the first pair it prints how.
fn published(plan: &Plan, pair: usize) -> Result<Balancer, Failure> {
    let balancer = Balancer::builder()
        .settings(plan.settings)
        .rules(plan.rules.rules())
        .build()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    match balancer.publish() {
        Ok(()) if pair > 0 => {}
        Ok(()) => complain(format_args!("`percid numa watch {}` shows it", std::process::id())),
        Err(error) => complain(format_args!("cannot publish the balancer's report: {error}")),
    }
    Ok(balancer)
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn each_kind_of_run_comes_first_as_often_and_in_turns() {
        let balanced_first = (0..6).filter(|pair| order(*pair)[0]).count();
        assert_eq!(balanced_first, 3);
        for pair in 0..6 {
            assert_ne!(order(pair)[0], order(pair)[1]);
            assert_ne!(order(pair), order(pair + 1));
        }
    }
}
