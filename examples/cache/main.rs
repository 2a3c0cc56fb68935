//! A cache of pages that many threads read.
//!
//! The structures of percid that it uses, and the reasons:
//!
//! * **`Pool`** for the pages. The threads that miss take them out and the background thread gives
//!   them back, often on another CPU: the pool moves them across in batches of up to 30, so most
//!   pages come and go without a locked instruction.
//! * **`Counter`** for hits and misses, **`Histogram`** for the times of lookups: every lookup
//!   updates two words that the other CPUs do not touch.
//! * **`ActiveMask`** for evicted pages on their way back (`retired.rs`): each ID has a batch of
//!   them, and the background thread looks only at those that have something.
//! * **Sharded mutexes** for the map itself: a key's page is the same for all CPUs, so it is no
//!   per-CPU data.
//!
//! Every page is accounted for in the end: made = cached + pending + idle, and nothing is left when
//! all is shut down.
//!
//! Exit status: 0 if all is well, 1 if the accounts do not balance, a page was wrong, or the report
//! could not be written, 2 for wrong arguments.

mod accounts;
mod cache;
mod options;
mod page;
mod report;
mod retired;
mod shard;
mod zipf;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use percid::{Counter, Pool};

use accounts::Accounts;
use cache::Cache;
use options::{Asked, Options};
use page::Page;
use report::{Report, Times};
use zipf::{Random, Zipf};

/// Idle pages that every CPU keeps for itself.
const IDLE_PAGES: u32 = 64;

fn main() -> ExitCode {
    let options = match options::read() {
        Ok(Asked::Run(options)) => options,
        Ok(Asked::Help) => {
            // The reader may have gone away (`--help | head -1`).
            let _ = io::stdout().write_all(options::HELP.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("cache: {wrong}; see cache --help");
            return ExitCode::from(2);
        }
    };
    // Early, while there is one thread: what percid registers with the kernel costs least now.
    percid::init();
    let report = match run(&options) {
        Ok(report) => report,
        Err(cause) => return fail(&format!("cannot start a thread: {cause}")),
    };
    match (report.print(options.json), report.fault()) {
        (_, Some(fault)) => fail(&fault),
        // A reader that went away (`cache | head -1`) is not worth a word.
        (Err(cause), None) if cause.kind() != io::ErrorKind::BrokenPipe => {
            fail(&format!("cannot write the report: {cause}"))
        }
        _ => ExitCode::SUCCESS,
    }
}

fn fail(what: &str) -> ExitCode {
    eprintln!("cache: {what}");
    ExitCode::FAILURE
}

fn run(options: &Options) -> io::Result<Report> {
    let pages: Pool<Page> = Pool::new(Page::blank, IDLE_PAGES);
    let cache = Cache::new(&pages, options.capacity);
    let wrong = Counter::new();
    let start = Instant::now();
    load(options, &cache, &wrong)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(account(options, cache, &pages, wrong.sum(), seconds))
}

/// Runs the threads that look pages up, and the one that wipes evicted pages.
fn load(options: &Options, cache: &Cache<'_>, wrong: &Counter) -> io::Result<()> {
    let zipf = Zipf::new(options.keys, options.skew);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let wiper = thread::Builder::new().spawn_scoped(scope, || {
            while !stop.load(Relaxed) {
                cache.retired.drain();
                thread::park_timeout(options.drain_every);
            }
        })?;
        let zipf = &zipf;
        let worker = |thread| {
            let mut random = Random::new(options.seed, thread);
            let work = move || look_up(cache, options.lookups, zipf, &mut random, wrong);
            thread::Builder::new().spawn_scoped(scope, work)
        };
        let workers: io::Result<Vec<_>> = (0..options.threads).map(worker).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, ()>| worker.join();
        let ended: io::Result<Vec<_>> = workers.map(|all| all.into_iter().map(join).collect());
        // First, before anything else can fail: the scope waits for the wiper.
        stop.store(true, Relaxed);
        wiper.thread().unpark();
        ended?.into_iter().for_each(|worker| worker.expect("workers do not panic"));
        Ok(())
    })
}

/// Runs the lookups of one thread.
fn look_up(cache: &Cache<'_>, times: u64, zipf: &Zipf, random: &mut Random, wrong: &Counter) {
    for _ in 0..times {
        let key = zipf.key(random);
        if !cache.read(key, |page| page.is_of(key)) {
            wrong.add(1);
        }
    }
}

fn account(
    options: &Options,
    cache: Cache<'_>,
    pages: &Pool<Page>,
    wrong_pages: i64,
    seconds: f64,
) -> Report {
    let source = percid::init().source;
    let (hits, misses, unwiped_pages) = (cache.hits.sum(), cache.misses.sum(), cache.unwiped.sum());
    let hit_nanoseconds = Times::of(&cache.hit_times);
    let miss_nanoseconds = Times::of(&cache.miss_times);
    let pages = Accounts::close(cache, pages);
    let ids = source.id_count();
    let beside = (pages.idle + pages.pending) * page::BYTES;
    Report {
        threads: options.threads,
        source: source.to_string(),
        seconds,
        lookups: hits + misses,
        hits,
        misses,
        hit_rate: hits as f64 / (hits + misses) as f64,
        hit_nanoseconds,
        miss_nanoseconds,
        ids,
        bytes_per_id: beside as u64 / u64::from(ids.max(1)),
        pages,
        wrong_pages,
        unwiped_pages,
    }
}
