//! `percid bench intermittent`: the cost of returning to per-CPU memory after a pause.
//!
//! Threads take turns by passing a baton from each to the next. The baton *is* the memory being
//! measured, so that only the thread that has the turn can access it, and passing it on wakes only
//! the next thread.

mod baton;
mod competitors;
mod index;
mod meter;
mod plan;
mod report;
mod selection;
mod tally;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use percid_command::exit::{Failure, complain};
use percid_command::interrupt::Interrupt;

use super::shuffle::Shuffler;
use crate::judged::Judged;
use baton::Baton;
use competitors::Competitors;
pub(crate) use competitors::compete;
use index::Index;
use meter::Meter;
pub(crate) use plan::Plan;
pub(crate) use report::IntermittentReport;
pub(crate) use report::Row;
use report::Setting;
pub(crate) use selection::Selection;
use tally::Tally;
use worker::{Series, Worker};

/// Measures all repetitions of the plan, or those before Ctrl-C is pressed.
pub(crate) fn measure(
    plan: Plan,
    interrupt: &Interrupt,
) -> Result<Judged<IntermittentReport>, Failure> {
    let mut plan = plan;
    plan.indices.retain(|&index| is_available(index));
    let mut collected: Vec<Collected> = settings(&plan).map(Collected::new).collect();
    let rows = collected.len() * plan.indices.len() * plan.selection.cpus.len();
    let meter = Arc::new(Meter::new(plan.expected(), rows, interrupt));
    for repetition in 0..plan.repetitions {
        for one in &mut collected {
            if !meter.is_over() {
                let seed = plan.seed.wrapping_add(repetition);
                let tallies = measure_once(&plan, &one.setting, seed, &meter)?;
                one.tallies.extend(tallies);
            }
        }
    }
    let circumstances = meter.circumstances();
    drop(meter);
    let rows = collected.iter().flat_map(|one| one.rows(&plan.indices)).collect();
    Ok(Judged::new(IntermittentReport::new(&plan, rows), circumstances))
}

fn settings(plan: &Plan) -> impl Iterator<Item = Setting> {
    let threads = plan.selection.cpus.len();
    let delays = plan.delays_ms.iter();
    delays.flat_map(move |&delay_ms| {
        plan.competing().into_iter().map(move |(overcommit, other_memory_kib)| Setting {
            delay_ms,
            overcommit,
            other_memory_kib,
            threads,
        })
    })
}

/// The measurements of one setting so far.
struct Collected {
    setting: Setting,
    /// For each thread of each repetition, one tally for each index.
    tallies: Vec<Vec<Tally>>,
}

impl Collected {
    fn new(setting: Setting) -> Self {
        Collected { setting, tallies: Vec::new() }
    }

    fn rows(&self, indices: &[Index]) -> impl Iterator<Item = Row> {
        indices.iter().enumerate().filter_map(|(at, &index)| {
            let of_index: Vec<&Tally> = self.tallies.iter().map(|tallies| &tallies[at]).collect();
            Row::new(index, &self.setting, &of_index)
        })
    }
}

fn is_available(index: Index) -> bool {
    let missing = index.source().and_then(|source| source.prepare().err());
    if let Some(why) = missing {
        complain(format_args!("no rows for index {index}: {why}"));
    }
    missing.is_none()
}

/// Measures one setting once, from the meeting to the last burst, with new threads, new memory and
/// new competitors.
fn measure_once(
    plan: &Plan,
    setting: &Setting,
    seed: u64,
    meter: &Arc<Meter>,
) -> Result<Vec<Vec<Tally>>, Failure> {
    let baton = Baton::new(plan.indices.len(), areas_needed(), plan.prefault)
        .map_err(|cause| Failure::new("cannot map the areas", cause))?;
    let competitors = Competitors::start(
        &plan.selection.cpus,
        setting.overcommit,
        setting.other_memory_kib.unwrap_or(0),
    )?;
    meter.compete((setting.overcommit as usize * plan.selection.cpus.len()) as u32);
    let delay = Duration::from_millis(setting.delay_ms);
    let series = Arc::new(Series::new(plan, delay, meter));
    let tallies = run_workers(&plan.selection.cpus, seed, &series, baton);
    drop(competitors);
    tallies
}

/// Starts the threads in a ring, gives the baton to the first, and collects the tallies of each.
fn run_workers(
    cpus: &[u32],
    seed: u64,
    series: &Arc<Series>,
    baton: Baton,
) -> Result<Vec<Vec<Tally>>, Failure> {
    let mut order: Vec<usize> = (0..cpus.len()).collect();
    Shuffler::new(seed).shuffle(&mut order);
    let (give_first, mut receive) = mpsc::channel();
    let mut threads = Vec::new();
    for (position, &number) in order.iter().enumerate() {
        let last = position + 1 == order.len();
        let (give, receive_next) =
            if last { (give_first.clone(), None) } else { channel_to_next() };
        let worker = Worker::new(number, cpus[number], Arc::clone(series), receive, give);
        let thread =
            thread::Builder::new().name("percid-turns".to_owned()).spawn(move || worker.run());
        threads.push(thread.map_err(|cause| Failure::new("cannot start a thread", cause))?);
        let Some(next) = receive_next else { break };
        receive = next;
    }
    // The first thread receives it only after all have met.
    let _ = give_first.send(baton);
    drop(give_first);
    let tallies = threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    tallies
        .collect::<io::Result<_>>()
        .map_err(|cause| Failure::new("cannot pin a thread to an allowed CPU", cause))
}

fn channel_to_next() -> (mpsc::Sender<Baton>, Option<mpsc::Receiver<Baton>>) {
    let (give, receive) = mpsc::channel();
    (give, Some(receive))
}

/// Returns the number of areas: one for every index that can occur. CPU numbers and IDs are below
/// the highest possible CPU's number plus one.
fn areas_needed() -> usize {
    let highest = percid::machine::read().possible.iter().max().unwrap_or(0);
    highest as usize + 1
}
