//! The stress of the core: no increment is lost and none is counted twice.
//!
//! Unpinned workers count; others come and go; a signaller interrupts the workers with a handler that
//! counts too; affinities change at random; a taker resets the counter all the time; and a thief takes IDs
//! away from CPUs and at once writes through the stolen ID itself, by loads and stores without any
//! protection. A thief that only freed the ID would not reveal a missing fence.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid::{Counter, Source, testing};

use crate::options::Options;
use crate::random::{Random, seed};
use crate::{Verdict, pinning};

/// The counter of the run, where the signal handler finds it.
static COUNTER: std::sync::OnceLock<Counter> = std::sync::OnceLock::new();
static HANDLED: AtomicI64 = AtomicI64::new(0);

/// Increments between two looks at the clock.
const BATCH: i64 = 1000;

/// Unprotected increments through each stolen ID.
const LOOT: i64 = 20;

extern "C" fn handler(_: i32) {
    if let Some(counter) = COUNTER.get() {
        counter.add(1);
        HANDLED.fetch_add(1, Relaxed);
    }
}

/// What the threads of a run share.
struct Run<'a> {
    counter: &'a Counter,
    source: Source,
    seed: u64,
    evict: bool,
    unregister: bool,
    stop: AtomicBool,
    cpus: Vec<u32>,
    /// The workers' thread numbers, for signals and affinities.
    workers: Vec<AtomicI32>,
    /// Increments by workers and by threads that came and went.
    added: AtomicI64,
    /// Increments by the thief.
    loot: AtomicI64,
    /// What the taker took.
    taken: AtomicI64,
    steals: AtomicU64,
    moves: AtomicU64,
    visitors: AtomicU64,
    /// Counters that were made, used, checked and dropped.
    short_lived: AtomicU64,
    /// Those of them whose sum was wrong.
    short_lived_wrong: AtomicU64,
}

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    let counter = Counter::with_source(source).map_err(|error| error.to_string())?;
    let run = Run {
        counter: COUNTER.get_or_init(|| counter),
        source,
        seed: seed(),
        evict: options.evict,
        unregister: options.unregister,
        stop: AtomicBool::new(false),
        cpus: pinning::allowed(),
        workers: (0..options.threads).map(|_| AtomicI32::new(0)).collect(),
        added: AtomicI64::new(0),
        loot: AtomicI64::new(0),
        taken: AtomicI64::new(0),
        steals: AtomicU64::new(0),
        moves: AtomicU64::new(0),
        visitors: AtomicU64::new(0),
        short_lived: AtomicU64::new(0),
        short_lived_wrong: AtomicU64::new(0),
    };
    pinning::handle(libc::SIGUSR1, handler);
    testing::skip_fence(options.skip_fence);
    let start = Instant::now();
    run.all_threads(Duration::from_secs_f64(options.seconds));
    run.verdict(start.elapsed().as_secs_f64())
}

impl Run<'_> {
    fn all_threads(&self, length: Duration) {
        std::thread::scope(|scope| {
            for worker in &self.workers {
                scope.spawn(|| self.work(worker));
            }
            for _ in 0..2 {
                scope.spawn(|| self.make_and_drop());
            }
            scope.spawn(|| self.receive_visitors());
            scope.spawn(|| self.change_affinities());
            scope.spawn(|| self.send_signals());
            scope.spawn(|| self.take());
            scope.spawn(|| self.steal());
            std::thread::sleep(length);
            self.stop.store(true, Relaxed);
        });
    }

    fn going(&self) -> bool {
        !self.stop.load(Relaxed)
    }

    fn work(&self, number: &AtomicI32) {
        number.store(pinning::thread_id(), Relaxed);
        if self.unregister {
            testing::unregister_this_thread();
        }
        while self.going() {
            (0..BATCH).for_each(|_| self.counter.add(1));
            self.added.fetch_add(BATCH, Relaxed);
        }
        // Nobody may signal or move a thread that has ended: its number may be somebody else's.
        number.store(0, Relaxed);
        std::thread::sleep(Duration::from_millis(20));
    }

    /// Threads that come, count and go.
    fn receive_visitors(&self) {
        while self.going() {
            std::thread::scope(|scope| {
                scope.spawn(|| (0..BATCH).for_each(|_| self.counter.add(1)));
            });
            self.added.fetch_add(BATCH, Relaxed);
            self.visitors.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Counters that are made, used and dropped, so that cells go round among threads.
    fn make_and_drop(&self) {
        let new = || Counter::with_source(self.source).expect("an available source");
        while self.going() {
            let counters = [new(), new()];
            counters.iter().for_each(|counter| (0..10).for_each(|_| counter.add(1)));
            let wrong = counters.iter().filter(|counter| counter.sum() != 10).count();
            self.short_lived.fetch_add(2, Relaxed);
            self.short_lived_wrong.fetch_add(wrong as u64, Relaxed);
            drop(counters);
            std::thread::sleep(Duration::from_micros(100));
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

    /// A thousand signals a second to every worker.
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

    fn take(&self) {
        while self.going() {
            self.taken.fetch_add(self.counter.take(), Relaxed);
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    /// The thief. The kernel's IDs are not ours to take: there it only fences, which aborts sections.
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
                continue;
            }
            let stolen = if self.evict { testing::evict(cpu) } else { testing::steal(cpu) };
            let Some(stolen) = stolen else {
                std::hint::spin_loop();
                continue;
            };
            (0..LOOT).for_each(|_| stolen.add_unprotected(self.counter, 1));
            self.loot.fetch_add(LOOT, Relaxed);
            self.steals.fetch_add(1, Relaxed);
            stolen.put_back((random.below(2) == 0).then_some(cpu));
        }
    }

    fn verdict(&self, seconds: f64) -> Verdict {
        let handled = HANDLED.load(Relaxed);
        let expected = self.added.load(Relaxed) + self.loot.load(Relaxed) + handled;
        let counted = self.counter.sum() + self.taken.load(Relaxed);
        let steals = self.steals.load(Relaxed);
        let wrong = self.short_lived_wrong.load(Relaxed);
        let figures = format!(
            "source={} seed={} seconds={seconds:.1} increments={expected} steals={steals} \
             steals_per_second={:.0} signals={handled} affinity_changes={} threads_started={} \
             short_lived={} short_lived_wrong={wrong} lost={}",
            self.source,
            self.seed,
            steals as f64 / seconds,
            self.moves.load(Relaxed),
            self.visitors.load(Relaxed),
            self.short_lived.load(Relaxed),
            expected - counted,
        );
        let exercised = handled > 0 && (steals > 0 || self.source == Source::Atomic);
        if counted == expected && wrong == 0 && exercised { Ok(figures) } else { Err(figures) }
    }
}

/// Asks for more than a fair share of the CPU, which a thief among many workers needs to be quick; without
/// the right to it the stress is merely weaker, and its rate is printed.
fn be_urgent() {
    // SAFETY: plain integers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -15) };
}
