//! Stresses of the structures: eight threads, signals, migrations, threads that come and go, and
//! forks. `PERCID_STRESS_SECONDS` sets the duration of each.

mod run;

use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use percid::Source;

use crate::{Arc, Budget, Domain, Owner, RcuCell, RwLock, fence};
use run::{Random, Work, run};

fn sources() -> impl Iterator<Item = Source> {
    Source::ALL.iter().copied().filter(|source| source.prepare().is_ok())
}

/// A value that is poisoned when it is dropped, and counts that.
struct Poisoned<'c> {
    value: u64,
    twin: AtomicU64,
    drops: &'c AtomicU64,
}

const POISON: u64 = 0x6b6b_6b6b_6b6b_6b6b;

impl Poisoned<'_> {
    fn new(value: u64, drops: &AtomicU64) -> Poisoned<'_> {
        Poisoned { value, twin: AtomicU64::new(value), drops }
    }

    fn is_whole(&self) -> bool {
        self.twin.load(Relaxed) == self.value && self.value != POISON
    }
}

impl Drop for Poisoned<'_> {
    fn drop(&mut self) {
        self.value = POISON;
        self.twin.store(!POISON, Relaxed);
        self.drops.fetch_add(1, Relaxed);
    }
}

#[test]
#[ignore = "slow: two seconds with each source"]
fn a_lock_excludes_under_stress() {
    for source in sources() {
        let (drops, writes) = (AtomicU64::new(0), AtomicU64::new(0));
        let lock = RwLock::with_source(source, (0, Box::new(Poisoned::new(0, &drops)), 0));
        let lock = lock.expect("an available source");
        let operate = |random: u64| {
            if random.is_multiple_of(8) {
                let writing = match random & 8 {
                    0 => lock.write().ok(),
                    _ => lock.write_timeout(Duration::from_micros(50)).ok(),
                };
                let Some(mut data) = writing else { return };
                data.0 += 1;
                let value = data.0;
                let new = Box::new(Poisoned::new(value, &drops));
                drop(std::mem::replace(&mut data.1, new));
                data.2 = value;
                writes.fetch_add(1, Relaxed);
                return;
            }
            let reading = match random & 3 {
                1 => lock.try_read().ok(),
                2 => lock.read_timeout(Duration::from_micros(50)).ok(),
                _ => lock.read().ok(),
            };
            let Some(data) = reading else { return };
            assert!(data.0 == data.2 && data.1.value == data.0 && data.1.is_whole(), "torn");
        };
        // The mutex of a closed lock may be one that a thread of the parent has locked.
        let fork = || lock.raw().is_closed() || lock.try_read().is_ok_and(|data| data.1.is_whole());
        run(Work { operate: &operate, interrupt: &|| true, fork: &fork });
        let writes = writes.into_inner();
        let data = lock.into_inner().expect("no panic");
        assert_eq!((data.0, data.2, drops.load(Relaxed)), (writes, writes, writes), "{source}");
    }
}

#[test]
#[ignore = "slow: two seconds with each source"]
fn a_domain_frees_nothing_that_is_read_under_stress() {
    static DROPS: AtomicU64 = AtomicU64::new(0);
    for source in sources() {
        DROPS.store(0, SeqCst);
        let made = AtomicU64::new(1);
        let make = || Poisoned::new(made.fetch_add(1, Relaxed), &DROPS);
        let domain = Domain::with_source(source).expect("an available source");
        let cell = RcuCell::new(&domain, Poisoned::new(0, &DROPS));
        let is_whole = || cell.load(&domain.read()).is_whole();
        let operate = |random: u64| match random % 32 {
            0 => assert!(cell.replace(make()).expect("it may fence").is_whole(), "freed"),
            1 => cell.store(make()),
            _ => {
                let reading = domain.read();
                let value = cell.load(&reading);
                assert!(value.is_whole() && is_whole(), "freed");
                if random.is_multiple_of(16) {
                    thread::yield_now();
                }
                assert!(value.is_whole(), "freed");
            }
        };
        run(Work { operate: &operate, interrupt: &is_whole, fork: &is_whole });
        domain.flush().expect("it may fence");
        assert_eq!((domain.reader_count(), domain.deferred_count()), (0, 0), "{source}");
        assert_eq!(DROPS.load(Relaxed) + 1, made.into_inner(), "one is in the cell: {source}");
    }
}

#[test]
#[ignore = "slow: two seconds with each source"]
fn a_shared_value_is_dropped_once_under_stress() {
    for source in sources() {
        let (drops, made) = (AtomicU64::new(0), AtomicU64::new(0));
        let make = || {
            let value = Poisoned::new(made.fetch_add(1, Relaxed), &drops);
            Owner::with_source(source, value).expect("an available source")
        };
        let owner = Mutex::new(make());
        let handed_over: Mutex<Vec<Arc<Poisoned<'_>>>> = Mutex::new(Vec::new());
        let operate = |random: u64| {
            let mut owner = owner.lock().unwrap_or_else(PoisonError::into_inner);
            if random.is_multiple_of(32) {
                *owner = make();
            }
            let shared = owner.share();
            drop(owner);
            for _ in 0..random % 8 {
                assert!(shared.clone().is_whole(), "freed");
            }
            let mut handed_over = handed_over.lock().unwrap_or_else(PoisonError::into_inner);
            let earlier = if random & 1 == 0 { handed_over.pop() } else { None };
            handed_over.push(shared);
            handed_over.truncate(100);
            drop(handed_over);
            assert!(earlier.is_none_or(|earlier| earlier.is_whole()), "freed");
        };
        run(Work { operate: &operate, interrupt: &|| true, fork: &|| true });
        drop((owner, handed_over));
        assert_eq!(drops.into_inner(), made.into_inner(), "{source}");
    }
}

#[test]
#[ignore = "slow: two seconds with each source"]
fn a_budget_is_never_exceeded_under_stress() {
    const LIMIT: u64 = 1000;
    for source in sources() {
        let budget = Budget::with_source(source, LIMIT, 20).expect("an available source");
        let (charged, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        let held = Mutex::new(Vec::new());
        let operate = |random: u64| {
            let units = random % 60;
            if budget.try_charge(units).is_ok() {
                let sum = charged.fetch_add(units, SeqCst) + units;
                assert!(sum <= LIMIT, "{sum} units are charged");
                held.lock().unwrap_or_else(PoisonError::into_inner).push(units);
            } else {
                refused.fetch_add(1, Relaxed);
            }
            // Other threads release what this one has charged.
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            let released = if random & 64 == 0 || held.len() > 40 { held.pop() } else { None };
            drop(held);
            charged.fetch_sub(released.unwrap_or(0), SeqCst);
            budget.release(released.unwrap_or(0));
        };
        let is_kept = || budget.approximate() <= LIMIT;
        run(Work { operate: &operate, interrupt: &is_kept, fork: &is_kept });
        let held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
        held.into_iter().for_each(|units| budget.release(units));
        assert_eq!((budget.exact(), budget.try_charge(LIMIT)), (0, Ok(())), "{source}");
        assert!(refused.into_inner() > 0, "the limit was reached: {source}");
    }
}

/// A reader saw what its protocol excludes.
struct Broken;

/// Stores of a reader to memory that no cache has, before it enters. The processor does them in
/// order, so the entry waits behind them, and later loads may be done before it.
const STORES: usize = 10;

/// Lets a reader and a writer meet. `read` returns `true` if it saw what the protocol excludes. The
/// writer's fences are skipped if that is asked for. Returns the number of times that the writer
/// wrote while the reader read.
fn meet(
    (read, write): (&(dyn Fn() -> bool + Sync), &dyn Fn()),
    is_skipped: bool,
    far: &[AtomicU64],
) -> Result<usize, Broken> {
    const ROUNDS: u32 = 10_000;
    /// The longest pause between two turns of the writer, in which the reader enters.
    const PAUSE: u32 = 300;
    let (broken, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut meetings = 0;
    let (begin, end) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            begin.wait();
            let mut random = Random::new(1);
            while !end.load(Relaxed) {
                for _ in 0..STORES {
                    far[random.below(far.len() as u64) as usize].store(1, Relaxed);
                }
                broken.fetch_or(read(), SeqCst);
                reads.fetch_add(1, Relaxed);
            }
        });
        begin.wait();
        for round in 0..ROUNDS {
            (0..round % PAUSE).for_each(|_| std::hint::spin_loop());
            let before = reads.load(Relaxed);
            if is_skipped {
                fence::skipped(write)
            } else {
                write()
            }
            meetings += usize::from(reads.load(Relaxed) != before);
        }
        end.store(true, Relaxed);
    });
    if broken.into_inner() { Err(Broken) } else { Ok(meetings) }
}

/// A reader and a writer of a new lock: they must not be inside together.
fn meet_in_lock(source: Source, is_skipped: bool, far: &[AtomicU64]) -> Result<usize, Broken> {
    let lock = RwLock::with_source(source, ()).expect("an available source");
    let written = AtomicBool::new(false);
    let read = || lock.try_read().is_ok_and(|_reading| (0..4).any(|_| written.load(SeqCst)));
    let write = || {
        let writing = lock.write().expect("no panic");
        written.store(true, SeqCst);
        written.store(false, SeqCst);
        drop(writing);
    };
    meet((&read, &write), is_skipped, far)
}

/// A reader of a new domain, and a writer that replaces a value and frees it after a grace period:
/// the reader must not see its value freed.
fn meet_in_domain(source: Source, is_skipped: bool, far: &[AtomicU64]) -> Result<usize, Broken> {
    let domain = Domain::with_source(source).expect("an available source");
    let (current, freed) = (AtomicUsize::new(0), [const { AtomicBool::new(false) }; 2]);
    let read = || {
        let _reading = domain.read();
        let value = current.load(Acquire);
        (0..4).any(|_| freed[value].load(SeqCst))
    };
    let write = || {
        let former = current.load(Relaxed);
        freed[1 - former].store(false, SeqCst);
        current.store(1 - former, Release);
        domain.synchronize().expect("a fence");
        freed[former].store(true, SeqCst);
    };
    meet((&read, &write), is_skipped, far)
}

/// Tries a protocol without its fence until the reader sees it, and then a few times with the fence.
fn fence_is_needed(meet: fn(Source, bool, &[AtomicU64]) -> Result<usize, Broken>) {
    /// Meetings of which one must show it, however long they take to come about.
    const MEETINGS: usize = 100_000_000;
    /// Number of tries with the fence.
    const RIGHT: usize = 5;
    let is_parallel = thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    // Atomic instructions are barriers: readers that use them need no fence on some processors.
    let source = sources().find(|&source| source != Source::Atomic);
    let Some(source) = source.filter(|_| is_parallel && fence::is_asymmetric()) else {
        println!("not tried: one CPU, or readers that have a barrier");
        return;
    };
    // 128 MiB: more than the processor has caches.
    let far: Vec<AtomicU64> = (0..1 << 24).map(AtomicU64::new).collect();
    let mut meetings = 0;
    while let Ok(more) = meet(source, true, &far) {
        meetings += more;
        assert!(meetings < MEETINGS, "a missing fence is seen");
    }
    println!("seen after {meetings} meetings");
    assert!((0..RIGHT).all(|_| meet(source, false, &far).is_ok()), "the fence suffices");
}

/// Control: without the fence of writers, a reader and a writer are inside together.
#[test]
#[ignore = "long: tried until it is seen, a minute beside other programs"]
fn a_lock_without_its_fence_is_noticed() {
    fence_is_needed(meet_in_lock);
}

/// Control: without the fence of a grace period, a reader sees a value that was freed.
#[test]
#[ignore = "long: tried until it is seen, a minute beside other programs"]
fn a_grace_period_without_its_fence_is_noticed() {
    fence_is_needed(meet_in_domain);
}
