//! Chaos: many concurrent events around a structure that must lose nothing.
//!
//! Unpinned workers operate on it; others start and end. A signaller interrupts the workers with a
//! handler that operates on it too; affinities change at random; a remote party visits it all the
//! time (takes, drains, consumes). A thief steals IDs from CPUs, uses them itself if the structure
//! permits it, and gives them to other CPUs.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use percid::testing::Stolen;
use percid::{Source, testing};

use crate::length::Length;
use crate::options::Options;
use crate::pinning;
use crate::random::{Random, seed};
use crate::verdict::Verdict;
use crate::watch::{self, Watch, Writes};

/// A structure under stress.
pub(crate) trait Subject: Sync {
    /// Performs a batch of operations by a worker.
    fn work(&self, random: &mut Random);

    /// Performs the work of the signal handler.
    fn handle(&self);

    /// Performs the work of the remote party.
    fn visit(&self);

    /// Performs the work of the thief with an ID that it has stolen.
    fn rob(&self, _stolen: &Stolen) {}

    /// Checks that everything is accounted for, after all threads have ended. Returns the figures.
    fn account(&self) -> Verdict;
}

/// The subject of the process, where the signal handler finds it.
static SUBJECT: OnceLock<&'static dyn Subject> = OnceLock::new();
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: i32) {
    if let Some(subject) = SUBJECT.get() {
        subject.handle();
        HANDLED.fetch_add(1, Relaxed);
    }
}

/// Ignores a trap. The processor reported a write when its watchpoint had just been removed, with
/// the thread, from the CPU. The kernel takes that for a debugger's trap (observed once, on a busy
/// virtual machine). The write is not counted.
extern "C" fn late_trap(_: i32) {}

/// Ratio of thefts to events of another kind: visits, signals and moves; and to threads that start
/// and end, which take longest.
const THEFTS_PER_EVENT: u64 = 50;
const THEFTS_PER_THREAD: u64 = 200;

/// The shared data of the threads of a run.
struct Run {
    subject: &'static dyn Subject,
    source: Source,
    seed: u64,
    evict: bool,
    skip_fence: bool,
    unregister: bool,
    clobber: bool,
    /// The writes of each worker to its rseq area, if they are counted.
    written: Option<Mutex<Vec<Result<Writes, String>>>>,
    stop: AtomicBool,
    cpus: Vec<u32>,
    /// The workers' thread numbers, for signals and affinities.
    workers: Vec<AtomicI32>,
    visits: AtomicU64,
    steals: AtomicU64,
    moves: AtomicU64,
    visitors: AtomicU64,
}

/// Puts a subject under chaos for the time in the options.
pub(crate) fn run(subject: Box<dyn Subject>, source: Source, options: &Options) -> Verdict {
    let run = Run {
        subject: *SUBJECT.get_or_init(|| Box::leak(subject)),
        source,
        seed: seed(),
        evict: options.evict,
        skip_fence: options.skip_fence,
        unregister: options.unregister,
        clobber: options.clobber,
        written: options.watch.then(Mutex::default),
        stop: AtomicBool::new(false),
        cpus: pinning::allowed(),
        workers: (0..options.threads).map(|_| AtomicI32::new(0)).collect(),
        visits: AtomicU64::new(0),
        steals: AtomicU64::new(0),
        moves: AtomicU64::new(0),
        visitors: AtomicU64::new(0),
    };
    pinning::handle(libc::SIGUSR1, handler);
    if options.watch {
        pinning::handle(libc::SIGTRAP, late_trap);
    }
    testing::skip_fence(options.skip_fence);
    let start = Instant::now();
    run.all_threads(Length::begin(options, 1.0));
    testing::skip_fence(false);
    run.verdict(start.elapsed().as_secs_f64())
}

impl Run {
    fn all_threads(&self, length: Length) {
        std::thread::scope(|scope| {
            for (number, worker) in self.workers.iter().enumerate() {
                scope.spawn(move || self.work(number, worker));
            }
            scope.spawn(|| self.receive_visitors());
            scope.spawn(|| self.change_affinities());
            scope.spawn(|| self.send_signals());
            scope.spawn(|| self.visit());
            scope.spawn(|| self.steal());
            length.wait(|| self.happened());
            self.stop.store(true, Relaxed);
        });
    }

    /// Returns the number of thefts that all other parties have kept up with: 0 if one of them has
    /// done nothing yet.
    fn happened(&self) -> u64 {
        let thefts = match self.source {
            Source::Atomic => u64::MAX,
            _ => self.steals.load(Relaxed),
        };
        let others = [
            (&HANDLED, THEFTS_PER_EVENT),
            (&self.visits, THEFTS_PER_EVENT),
            (&self.moves, THEFTS_PER_EVENT),
            (&self.visitors, THEFTS_PER_THREAD),
        ];
        let others = others.map(|(count, thefts)| count.load(Relaxed) * thefts);
        others.into_iter().fold(thefts, u64::min)
    }

    fn going(&self) -> bool {
        !self.stop.load(Relaxed)
    }

    fn work(&self, worker: usize, number: &AtomicI32) {
        let mut random = Random::new(self.seed, 10 + worker as u64);
        number.store(pinning::thread_id(), Relaxed);
        if self.unregister {
            testing::unregister_this_thread();
        }
        let watch = self.written.as_ref().map(|_| Watch::start(worker));
        if self.clobber {
            watch::clobber();
        }
        while self.going() {
            self.subject.work(&mut random);
        }
        if let (Some(written), Some(watch)) = (&self.written, watch) {
            let writes = watch.and_then(|watch| watch.writes());
            written.lock().expect("no panic").push(writes);
        }
        // No thread may signal or move a thread that has ended: its number may be another thread's.
        number.store(0, Relaxed);
        std::thread::sleep(Duration::from_millis(20));
    }

    /// Threads that come, work and go.
    fn receive_visitors(&self) {
        let mut random = Random::new(self.seed, 3);
        while self.going() {
            std::thread::scope(|scope| {
                scope.spawn(|| self.subject.work(&mut random));
            });
            self.visitors.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    fn change_affinities(&self) {
        let mut random = Random::new(self.seed, 1);
        while self.going() {
            let worker = self.workers[random.below(self.workers.len())].load(Relaxed);
            let cpu = self.cpus[random.below(self.cpus.len())];
            let cpus = if random.below(3) == 0 { &self.cpus[..] } else { &[cpu][..] };
            if worker != 0 && pinning::restrict(worker, cpus) {
                self.moves.fetch_add(1, Relaxed);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Sends a thousand signals a second to every worker.
    fn send_signals(&self) {
        while self.going() {
            for worker in &self.workers {
                let worker = worker.load(Relaxed);
                if worker != 0 {
                    pinning::signal(worker, libc::SIGUSR1);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn visit(&self) {
        while self.going() {
            self.subject.visit();
            self.visits.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    /// Runs the thief. The kernel's IDs cannot be stolen: there it only fences, which aborts
    /// sections.
    fn steal(&self) {
        if self.source == Source::Atomic {
            return;
        }
        be_urgent();
        let mut random = Random::new(self.seed, 2);
        while self.going() {
            let cpu = self.cpus[random.below(self.cpus.len())];
            if self.source == Source::Kernel {
                self.steals.fetch_add(u64::from(testing::fence(cpu)), Relaxed);
                if self.skip_fence {
                    // It disturbs nothing, and is not to keep the CPU from those that do.
                    std::thread::sleep(Duration::from_millis(1));
                }
                continue;
            }
            let stolen = if self.evict { testing::evict(cpu) } else { testing::steal(cpu) };
            let Some(stolen) = stolen else {
                std::hint::spin_loop();
                continue;
            };
            self.subject.rob(&stolen);
            self.steals.fetch_add(1, Relaxed);
            let other = self.cpus[random.below(self.cpus.len())];
            stolen.put_back((random.below(2) == 0).then_some(other));
        }
    }

    fn verdict(&self, seconds: f64) -> Verdict {
        let (handled, steals) = (HANDLED.load(Relaxed), self.steals.load(Relaxed));
        let account = self.subject.account();
        let (within, written) = self.written()?;
        let (Ok(found) | Err(found)) = &account;
        let figures = format!(
            "source={} seed={} seconds={seconds:.1} {found} steals={steals} steals_per_second={:.0} \
             signals={handled} affinity_changes={} threads_started={} visits={}{written}",
            self.source,
            self.seed,
            steals as f64 / seconds,
            self.moves.load(Relaxed),
            self.visitors.load(Relaxed),
            self.visits.load(Relaxed),
        );
        if account.is_ok() && within && self.happened() > 0 { Ok(figures) } else { Err(figures) }
    }

    /// Returns `true` if the workers wrote to `rseq_cs` and to no other field of their areas, and
    /// the figures.
    fn written(&self) -> Result<(bool, String), String> {
        let Some(written) = &self.written else { return Ok((true, String::new())) };
        let mut sum = Writes::default();
        for writes in written.lock().expect("no panic").iter() {
            let writes = writes.clone()?;
            sum.rseq_cs += writes.rseq_cs;
            sum.others += writes.others;
        }
        let within = sum.rseq_cs > 0 && sum.others == 0;
        let figures =
            format!(" written_to_rseq_cs={} written_to_other_fields={}", sum.rseq_cs, sum.others);
        Ok((within, figures))
    }
}

/// Asks for more than a fair share of the CPU, which a thief among many workers needs to be quick;
/// without the right to it the stress is merely weaker, and its rate is printed.
fn be_urgent() {
    // SAFETY: plain integers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -15) };
}
