//! The order that the active mask promises, as often as two CPUs can try: one publishes by a plain
//! store and marks, the other drains and looks. Without the fence on the drainer's side the
//! publisher's load of the bit overtakes its store, and a drain misses what was published.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use percid::{ActiveMask, testing};

use crate::length::Length;
use crate::options::Options;
use crate::pinning;
use crate::random::{Random, seed};
use crate::verdict::Verdict;

/// The publisher's ID, and one that is marked all the time to keep the drainer busy.
const ID: u32 = 5;

#[repr(align(128))]
struct Alone(AtomicU64);

/// Maximum number of stores before the published data, each of which waits for memory, so that the
/// data becomes visible late.
const STORES: usize = 16;

/// Number of lines that the stores go to, more than caches hold.
const LINES: usize = 1 << 18;

/// Distance of the stores, in lines, so that no prefetch occurs.
const APART: usize = 37;

/// The drainer pauses for as many spins, at most: a bit that is drained at once is set anew, which is a
/// fence by itself.
const PAUSE: usize = 32;

struct Race {
    mask: ActiveMask,
    published: Alone,
    began: Alone,
    ended: Alone,
    stop: AtomicBool,
    missed: AtomicU64,
    rounds: AtomicU64,
}

pub(crate) fn run(options: &Options) -> Verdict {
    let cpus = pinning::allowed();
    let [first, second, ..] = cpus[..] else {
        return Ok("skipped: one CPU, so nothing is ever out of order".to_owned());
    };
    let alone = || Alone(AtomicU64::new(0));
    let race = Race {
        mask: ActiveMask::new(),
        published: alone(),
        began: alone(),
        ended: alone(),
        stop: AtomicBool::new(false),
        missed: AtomicU64::new(0),
        rounds: AtomicU64::new(0),
    };
    // The choice to fence is made before fences are skipped.
    race.mask.mark(ID);
    testing::skip_fence(options.skip_fence);
    std::thread::scope(|scope| {
        scope.spawn(|| race.publish(first));
        scope.spawn(|| race.drain(second));
        Length::begin(options, 1.0).wait(|| race.rounds.load(Relaxed));
        race.stop.store(true, Relaxed);
    });
    testing::skip_fence(false);
    let (missed, rounds) = (race.missed.load(Relaxed), race.rounds.load(Relaxed));
    let drains = race.ended.0.load(Relaxed);
    let figures = format!("published={rounds} drains={drains} missed={missed}");
    if missed == 0 && rounds > 0 { Ok(figures) } else { Err(figures) }
}

impl Race {
    fn publish(&self, cpu: u32) {
        pinning::restrict(0, &[cpu]);
        let mut random = Random::new(seed(), 0);
        let far: Vec<Alone> = (0..LINES).map(|_| Alone(AtomicU64::new(1))).collect();
        while !self.stop.load(Relaxed) {
            let stores = random.below(STORES);
            let first = random.below(LINES - STORES * APART);
            let far = far[first..].iter().step_by(APART).take(stores);
            // The bit is set now, unless a drain comes in between: the case in which nothing but
            // the fence orders the store and the test.
            self.mask.mark(ID);
            far.for_each(|line| line.0.store(1, Relaxed));
            self.published.0.store(1, Relaxed);
            self.mask.mark(ID);
            self.rounds.fetch_add(1, Relaxed);
            let began = self.began.0.load(Acquire);
            while self.ended.0.load(Acquire) <= began {
                if self.stop.load(Relaxed) {
                    return;
                }
                std::hint::spin_loop();
            }
            // A load leaves the line with the drainer, which has written it last: so the next store
            // becomes visible late.
            if self.published.0.load(Relaxed) != 0 {
                self.missed.fetch_add(1, Relaxed);
            }
        }
    }

    fn drain(&self, cpu: u32) {
        pinning::restrict(0, &[cpu]);
        let mut random = Random::new(seed(), 1);
        while !self.stop.load(Relaxed) {
            // It comes at any moment of what the publisher does.
            (0..random.below(PAUSE)).for_each(|_| std::hint::spin_loop());
            self.began.0.fetch_add(1, Release);
            self.mask.drain(|_| self.published.0.store(0, Relaxed));
            self.ended.0.fetch_add(1, Release);
        }
    }
}
