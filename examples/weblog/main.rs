//! Aggregates the log of a web server, in the Combined Log Format, with any number of threads.
//!
//! The structures of percid that it uses, and the reasons:
//!
//! * **`Counter`** for requests by status class and method, and for bytes sent. Every line updates
//!   three of them, so with shared atomics the threads would fight for three cache lines.
//! * **`Histogram`** for the sizes of responses: quantiles of any number of values in bounded
//!   memory, at the price of one more counter.
//! * **`Local`** for hits by path: a hash map is no counter, it needs exclusive access. Each CPU
//!   has a map of its own, and the report adds them up.
//! * **`Pool`** for the buffers of chunks: a worker gets the buffer that was used last on its CPU
//!   and is still in that cache.
//! * **A mutex** for rare accesses: it is taken once per chunk (`chunks.rs`, `places.rs`). Per-CPU
//!   data is useful for accesses by every line, which is not the case here.
//!
//! The result depends neither on the number of threads nor on percid's source of IDs, which the
//! tests check.
//!
//! Exit status: 0 if the report was printed (malformed lines are part of it), 1 if the log could
//! not be read or the report not be written, 2 for wrong arguments.

mod aggregate;
mod chunks;
mod options;
mod places;
mod printable;
mod record;
mod report;

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use percid::Pool;

use aggregate::Aggregate;
use chunks::{Chunk, Chunks};
use options::{Asked, Options};
use places::{Malformed, Places};

/// Idle buffers that every CPU keeps. One is enough for a worker that is never preempted.
const IDLE_BUFFERS: u32 = 4;

static BUFFERS: Pool<Vec<u8>> = Pool::new(Vec::new, IDLE_BUFFERS);

static REQUESTS: Aggregate = Aggregate::new();

fn main() -> ExitCode {
    let options = match options::read() {
        Ok(Asked::Run(options)) => options,
        Ok(Asked::Help) => {
            // The reader may have gone away (`--help | head -1`).
            let _ = io::stdout().write_all(options::HELP.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("weblog: {wrong}; see weblog --help");
            return ExitCode::from(2);
        }
    };
    // Early, while there is one thread: what percid registers with the kernel costs least now.
    percid::init();
    let Err(failure) = run(&options) else { return ExitCode::SUCCESS };
    match failure {
        // The reader has closed the output (`weblog … | head -1`): no message is needed.
        Failure::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Failure::Output(cause) => eprintln!("weblog: cannot write the report: {cause}"),
        Failure::Thread(cause) => eprintln!("weblog: cannot start a thread: {cause}"),
        Failure::Input { after: 0, cause } => eprintln!("{}: {cause}", options.name()),
        Failure::Input { after, cause } => {
            eprintln!("{}:{after}: cannot read on after this line: {cause}", options.name());
        }
    }
    ExitCode::FAILURE
}

/// Why there is no report.
enum Failure {
    /// The log was read up to this line.
    Input { after: u64, cause: io::Error },
    /// A thread could not be started.
    Thread(io::Error),
    /// The report could not be written.
    Output(io::Error),
}

fn run(options: &Options) -> Result<(), Failure> {
    let places = Places::new();
    let start = Instant::now();
    (0..options.repeat).try_for_each(|_| read_log(options, &places))?;
    let seconds = start.elapsed().as_secs_f64();
    let report = report::collect(options, &REQUESTS, &places, seconds);
    report.print(options.json).map_err(Failure::Output)
}

/// Reads the log once, with all threads.
fn read_log(options: &Options, places: &Places) -> Result<(), Failure> {
    let input = open(options).map_err(|cause| Failure::Input { after: 0, cause })?;
    let chunks = Mutex::new(Chunks::new(input, options.chunk));
    let work = || work(&chunks, places);
    let results = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, work);
        let workers: io::Result<Vec<_>> = (0..options.threads).map(start).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join().expect("no panic");
        Ok(workers?.into_iter().map(join).collect::<Vec<io::Result<()>>>())
    });
    let failed = results.map_err(Failure::Thread)?.into_iter().find_map(Result::err);
    failed.map_or(Ok(()), |cause| Err(Failure::Input { after: places.lines(), cause }))
}

fn open(options: &Options) -> io::Result<Box<dyn Read + Send>> {
    Ok(match &options.file {
        Some(file) => Box::new(File::open(file)?),
        None => Box::new(io::stdin()),
    })
}

/// Runs a thread: takes a chunk, counts its lines, until there are no more.
fn work(chunks: &Mutex<Chunks<impl Read>>, places: &Places) -> io::Result<()> {
    loop {
        let mut buffer = BUFFERS.get();
        let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).next(&mut buffer)?;
        let Some(chunk) = next else { return Ok(()) };
        let (lines, malformed) = count(&chunk, &buffer);
        places.note(chunk.number, lines, malformed);
    }
}

/// Counts the requests of a chunk, and returns its number of lines and the first malformed ones.
fn count(chunk: &Chunk, bytes: &[u8]) -> (u64, Vec<Malformed>) {
    let mut malformed = Vec::new();
    let mut lines = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let parsed = if chunk.cut { Err(record::SHORTER_LINE) } else { record::parse(line) };
        match parsed {
            Ok(record) => REQUESTS.add(&record),
            Err(expected) => {
                REQUESTS.add_malformed();
                if malformed.len() < places::SHOWN {
                    malformed.push(Malformed::new(lines, expected, line));
                }
            }
        }
        lines += 1;
    }
    (lines, malformed)
}
