//! `percid bench intermittent`: the cost of coming back to per-CPU memory after a pause.
//!
//! Threads take turns by passing a baton from each to the next. The baton *is* the memory being
//! measured, so that only the thread whose turn it is can reach it, and passing it on wakes no
//! thread but the next.

mod baton;
mod index;
mod meter;
mod plan;
mod report;
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
use baton::Baton;
use index::Index;
use meter::Meter;
pub(crate) use plan::Plan;
pub(crate) use report::IntermittentReport;
pub(crate) use report::Row;
use tally::Tally;
use worker::{Series, Worker};

/// Measures every delay of the plan, or those before Ctrl-C is pressed.
pub(crate) fn measure(plan: Plan, interrupt: &Interrupt) -> Result<IntermittentReport, Failure> {
    let indices: Vec<Index> = Index::ALL.into_iter().filter(|&index| is_available(index)).collect();
    let meter = Arc::new(Meter::new(plan.expected()));
    let mut rows = Vec::new();
    for &delay_ms in &plan.delays_ms {
        if !interrupt.pressed() {
            rows.extend(measure_delay(&plan, delay_ms, &indices, &meter, interrupt)?);
        }
    }
    drop(meter);
    Ok(IntermittentReport::new(&plan, rows))
}

fn is_available(index: Index) -> bool {
    let missing = index.source().and_then(|source| source.prepare().err());
    if let Some(why) = missing {
        complain(format_args!("no rows for index {index}: {why}"));
    }
    missing.is_none()
}

/// One delay with new threads and new memory, from the meeting to the last burst.
fn measure_delay(
    plan: &Plan,
    delay_ms: u64,
    indices: &[Index],
    meter: &Arc<Meter>,
    interrupt: &Interrupt,
) -> Result<Vec<Row>, Failure> {
    let baton = Baton::new(indices.len(), areas_needed(), plan.prefault)
        .map_err(|cause| Failure::new("cannot map the areas", cause))?;
    let series =
        Arc::new(Series::new(plan, Duration::from_millis(delay_ms), indices, interrupt, meter));
    let tallies = run_workers(plan, &series, baton)?;
    Ok(indices
        .iter()
        .enumerate()
        .filter_map(|(at, &index)| {
            let per_thread: Vec<&Tally> = tallies.iter().map(|tallies| &tallies[at]).collect();
            Row::new(index, delay_ms, &per_thread)
        })
        .collect())
}

/// Starts the threads in a ring, gives the baton to the first, and collects what each measured.
fn run_workers(
    plan: &Plan,
    series: &Arc<Series>,
    baton: Baton,
) -> Result<Vec<Vec<Tally>>, Failure> {
    let mut order: Vec<usize> = (0..plan.cpus.len()).collect();
    Shuffler::new(plan.seed).shuffle(&mut order);
    let (give_first, mut receive) = mpsc::channel();
    let mut threads = Vec::new();
    for (position, &number) in order.iter().enumerate() {
        let last = position + 1 == order.len();
        let (give, receive_next) =
            if last { (give_first.clone(), None) } else { channel_to_next() };
        let worker = Worker::new(number, plan.cpus[number], Arc::clone(series), receive, give);
        let thread =
            thread::Builder::new().name("percid-turns".to_owned()).spawn(move || worker.run());
        threads.push(thread.map_err(|cause| Failure::new("cannot start a thread", cause))?);
        let Some(next) = receive_next else { break };
        receive = next;
    }
    // The first receives it only once all have met.
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

/// One area for every index that can occur: CPU numbers and IDs are below the highest possible
/// CPU's number plus one.
fn areas_needed() -> usize {
    let highest = percid::machine::read().possible.iter().max().unwrap_or(0);
    highest as usize + 1
}
