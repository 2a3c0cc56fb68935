//! The traced process: a thread per CPU, each pinned, that follow the script one after the other
//! and note the IDs that they see.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::notes::{self, APART_ENDS, LOOKS, be_seen, look, pin, sleep, spin};
use super::owners;
use super::script::{self, Step};
use crate::options::Options;
use crate::random::{Random, seed};
use crate::verdict::Verdict;

pub(super) fn run(options: &Options) -> Verdict {
    let cpus = allowed();
    pin(cpus[0]);
    let mut random = Random::new(seed(), 0);
    notes::reserve();
    match options.owners {
        true => owners::follow(&cpus, &mut random),
        false => come_back(&cpus, &mut random),
    }
    wander(&cpus);
    notes::print();
    Ok("followed".to_owned())
}

/// Runs a thread for each CPU, which comes back to it after pauses.
fn come_back(cpus: &[u32], random: &mut Random) {
    let all: Vec<usize> = (0..cpus.len()).collect();
    let mut steps = script::meeting(&all);
    steps.extend(script::intermittent(&all, 2, random));
    steps.extend(script::random(&all, 30, random));
    follow(cpus, &steps);
    // Fewer threads on the same CPUs: the bound has shrunk.
    let some: Vec<usize> = all.iter().copied().filter(|worker| worker % 2 == 1).collect();
    if !some.is_empty() {
        let mut steps = script::intermittent(&some, 1, random);
        steps.extend(script::random(&some, 15, random));
        follow(cpus, &steps);
    }
}

/// Moves the only remaining thread over all CPUs. All but one of the IDs that they remember are
/// above the bound.
fn wander(cpus: &[u32]) {
    for &cpu in cpus {
        sleep(2 * UNCLEAR.end);
        pin(cpu);
        look();
        spin(Duration::from_millis(script::HOLD_MS));
        sleep(2 * UNCLEAR.end);
        look();
    }
}

/// Runs a script with a thread for each worker that has a part in it.
fn follow(cpus: &[u32], steps: &[Step]) {
    let turn = Turn::new(steps, cpus.len());
    thread::scope(|scope| {
        let busy = |worker: &usize| steps.iter().any(|step| step.worker == *worker);
        let start = |worker| {
            let turn = &turn;
            let thread = scope.spawn(move || {
                pin(cpus[worker]);
                let own = steps.iter().enumerate().filter(|(_, step)| step.worker == worker);
                own.for_each(|(nr, step)| take(turn, nr, step));
                turn.wait_for_end(worker);
            });
            (worker, thread)
        };
        let threads: Vec<_> = (0..cpus.len()).filter(busy).map(start).collect();
        // Whatever was used or scanned while they started is long ago by then.
        thread::sleep(2 * UNCLEAR.end);
        turn.begin();
        turn.wait_until_done();
        // One after the other, because the kernel traces the end of a thread later than it takes
        // the ID back.
        for (worker, thread) in threads {
            thread::sleep(APART_ENDS);
            turn.end(worker);
            let _ = thread.join();
        }
    });
}

fn take(turn: &Turn<'_>, nr: usize, step: &Step) {
    turn.wait_for(nr);
    turn.wait_until_clear(step.worker);
    look();
    if step.overlaps {
        turn.pass(step.worker);
    }
    let end = Instant::now() + Duration::from_millis(step.hold_ms);
    while Instant::now() < end {
        spin(LOOKS);
        look();
    }
    if !step.overlaps {
        sleep(Duration::from_millis(step.pause_ms));
        turn.pass(step.worker);
    }
}

/// Whose turn it is. Each worker waits by itself: the one that is woken uses an ID.
struct Turn<'a> {
    steps: &'a [Step],
    progress: Mutex<Progress>,
    /// For each worker.
    called: Vec<Condvar>,
    /// All steps are.
    done: Condvar,
}

struct Progress {
    /// The number of steps that may have begun.
    begun: usize,
    /// For each worker the last time at which it is known to have run.
    ran: Vec<Instant>,
    /// About when the kernel scanned last.
    scanned: Instant,
    /// The worker that may end.
    ending: Option<usize>,
}

/// Ages that are so near to 100 ms that a delay decides on which side they are.
const UNCLEAR: Range<Duration> = Duration::from_millis(60)..Duration::from_millis(145);

impl Turn<'_> {
    fn new(steps: &[Step], workers: usize) -> Turn<'_> {
        let now = Instant::now();
        let progress = Progress { begun: 0, ran: vec![now; workers], scanned: now, ending: None };
        let called = (0..workers).map(|_| Condvar::new()).collect();
        Turn { steps, progress: Mutex::new(progress), called, done: Condvar::new() }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the worker of the first step.
    fn begin(&self) {
        self.call_next(&mut self.progress());
    }

    /// Calls the worker of the next step.
    fn pass(&self, worker: usize) {
        let mut progress = self.progress();
        progress.ran[worker] = Instant::now();
        self.call_next(&mut progress);
    }

    fn call_next(&self, progress: &mut Progress) {
        match self.steps.get(progress.begun) {
            Some(step) => self.called[step.worker].notify_one(),
            None => self.done.notify_one(),
        }
        progress.begun += 1;
    }

    fn wait_until_done(&self) {
        let more = |progress: &mut Progress| progress.begun <= self.steps.len();
        drop(self.done.wait_while(self.progress(), more));
    }

    /// Lets a worker end.
    fn end(&self, worker: usize) {
        self.progress().ending = Some(worker);
        self.called[worker].notify_one();
    }

    fn wait_for_end(&self, worker: usize) {
        let stay = |progress: &mut Progress| progress.ending != Some(worker);
        drop(self.called[worker].wait_while(self.progress(), stay));
    }

    fn wait_for(&self, nr: usize) {
        let condition = &self.called[self.steps[nr].worker];
        be_seen();
        drop(condition.wait_while(self.progress(), |progress| progress.begun <= nr));
    }

    /// Waits until the ages are clear. The kernel checks the age of slots when a timer tick occurs
    /// in a running thread, and acts on 100 ms. A recording is useful only if no decision depends
    /// on a millisecond more or less. So the worker, which is about to permit ticks, sleeps until
    /// neither the last scan nor the last use of any CPU was about 100 ms ago.
    fn wait_until_clear(&self, worker: usize) {
        let mut progress = self.progress();
        while let Some(remaining) = progress.unclear_for(worker) {
            drop(progress);
            sleep(remaining);
            progress = self.progress();
        }
        let now = Instant::now();
        progress.ran[worker] = now;
        if now - progress.scanned >= UNCLEAR.end {
            progress.scanned = now;
        }
    }
}

impl Progress {
    /// Returns the time until all ages that are unclear now are clear; `None` if none is.
    fn unclear_for(&self, worker: usize) -> Option<Duration> {
        let now = Instant::now();
        let others = self.ran.iter().enumerate().filter(|(other, _)| *other != worker);
        let times = others.map(|(_, time)| time).chain([&self.scanned]);
        let ages = times.map(|&time| now - time).filter(|age| UNCLEAR.contains(age));
        ages.map(|age| UNCLEAR.end - age).max()
    }
}

/// Returns the CPUs that this thread may use, without an access to the file system, which takes
/// long enough to be scanned.
fn allowed() -> Vec<u32> {
    let mut mask = [0u64; 128];
    // SAFETY: the mask is writable for its whole size.
    unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr());
    }
    (0..128 * 64).filter(|&cpu| mask[cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect()
}
