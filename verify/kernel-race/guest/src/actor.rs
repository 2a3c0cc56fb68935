//! Threads that do what they are ordered to, and publish where they run and under which ID.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use percid::Counter;

use crate::area;

/// The counter that every actor adds to while it counts.
static COUNTER: Counter = Counter::new();

/// Orders.
const SLEEP: u32 = 0;
const TOUCH: u32 = 1;
const RUN: u32 = 2;
const LEAVE: u32 = 3;

/// Run time of a thread that must be seen on its CPU, but not longer.
const TOUCHING: Duration = Duration::from_millis(10);
/// Number of increments between two checks of the orders.
const BATCH: i64 = 1000;

/// One thread, and what is known of it. On cache lines of its own: it is read while it runs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Actor {
    order: AtomicU32,
    thread: AtomicI32,
    id: AtomicU32,
    cpu: AtomicU32,
    turns: AtomicU64,
    added: AtomicI64,
    sleeps: AtomicBool,
    /// `true` if it will never add anything any more.
    has_left: AtomicBool,
}

impl Actor {
    pub(crate) const fn new() -> Self {
        Self {
            order: AtomicU32::new(SLEEP),
            thread: AtomicI32::new(0),
            id: AtomicU32::new(u32::MAX),
            cpu: AtomicU32::new(u32::MAX),
            turns: AtomicU64::new(0),
            added: AtomicI64::new(0),
            sleeps: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
        }
    }

    /// Starts the thread and puts it to sleep on `cpu`.
    pub(crate) fn start(&'static self, cpu: u32) {
        self.start_as(cpu, Self::act);
    }

    /// Starts a thread that does something else.
    pub(crate) fn start_as(&'static self, cpu: u32, act: fn(&'static Self)) {
        std::thread::spawn(move || {
            pin(0, cpu);
            // SAFETY: takes nothing and cannot fail.
            self.thread.store(unsafe { libc::gettid() }, Ordering::Release);
            act(self);
        });
        while self.thread() == 0 {
            nap(Duration::from_millis(1));
        }
        // It has said its name, and goes to sleep about now.
        nap(Duration::from_millis(5));
    }

    pub(crate) fn thread(&self) -> i32 {
        self.thread.load(Ordering::Acquire)
    }

    /// Returns the ID that it last ran under.
    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Acquire)
    }

    /// Returns the word with that ID.
    pub(crate) fn id_word(&self) -> &AtomicU32 {
        &self.id
    }

    /// Invalidates that word until the actor runs again.
    pub(crate) fn forget_id(&self) {
        self.id.store(u32::MAX, Ordering::Release);
    }

    /// Returns the CPU that it last ran on.
    pub(crate) fn cpu(&self) -> u32 {
        self.cpu.load(Ordering::Acquire)
    }

    /// Returns the number of times that it has checked its orders while it ran.
    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }

    /// Lets it run until its next order; returns when it runs, or will not within seconds.
    pub(crate) fn run(&self) {
        let before = self.turns();
        self.wake_up();
        spin_until(Duration::from_secs(3), || self.turns() > before);
    }

    /// Wakes an actor that will be stopped before it runs.
    pub(crate) fn wake_up(&self) {
        self.give(RUN);
    }

    /// Lets it sleep. A thread that is asleep hears of it when it runs again.
    pub(crate) fn rest(&self) {
        self.order.store(SLEEP, Ordering::Release);
    }

    /// Returns `true` if it sleeps, or is about to.
    pub(crate) fn sleeps(&self) -> bool {
        self.sleeps.load(Ordering::Acquire)
    }

    /// Lets it run for a moment and go to sleep; returns when it has.
    pub(crate) fn touch(&self) {
        self.give(TOUCH);
        while self.order.load(Ordering::Acquire) == TOUCH {
            spin(Duration::from_millis(1));
        }
        spin(Duration::from_millis(2));
    }

    /// Tells it to leave.
    pub(crate) fn leave(&self) {
        self.give(LEAVE);
    }

    fn give(&self, order: u32) {
        self.order.store(order, Ordering::Release);
        wake(&self.order);
    }

    /// Follows its orders until it is ordered to leave.
    pub(crate) fn act(&'static self) {
        loop {
            match self.order.load(Ordering::Acquire) {
                SLEEP => self.act_sleep(),
                TOUCH => self.act_touch(),
                RUN => self.act_run(),
                _ => return self.has_left.store(true, Ordering::Release),
            }
        }
    }

    fn act_sleep(&self) {
        self.sleeps.store(true, Ordering::Release);
        wait_while(&self.order, SLEEP);
        self.sleeps.store(false, Ordering::Release);
    }

    fn act_touch(&self) {
        let until = Instant::now() + TOUCHING;
        while Instant::now() < until {
            self.take_turn();
        }
        // Fails if there is another order by now.
        let _ = self.order.compare_exchange(TOUCH, SLEEP, Ordering::AcqRel, Ordering::Acquire);
    }

    fn act_run(&self) {
        while self.order.load(Ordering::Acquire) == RUN {
            self.take_turn();
        }
    }

    /// Counts from the beginning: the counter gets everything that it needs of the kernel for an ID
    /// (memory, for example) before the ID is doubled. A thread that waits for the kernel then
    /// would be switched away, and get another ID.
    fn take_turn(&self) {
        self.publish();
        for _ in 0..BATCH {
            COUNTER.add(1);
        }
        self.added.fetch_add(BATCH, Ordering::Release);
    }

    fn publish(&self) {
        self.id.store(area::mm_cid(), Ordering::Release);
        self.cpu.store(area::cpu(), Ordering::Release);
        self.turns.fetch_add(1, Ordering::AcqRel);
    }
}

/// Ends all actors there are, and answers how many increments they have made and how many the
/// counter has.
pub(crate) fn finish(actors: &[&Actor]) -> Result<(i64, i64), String> {
    actors.iter().for_each(|actor| actor.leave());
    let until = Instant::now() + Duration::from_secs(20);
    while !actors.iter().all(|actor| actor.has_left.load(Ordering::Acquire)) {
        if Instant::now() > until {
            return Err("a thread does not come to its end".to_owned());
        }
        nap(Duration::from_millis(10));
    }
    let added = actors.iter().map(|actor| actor.added.load(Ordering::Acquire)).sum();
    Ok((added, COUNTER.sum()))
}

/// Looks at `actors`, all of which run, until the time is over: how often all were seen to have
/// kept their IDs for a while, and in how many of those two of them had the same.
pub(crate) fn sample(actors: &[&Actor], time: Duration) -> (u64, u64) {
    let until = Instant::now() + time;
    let (mut samples, mut doubled) = (0, 0);
    while Instant::now() < until {
        let sample = sample_once(actors, until);
        samples += u64::from(sample.is_some());
        doubled += u64::from(sample == Some(true));
    }
    (samples, doubled)
}

/// Returns `true` if two of `actors` have one ID; `None` if one of them does not run, or has got
/// another ID since the first look.
///
/// Every actor has published its ID anew before the first look, and again between the two looks,
/// and both looks are equal. So for each of two actors with one ID there is a moment between the
/// looks at which it read that ID from its own area.
pub(crate) fn sample_once(actors: &[&Actor], until: Instant) -> Option<bool> {
    let first = fresh_ids(actors, until)?;
    let second = fresh_ids(actors, until)?;
    (first == second).then(|| has_pair(&first))
}

/// Returns the IDs of all actors after each has begun a turn, and ended it, since now.
fn fresh_ids(actors: &[&Actor], until: Instant) -> Option<Vec<u32>> {
    let before: Vec<u64> = actors.iter().map(|actor| actor.turns()).collect();
    while actors.iter().zip(&before).any(|(actor, before)| actor.turns() < before + 2) {
        if Instant::now() >= until {
            return None;
        }
        std::hint::spin_loop();
    }
    Some(actors.iter().map(|actor| actor.id()).collect())
}

fn has_pair(ids: &[u32]) -> bool {
    ids.iter().enumerate().any(|(at, id)| ids[..at].contains(id))
}

/// Lets a thread (0: this one) run on one CPU only.
pub(crate) fn pin(thread: i32, cpu: u32) {
    // SAFETY: the set is plain data, zeroed, and readable for its size.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(thread, size_of_val(&set), &set)
    };
    assert_eq!(result, 0, "pinning to CPU {cpu}: {}", std::io::Error::last_os_error());
}

/// Makes a thread (0: this one) a real-time one, which only those of higher priority preempt.
pub(crate) fn make_real_time(thread: i32, priority: i32) {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the structure is readable.
    let result = unsafe { libc::sched_setscheduler(thread, libc::SCHED_FIFO, &parameters) };
    assert_eq!(result, 0, "real-time scheduling: {}", std::io::Error::last_os_error());
}

/// Sleeps while `word` has this value.
pub(crate) fn wait_while(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire) == value {
        let no_limit = std::ptr::null::<libc::timespec>();
        // SAFETY: the word outlives the call; nothing else is read or written.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                value,
                no_limit,
            );
        }
    }
}

/// Wakes all that wait for `word`.
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call; nothing else is read or written.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}

/// Keeps this CPU busy.
pub(crate) fn spin(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Spins until `done`, but not longer than `limit`. Returns `true` if it was done.
pub(crate) fn spin_until(limit: Duration, done: impl Fn() -> bool) -> bool {
    let until = Instant::now() + limit;
    while !done() {
        if Instant::now() >= until {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

/// Leaves this CPU to others.
pub(crate) fn nap(time: Duration) {
    std::thread::sleep(time);
}
