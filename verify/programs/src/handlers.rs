//! Signal handlers that use a counter while they interrupt the same operation, a slow path, or a
//! thread while another thread holds the table's lock.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use percid::{Counter, Source, testing};

use crate::length::Length;
use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

static COUNTER: std::sync::OnceLock<Counter> = std::sync::OnceLock::new();
static HANDLED: AtomicI64 = AtomicI64::new(0);

extern "C" fn handler(_: i32) {
    if let Some(counter) = COUNTER.get() {
        counter.add(1);
        HANDLED.fetch_add(1, Relaxed);
        MINE.set(MINE.get() + 1);
    }
}

thread_local! {
    /// Signals that this thread has handled since it last looked.
    static MINE: Cell<u32> = const { Cell::new(0) };
}

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    let counter = Counter::with_source(source).map_err(|error| error.to_string())?;
    let counter = COUNTER.get_or_init(|| counter);
    pinning::handle(libc::SIGUSR1, handler);
    let stop = AtomicBool::new(false);
    let (added, under_lock, steals) = (AtomicI64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (handled_under_lock, handled_after) = (AtomicU64::new(0), AtomicU64::new(0));
    let targets = [const { AtomicI32::new(0) }; 2];
    std::thread::scope(|scope| {
        for target in &targets {
            scope.spawn(|| {
                target.store(pinning::thread_id(), Relaxed);
                while !stop.load(Relaxed) {
                    (0..100).for_each(|_| counter.add(1));
                    added.fetch_add(100, Relaxed);
                }
            });
        }
        // Steals the IDs all the time, so that most signals arrive in the slow path.
        scope.spawn(|| {
            let cpus = pinning::allowed();
            while !stop.load(Relaxed) && source == Source::Table {
                for &cpu in &cpus {
                    if let Some(stolen) = testing::steal(cpu) {
                        stolen.put_back(None);
                        steals.fetch_add(1, Relaxed);
                    }
                }
            }
        });
        // Increments while this very thread holds the lock, as a handler would if it could get in;
        // and a signal to itself, whose handler must wait until the lock is free.
        scope.spawn(|| {
            while !stop.load(Relaxed) && source == Source::Table {
                let early = testing::while_table_is_locked(|| {
                    counter.add(1);
                    MINE.set(0);
                    pinning::signal(pinning::thread_id(), libc::SIGUSR1);
                    MINE.get()
                });
                under_lock.fetch_add(u64::from(early.is_some()), Relaxed);
                handled_under_lock.fetch_add(u64::from(early.unwrap_or(0)), Relaxed);
                handled_after.fetch_add(u64::from(early.is_some() && MINE.get() > 0), Relaxed);
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let length = Length::begin(options, 1.0);
        let happened = || {
            let of_the_table = match source {
                Source::Table => steals.load(Relaxed).min(handled_after.load(Relaxed)),
                _ => u64::MAX,
            };
            of_the_table.min(HANDLED.load(Relaxed) as u64)
        };
        while length.goes_on(happened()) {
            for target in &targets {
                pinning::signal(target.load(Relaxed), libc::SIGUSR1);
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        stop.store(true, Relaxed);
    });
    let handled = HANDLED.load(Relaxed);
    let expected = added.load(Relaxed) + handled + under_lock.load(Relaxed) as i64;
    let figures = format!(
        "source={source} signals={handled} steals={} under_lock={} handled_under_lock={} \
         handled_after={} sum={} expected={expected}",
        steals.load(Relaxed),
        under_lock.load(Relaxed),
        handled_under_lock.load(Relaxed),
        handled_after.load(Relaxed),
        counter.sum(),
    );
    let exercised = handled > 0 && (source != Source::Table || handled_after.load(Relaxed) > 0);
    let blocked = handled_under_lock.load(Relaxed) == 0;
    if counter.sum() == expected && exercised && blocked { Ok(figures) } else { Err(figures) }
}
