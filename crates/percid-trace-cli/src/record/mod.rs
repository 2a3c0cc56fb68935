//! `percid trace record`: the schedule of a command, a process or the whole system.

mod flight;
mod signals;
mod summary;

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::progress::Progress as Meter;
use percid_command::trace::RecordArguments;
use percid_trace::Error;
use percid_trace::counters::{Counter, MAX_COUNTERS};
use percid_trace::record::{Ended, Extra, Options, Progress, Refusal, Sink};
use percid_trace::spool::{Spool, Spooled, Stored};

use self::flight::Flight;
use self::signals::Signals;
use self::summary::Summary;
use crate::file;
use crate::finish::finish;
use crate::partial;
use crate::recorder;

pub(crate) fn run(arguments: &RecordArguments, json: bool) -> Result<Exit, Failure> {
    file::check_parquet()?;
    file::check_writable(&arguments.output)?;
    let recording = RecordCommand {
        options: options(arguments, json)?,
        output: &arguments.output,
        interrupt: Interrupt::listen()?,
        signals: Signals::listen()?,
    };
    let recorded = match arguments.flight_recorder {
        Some(size) => recording.of_the_end(size),
        None => recording.of_all(arguments.max_file_size),
    };
    let summary = match recorded {
        Ok(summary) => summary,
        Err(Unrecorded::Refused(refusal)) => return recorder::refused(&refusal),
        Err(Unrecorded::Failed(failure)) => return Err(failure),
    };
    if let Some(why) = &summary.no_scan {
        complain(format_args!("{why}"));
    }
    if json {
        output::print_json(&summary)?
    } else {
        complain(format_args!("{summary}"));
        complain(format_args!("{}", summary.quality))
    }
    Ok(summary.exit(&recording.interrupt))
}

/// The reason why there is no recording.
enum Unrecorded {
    Refused(Refusal),
    Failed(Failure),
}

impl From<Refusal> for Unrecorded {
    fn from(refusal: Refusal) -> Unrecorded {
        Unrecorded::Refused(refusal)
    }
}

impl From<Failure> for Unrecorded {
    fn from(failure: Failure) -> Unrecorded {
        Unrecorded::Failed(failure)
    }
}

fn options(arguments: &RecordArguments, json: bool) -> Result<Options, Failure> {
    let target = recorder::target(arguments.pid, &arguments.command);
    let backend = arguments.backend.map(recorder::backend);
    let kernel_buffer_kib = arguments.kernel_buffer_kib as u32;
    // Without a document the command's own output has standard output for itself.
    let output_aside = json;
    let extra = Extra { numa: arguments.numa_scan, ..Extra::default() };
    let limit = arguments.seconds;
    let counters = counters(&arguments.counters)?;
    let only = arguments.only;
    Ok(Options {
        only,
        kernel_buffer_kib,
        counters,
        backend,
        limit,
        output_aside,
        extra,
        ..Options::new(target)
    })
}

/// Returns the requested counters. A counter given twice is an error, as the two have one name.
fn counters(names: &[String]) -> Result<Vec<Counter>, Failure> {
    let usage = |what: String| Failure::Usage(format!("--counters: {what}"));
    let mut counters: Vec<Counter> = Vec::new();
    for name in names {
        let counter = Counter::parse(name.trim()).map_err(usage)?;
        if counters.contains(&counter) {
            return Err(usage(format!("`{counter}` stands there twice")));
        }
        counters.push(counter);
    }
    match counters.len() {
        0..=MAX_COUNTERS => Ok(counters),
        more => Err(usage(format!("{more} counters, expected at most {MAX_COUNTERS}"))),
    }
}

struct RecordCommand<'a> {
    options: Options,
    output: &'a Path,
    interrupt: Interrupt,
    signals: Signals,
}

impl RecordCommand<'_> {
    /// Writes everything while it is recorded, and the file of it then.
    fn of_all(&self, max_file_size: Option<u64>) -> Result<Summary, Unrecorded> {
        let (partial, file) = partial::create(self.output)?;
        let cannot_write =
            |cause| Failure::new(format!("cannot write {}", partial.display()), cause);
        let mut spool = Spool::new(file, max_file_size.map(spool_size)).map_err(cannot_write)?;
        let idle = || {
            if self.signals.dump() {
                complain(format_args!(
                    "SIGUSR1: only with --flight-recorder is something written at it"
                ));
            }
        };
        let ended =
            self.record(&mut spool, idle).inspect_err(|_| drop(fs::remove_file(&partial)))?;
        let is_full = spool.is_full();
        spool.finish();
        let stored = self.store(&partial).map_err(|failure| left(&partial, &ended, failure))?;
        fs::remove_file(&partial)
            .map_err(|cause| Failure::new(format!("cannot remove {}", partial.display()), cause))?;
        let mut summary = Summary::new(stored, ended, self.output);
        summary.max_file_size = max_file_size.filter(|_| is_full);
        Ok(summary)
    }

    /// Keeps the last events, and writes them.
    fn of_the_end(&self, size: u64) -> Result<Summary, Unrecorded> {
        let mut flight = Flight::new(size, self.output, &self.signals)?;
        let ended = self.record(&mut flight, || {})?;
        let (last, dumps) = flight.finish();
        let stored = finish(&last, self.output, &self.interrupt)?;
        let mut summary = Summary::new(stored, ended, self.output);
        summary.dumps = dumps.iter().map(|path| path.display().to_string()).collect();
        Ok(summary)
    }

    /// Records until the target ends or Ctrl-C is pressed, and reports the progress.
    fn record(&self, sink: &mut dyn Sink, idle: impl Fn()) -> Result<Ended, Refusal> {
        let meter = Meter::new("record", Duration::MAX);
        recorder::record(
            &self.options,
            &self.interrupt,
            sink,
            || {},
            |progress| {
                idle();
                tell(&meter, progress);
            },
        )
    }

    fn store(&self, partial: &Path) -> Result<Stored, Failure> {
        let spooled = File::open(partial).map_err(Error::Io).and_then(Spooled::open);
        let spooled = spooled.map_err(|error| {
            let cause = io::Error::other(error.to_string());
            Failure::new(format!("cannot read {}", partial.display()), cause)
        })?;
        finish(&spooled, self.output, &self.interrupt)
    }
}

/// Returns the maximum size of the spool, so that the resulting file stays below a size. For the
/// schedules of a pipe's two ends, which compress best, the file was 1.22 times as large as the
/// spool, for others less.
fn spool_size(most: u64) -> u64 {
    most / 4 * 3 - DESCRIPTION
}

/// Size of the rest of the file, in bytes.
const DESCRIPTION: u64 = 8 << 10;

/// Reports that the recorded events still exist, and where.
fn left(partial: &Path, ended: &Ended, failure: Failure) -> Failure {
    if let Some(why) = &ended.broken {
        complain(format_args!("THE RECORDING ENDED EARLY: {why}"));
    }
    let partial = partial.display();
    complain(format_args!(
        "what was recorded is whole in {partial}: when there is room, `percid trace recover {partial}` \
         finishes it, with -o elsewhere"
    ));
    failure
}

fn tell(meter: &Meter, progress: Progress) {
    if progress.elapsed >= percid_command::progress::WORTH_TELLING {
        meter.after(progress.elapsed);
    }
}
