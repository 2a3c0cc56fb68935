//! `percid bench intermittent --published`: the published benchmark on all parts of this machine,
//! beside what was published and what the simulator forecasts.

mod again;
mod column;
mod forecast;
mod index;
mod page;
mod report;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use percid::Source;
use percid_command::exit::{Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::progress::Progress;
use percid_command::watch::watched;
use percid_report::Page;
use percid_rules::Generation;
use serde_json::Value;

use super::intermittent::Selection;
use crate::busy::Noise;
use crate::cli::IntermittentArguments;
use crate::judged::Circumstances;
use forecast::{Conditions, Forecaster, Question};
use index::PublishedIndex;
use page::page;
use report::{Measured, Part, Row};

pub(crate) use report::PublishedReport;

/// The parts of the published table, in the order of [`Selection::published`].
const PARTS: [&str; 4] = ["8-core/1-L3", "24-core/24-L3", "192-core/24-L3", "384-thread/24-L3"];

/// Computes the forecasts, then measures until all is done or Ctrl-C is pressed. `None` if it is
/// pressed before the forecasts are complete.
pub(super) fn measure(
    arguments: &IntermittentArguments,
    interrupt: &Interrupt,
) -> Result<Option<PublishedReport>, Failure> {
    let parts = parts();
    let (kernel_ids, kernel_ids_known) = kernel_ids(interrupt)?;
    let indices = PublishedIndex::all(kernel_ids, Source::Table.prepare().is_ok());
    let conditions = Conditions {
        bursts: arguments.bursts,
        warmup: arguments.warmup,
        prefault: arguments.prefault,
        seed: arguments.seed,
    };
    let forecaster = Forecaster::new(conditions)?;
    let cells = cells(&parts, &arguments.delay_ms, &indices);
    let Some(rows) = forecast(&forecaster, &cells, interrupt)? else { return Ok(None) };
    let measurements: Vec<Measurement> =
        cells.iter().map(|cell| cell.measurement(arguments)).collect();
    let [published_hot_ns, here_hot_ns] = forecaster.hot_ns();
    let mut report = PublishedReport {
        repetitions: arguments.repetitions(),
        bursts: arguments.bursts,
        warmup: arguments.warmup,
        prefaulted: arguments.prefault,
        seed: arguments.seed,
        kernel_ids: kernel_ids.map(|generation| generation.to_string()),
        kernel_ids_known,
        published_hot_ns,
        here_hot_ns,
        rows,
        parts,
        forecast: None,
        with_hot: None,
        circumstances: Circumstances::default(),
    };
    let measured = run_all(&measurements, &mut report, interrupt)?;
    for (row, repetitions) in report.rows.iter_mut().zip(&measured) {
        row.measured(repetitions);
    }
    report.sum_up();
    Ok(Some(report))
}

impl PublishedReport {
    /// Returns the report of a run on the described machine.
    pub(super) fn page(&self, machine: &str, interrupted: bool) -> Page {
        page(self, machine, interrupted)
    }
}

/// Returns the parts of this machine, with a mark on those to measure.
fn parts() -> Vec<Part> {
    let selections = Selection::published(&percid::machine::read().cpus);
    let part = |(selection, published): (Selection, &'static str)| Part {
        measured: selection.lacks.is_none() && selection.same_as.is_none(),
        selection,
        published,
    };
    selections.into_iter().zip(PARTS).map(part).collect()
}

/// Returns the generation of this kernel's IDs, by their behaviour or otherwise by its release, and
/// which of the two was used.
fn kernel_ids(interrupt: &Interrupt) -> Result<(Option<Generation>, &'static str), Failure> {
    const EXPECTED: Duration = Duration::from_secs(3);
    if Source::Kernel.prepare().is_err() {
        return Ok((None, "not available"));
    }
    let arguments = ["kernel-ids", "--json"].map(str::to_owned);
    let document = again::run(&arguments, EXPECTED, interrupt, || ())?.unwrap_or_default();
    let generation = |key: &str| {
        let name = document[key].as_str()?;
        Generation::ALL.into_iter().find(|generation| generation.to_string() == name)
    };
    Ok(match (generation("observed"), generation("hinted")) {
        (Some(observed), _) => (Some(observed), "by what they do"),
        (None, hinted) => (hinted, "by the kernel's release; what they do is undecided"),
    })
}

/// One row to measure.
#[derive(Clone, Copy, Debug)]
struct Cell<'a> {
    part: &'a Part,
    delay_ms: u64,
    index: &'a PublishedIndex,
}

fn cells<'a>(
    parts: &'a [Part],
    delays_ms: &'a [u64],
    indices: &'a [PublishedIndex],
) -> Vec<Cell<'a>> {
    let parts = parts.iter().filter(|part| part.measured);
    let settings = parts.flat_map(|part| delays_ms.iter().map(move |&delay_ms| (part, delay_ms)));
    let cells = settings.flat_map(|(part, delay_ms)| {
        indices.iter().map(move |index| Cell { part, delay_ms, index })
    });
    cells.collect()
}

/// Returns the rows with their forecasts; `None` if Ctrl-C is pressed.
fn forecast(
    forecaster: &Forecaster,
    cells: &[Cell<'_>],
    interrupt: &Interrupt,
) -> Result<Option<Vec<Row>>, Failure> {
    let question = |cell: &Cell<'_>| Question {
        cpus: cell.part.selection.cpus.clone(),
        delay_ms: cell.delay_ms,
        policy: cell.index.policy,
    };
    let questions: Vec<Question> = cells.iter().map(question).collect();
    let total = Some(Forecaster::runs(&questions));
    let forecasts = watched("bench intermittent, forecast", total, interrupt, |control| {
        forecaster.answer(&questions, control)
    })?;
    let row =
        |(cell, forecast): (&Cell<'_>, _)| Row::new(cell.part, cell.delay_ms, cell.index, forecast);
    Ok(forecasts.map(|forecasts| cells.iter().zip(forecasts).map(row).collect()))
}

/// One process to run.
#[derive(Debug)]
struct Measurement {
    /// All arguments except the seed.
    arguments: Vec<String>,
    seed: u64,
    expected: Duration,
}

impl Cell<'_> {
    fn measurement(&self, arguments: &IntermittentArguments) -> Measurement {
        /// Overhead of a process, in addition to the bursts.
        const START: Duration = Duration::from_millis(50);
        const WARMUP_BURST: Duration = Duration::from_nanos(350);
        let selection = &self.part.selection;
        let with_values = [
            ("--cpus", selection.list()),
            ("--index", self.index.name.to_owned()),
            ("--delay-ms", self.delay_ms.to_string()),
            ("--bursts", arguments.bursts.to_string()),
            ("--warmup", arguments.warmup.to_string()),
        ];
        let with_values =
            with_values.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        let words = ["bench", "intermittent", "--json"].map(str::to_owned);
        let prefault = arguments.prefault.then(|| "--prefault".to_owned());
        let pauses = Duration::from_millis(self.delay_ms).mul_f64(arguments.bursts as f64);
        let warmup = WARMUP_BURST.mul_f64(arguments.warmup as f64);
        Measurement {
            arguments: words.into_iter().chain(with_values).chain(prefault).collect(),
            seed: arguments.seed,
            expected: START + (pauses + warmup).mul_f64(selection.cpus.len() as f64),
        }
    }
}

impl Measurement {
    /// Runs the process, unless Ctrl-C is pressed.
    fn run(
        &self,
        repetition: u64,
        interrupt: &Interrupt,
        tell: impl Fn(),
    ) -> Result<Option<Value>, Failure> {
        let seed = self.seed.wrapping_add(repetition).to_string();
        let arguments = self.arguments.iter().cloned().chain(["--seed".to_owned(), seed]);
        let arguments: Vec<String> = arguments.collect();
        again::run(&arguments, self.expected, interrupt, tell)
    }
}

/// Returns the circumstances of one process's measurement.
fn circumstances(document: &Value) -> Circumstances {
    let number = |key: &str| u32::try_from(document["noise"][0][key].as_u64()?).ok();
    let noise =
        || Some(Noise { runnable_threads: number("runnable_threads")?, cpus: number("cpus")? });
    let partial = document["partial"].as_array().is_some_and(|parts| !parts.is_empty());
    Circumstances { noise: noise(), partial }
}

/// Returns the values of one process with its one index; `None` if its times are noise.
fn measured(row: &Value) -> Option<Measured> {
    Some(Measured {
        ns_per_burst: row["ns_per_burst"].as_f64()?,
        ns_hot: row["ns_hot"].as_f64()?,
        ns_later: row["ns_later"].as_f64()?,
        minor_faults_per_burst: row["minor_faults_per_burst"].as_f64()?,
        indices_per_cpu_max: row["indices_per_cpu_max"].as_u64()?,
    })
}

/// Runs every measurement in every repetition. Each repetition contains all of them, so that
/// changes over time affect all alike.
fn run_all(
    measurements: &[Measurement],
    report: &mut PublishedReport,
    interrupt: &Interrupt,
) -> Result<Vec<Vec<Measured>>, Failure> {
    let repetitions = report.repetitions;
    let once: Duration = measurements.iter().map(|one| one.expected).sum();
    let meter = Meter::new(once.mul_f64(repetitions as f64));
    let mut all = vec![Vec::new(); measurements.len()];
    for repetition in 0..repetitions {
        for (one, found) in measurements.iter().zip(&mut all) {
            if interrupt.pressed() {
                return Ok(all);
            }
            if let Some(document) = one.run(repetition, interrupt, || meter.tell())? {
                found.extend(measured(&document["rows"][0]));
                report.note(circumstances(&document));
            }
            meter.finished(one.expected);
        }
    }
    Ok(all)
}

/// Progress of the measurements. The remaining time is estimated from the durations of the finished
/// ones.
struct Meter {
    began: Instant,
    expected: Duration,
    progress: Progress,
    /// Expected duration of the finished ones.
    finished: RefCell<Duration>,
}

impl Meter {
    fn new(expected: Duration) -> Meter {
        complain(format_args!("measuring takes about {}", length(expected)));
        let progress = Progress::new("bench intermittent", expected);
        Meter { began: Instant::now(), expected, progress, finished: RefCell::default() }
    }

    fn finished(&self, expected: Duration) {
        *self.finished.borrow_mut() += expected;
    }

    fn tell(&self) {
        let (elapsed, finished) = (self.began.elapsed(), *self.finished.borrow());
        let pace = if finished.is_zero() { 1.0 } else { elapsed.div_duration_f64(finished) };
        let total = self.expected.mul_f64(pace.max(1.0));
        self.progress.at(elapsed.div_duration_f64(total), total.saturating_sub(elapsed));
    }
}

/// Formats a length of time in words.
fn length(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 120.0 => format!("{:.0} s", seconds.max(1.0)),
        seconds if seconds < 7200.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{:.1} hours", seconds / 3600.0),
    }
}
