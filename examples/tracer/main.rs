//! Traces the threads of a work queue, and writes the trace for Perfetto.
//!
//! The structures of percid that it uses, and the reasons:
//!
//! * **`Ring`** for events. Tracing must not change what it looks at: a lock or a shared buffer
//!   would make threads wait for each other that do not in the real program. Every CPU appends to a
//!   ring of its own, and one consumer empties them all.
//! * **Its overflow policies.** *Drop newest* keeps what led up to an overload; the consumer has to
//!   be fast enough. *Overwrite oldest* keeps what happened last: with `--flight-recorder` no
//!   thread reads until the end, as a program would that writes its last moments when it fails.
//! * **Restoring the order** (`order.rs`): a ring is in order, but threads move between rings.
//! * **Reporting losses** (`nesting.rs`, `summary.rs`): in the trace, on standard error, and spans
//!   nest all the same.
//!
//! Exit status: 0 if the trace was written, also if events were lost; 1 if it could not be written
//! or the accounts do not balance; 2 for wrong arguments.

mod collector;
mod event;
mod nesting;
mod options;
mod order;
mod queue;
mod recorder;
mod summary;
mod trace_file;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use percid::Ring;

use collector::Collector;
use options::{Asked, Options};
use queue::Queue;
use recorder::{Clock, Recorder};
use summary::Summary;
use trace_file::TraceFile;

/// The thread that submits tasks. Workers have the numbers from 1.
const SUBMITTER: u16 = 0;

/// So long the collector may take to see that the threads have finished.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

fn main() -> ExitCode {
    let options = match options::read() {
        Ok(Asked::Run(options)) => options,
        Ok(Asked::Help) => {
            // The reader may have gone away (`--help | head -1`).
            let _ = io::stdout().write_all(options::HELP.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("tracer: {wrong}; see tracer --help");
            return ExitCode::from(2);
        }
    };
    // Early, while there is one thread: what percid registers with the kernel costs least now.
    percid::init();
    let summary = match trace(&options) {
        Ok(summary) => summary,
        Err(cause) => return fail(&format!("{}: {cause}", options.output.display())),
    };
    warn_of_loss(&options, &summary);
    match (summary.print(options.json), summary.fault()) {
        (_, Some(fault)) => fail(&fault),
        // A reader that went away (`tracer … | head -1`) is not worth a word.
        (Err(cause), None) if cause.kind() != io::ErrorKind::BrokenPipe => {
            fail(&format!("cannot print the summary: {cause}"))
        }
        _ => ExitCode::SUCCESS,
    }
}

fn fail(what: &str) -> ExitCode {
    eprintln!("tracer: {what}");
    ExitCode::FAILURE
}

fn warn_of_loss(options: &Options, Summary { lost, recorded, .. }: &Summary) {
    let advice = match options.poll_every {
        Some(_) => "; a larger --ring or a smaller --poll-ms would keep more",
        None => ", as a flight recorder does; a larger --ring would keep more",
    };
    if *lost != 0 {
        eprintln!("tracer: {lost} of {recorded} events were lost{advice}");
    }
}

fn trace(options: &Options) -> io::Result<Summary> {
    let names = (0..=options.threads).map(|thread| match thread {
        0 => "submitter".to_owned(),
        worker => format!("worker {worker}"),
    });
    let output = BufWriter::new(File::create(&options.output)?);
    let file = TraceFile::begin(output, &names.collect::<Vec<_>>())?;
    let ring = Ring::new(options.ring, options.overflow);
    let clock = Clock::start();
    let consumer = ring.consumer().ok_or_else(|| io::Error::other("the ring has a consumer"))?;
    let mut collector = Collector::new(consumer, clock, file);
    let recorded = run(options, &ring, clock, &mut collector)?;
    let (file, found) = collector.finish()?;
    let seconds = clock.now() as f64 / 1e9;
    let summary = Summary::new(options, &ring, recorded, found, seconds);
    file.finish(&summary)?;
    Ok(summary)
}

/// Runs the work queue to its end while the rings are emptied, and returns how many events were
/// recorded.
fn run(
    options: &Options,
    ring: &Ring,
    clock: Clock,
    collector: &mut Collector<'_, impl Write>,
) -> io::Result<u64> {
    let queue = Queue::new();
    thread::scope(|scope| {
        let start = |thread: u16| {
            let queue = &queue;
            thread::Builder::new().spawn_scoped(scope, move || {
                let recorder = Recorder::new(ring, clock, thread);
                match thread {
                    SUBMITTER => queue.submit_all(options.tasks, &recorder),
                    _ => queue.work(&recorder),
                }
                recorder.recorded()
            })
        };
        let threads: io::Result<Vec<_>> = (SUBMITTER..=options.threads as u16).map(start).collect();
        // The threads that were started would otherwise wait forever after a failed start.
        let threads = threads.inspect_err(|_| queue.close())?;
        let finished = || threads.iter().all(thread::ScopedJoinHandle::is_finished);
        let polled = match options.poll_every {
            Some(every) => poll_until(finished, every, collector),
            None => Ok(()),
        };
        let recorded = threads.into_iter().map(|it| it.join().expect("threads do not panic")).sum();
        polled.map(|()| recorded)
    })
}

/// Empties the rings periodically, until the threads have finished.
fn poll_until(
    finished: impl Fn() -> bool,
    every: Duration,
    collector: &mut Collector<'_, impl Write>,
) -> io::Result<()> {
    let mut last = Instant::now();
    while !finished() {
        if last.elapsed() >= every {
            last = Instant::now();
            collector.poll()?;
        }
        thread::sleep(every.min(LONGEST_SLEEP));
    }
    Ok(())
}
