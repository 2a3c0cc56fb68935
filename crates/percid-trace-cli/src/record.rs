//! `percid trace record`: the schedule of a command, a process or the whole system.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::progress::Progress as Meter;
use percid_command::trace::{RecordArguments, WayChoice};
use percid_trace::parquet;
use percid_trace::record::{self, Extra, Options, Progress, Recorded, Refusal, Target, Way};
use percid_trace::trustworthiness::Trustworthiness;
use serde::Serialize;

use crate::file;

pub(crate) fn run(arguments: &RecordArguments, json: bool) -> Result<Exit, Failure> {
    file::check_parquet()?;
    file::check_writable(&arguments.output)?;
    let interrupt = Interrupt::listen()?;
    let recorded = match watched(&options(arguments, json), &interrupt) {
        Ok(recorded) => recorded,
        Err(refusal @ (Refusal::NoCommand(_) | Refusal::Unstartable(..))) => {
            complain(format_args!("{refusal}"));
            return Ok(Exit::Status(refusal.exit_code()));
        }
        Err(refusal) => return Err(refused(&refusal)),
    };
    file::replace(&arguments.output, |to| parquet::write(&recorded.trace, to))?;
    let summary = Summary::of(&recorded, arguments);
    if let Some(why) = &recorded.no_scan {
        complain(format_args!("{why}"));
    }
    if json {
        output::print_json(&summary)?
    } else {
        complain(format_args!("{summary}"));
        complain(format_args!("{}", summary.trustworthiness))
    }
    Ok(exit(&recorded, &interrupt))
}

fn options(arguments: &RecordArguments, json: bool) -> Options {
    let target = match (arguments.pid, &arguments.command[..]) {
        (Some(pid), _) => Target::Process(pid),
        (None, []) => Target::System,
        (None, command) => Target::Command(command.to_vec()),
    };
    let way = arguments.way.map(|way| match way {
        WayChoice::Tracefs => Way::Tracefs,
        WayChoice::Perf => Way::PerfEvents,
    });
    let buffer_kb = arguments.buffer_kb as u32;
    // Without a document the command's own output has standard output for itself.
    let output_aside = json;
    let extra = Extra { numa: arguments.numa_scan, ..Extra::default() };
    let limit = arguments.seconds;
    Options { buffer_kb, way, limit, output_aside, extra, ..Options::new(target) }
}

fn refused(refusal: &Refusal) -> Failure {
    Failure::new("cannot record", io::Error::other(refusal.to_string()))
}

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Records until the target ends or Ctrl-C is pressed, and tells how far it is.
fn watched(options: &Options, interrupt: &Interrupt) -> Result<Recorded, Refusal> {
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let meter = Meter::new("record", Duration::MAX);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                interrupt.sleep(LOOK);
                if interrupt.pressed() {
                    stop.store(true, Relaxed);
                    thread::sleep(LOOK);
                }
            }
        });
        let recorded = record::record(options, &stop, |progress| tell(&meter, progress));
        over.store(true, Relaxed);
        recorded
    })
}

fn tell(meter: &Meter, progress: Progress) {
    if progress.elapsed >= percid_command::progress::WORTH_TELLING {
        meter.after(progress.elapsed);
    }
}

/// The command's own status comes first, but for Ctrl-C without a command.
fn exit(recorded: &Recorded, interrupt: &Interrupt) -> Exit {
    match recorded.status {
        Some(status) if !status.success() => Exit::Status(status_code(status)),
        _ if recorded.broken.is_some() => Exit::Partial,
        _ if interrupt.pressed() => Exit::Interrupted,
        _ => Exit::Complete,
    }
}

/// As shells have it: 128 and the number of the signal that ended it.
fn status_code(status: ExitStatus) -> u8 {
    let by_signal = signal(status).map(|signal| 128 + signal);
    status.code().or(by_signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// What was recorded.
#[derive(Debug, Serialize)]
struct Summary {
    /// What may be concluded from it.
    trustworthiness: Trustworthiness,
    file: String,
    events: usize,
    /// Of NUMA balancing.
    numa_events: usize,
    lost: u64,
    duration_ns: u64,
    way: String,
    /// What this kernel does not have.
    without: Vec<&'static str>,
    /// How the command ended.
    status: Option<u8>,
    /// Why the recording ended early.
    broken: Option<String>,
    /// Why the kernel scans nothing, if NUMA balancing was asked for.
    no_scan: Option<String>,
}

impl Summary {
    fn of(recorded: &Recorded, arguments: &RecordArguments) -> Summary {
        let events = &recorded.trace.events;
        let ends = events.first().zip(events.last());
        Summary {
            trustworthiness: Trustworthiness::of(&recorded.trace),
            file: arguments.output.display().to_string(),
            events: events.len(),
            numa_events: recorded.trace.numa.len(),
            lost: recorded.trace.origin.lost,
            duration_ns: ends.map_or(0, |(first, last)| last.time - first.time),
            way: recorded.way.to_string(),
            without: recorded.without.clone(),
            status: recorded.status.map(status_code),
            broken: recorded.broken.clone(),
            no_scan: recorded.no_scan.clone(),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, events, way) = (&self.file, self.events, &self.way);
        let seconds = self.duration_ns as f64 / 1e9;
        write!(f, "{file}: {events} events in {seconds:.3} s by {way}, ")?;
        if self.numa_events > 0 {
            write!(f, "{} more of NUMA balancing, ", self.numa_events)?;
        }
        match self.lost {
            0 => write!(f, "none lost")?,
            lost => write!(f, "{lost} LOST because buffers were full: try a larger --buffer-kb")?,
        }
        if !self.without.is_empty() {
            write!(f, "; without {}", self.without.join(", "))?;
        }
        if let Some(why) = &self.broken {
            write!(f, "; THE RECORDING ENDED EARLY: {why}")?;
        }
        Ok(())
    }
}
