//! The background thread that makes passes and moves pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use percid_rules::scan::Scanner;

use crate::access::pages::Pace;
use crate::access::wakeup::{self, WakeupCount};
use crate::balancing::budget::REST;
use crate::balancing::shared::Inner;
use crate::sys::{clock, memory, nodes, process, signals};

/// The longest time between two checks whether a pass is due: the shortest period by default.
const TICK: Duration = Duration::from_millis(100);

/// The shortest time between any two checks, however short the periods are.
const SHORTEST: Duration = Duration::from_millis(1);

/// The time between two checks during activity; the time to wait for more work after a
/// notification; and how long a pass, a look or a move counts as activity.
const QUICK: Duration = Duration::from_millis(20);
const GATHER: Duration = Duration::from_millis(5);
const BUSY: Duration = Duration::from_millis(300);

/// The time between two looks at pages for which one more access decides, and at those for which
/// several do. The latter should not all be by threads that ran on a CPU at the same time.
const SOON: Duration = Duration::from_millis(40);
const LATER: Duration = Duration::from_millis(250);

/// The thread, running until this is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stop {
    asked: AtomicBool,
}

impl Stop {
    /// Returns `true` if the thread must continue.
    fn goes_on(&self) -> bool {
        !self.asked.load(SeqCst)
    }

    /// Waits for `time`, or until there was a notification since a moment. Returns `true` if there
    /// was one.
    fn listen(&self, since: WakeupCount, time: Duration) -> bool {
        self.goes_on() && since.sleep(time)
    }

    /// Waits for `time`, whatever is notified. Returns `true` if the thread must continue.
    fn pause(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() || !self.goes_on() {
                return self.goes_on();
            }
            self.listen(WakeupCount::now(), rest);
        }
    }
}

impl Background {
    pub(crate) fn start(inner: Arc<Inner>) -> std::io::Result<Background> {
        let stop = Arc::new(Stop::default());
        let of_thread = Arc::clone(&stop);
        let body = move || {
            run(&inner, &of_thread);
        };
        // The program's signal handlers must run in the program's threads only.
        let builder = std::thread::Builder::new().name("percid-numa".to_owned());
        let thread = signals::without_the_programs(|| builder.spawn(body))?;
        Ok(Background { stop, thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.asked.store(true, SeqCst);
        wakeup::notify();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn run(inner: &Inner, stop: &Stop) {
    let shortest = TICK.min(inner.settings.period_min).max(SHORTEST);
    let mut run_times = RunTimes::default();
    let mut next_look = Instant::now();
    let mut last_pass = next_look;
    let mut looks = Looks::new();
    let mut samples = Samples::new(inner.settings.period_min);
    // During activity, looks and moves follow each other quickly.
    let mut busy_until = Instant::now();
    let mut moment = WakeupCount::now();
    loop {
        let now = Instant::now();
        let tick = if now < busy_until { QUICK.min(shortest) } else { shortest };
        let look_in = next_look.saturating_duration_since(now).max(SHORTEST);
        // A notification is often the first of many: wait, to handle several together.
        let mut is_busy = stop.listen(moment, tick.min(look_in));
        if !stop.pause(if is_busy { GATHER } else { Duration::ZERO }) {
            return;
        }
        moment = WakeupCount::now();
        if inner.follow_change() {
            next_look = next_look.min(last_pass + inner.least_period());
        }
        if Instant::now() >= next_look {
            let looked = look(inner, &mut run_times);
            next_look = Instant::now() + looked.rest;
            if looked.has_passed {
                (last_pass, is_busy) = (Instant::now(), true);
            }
        }
        if inner.affordable().is_some() {
            is_busy |= samples.take_if_due(inner) || looks.take_if_due(inner);
        }
        inner.note_progress();
        match move_all(inner, stop) {
            Moved::Stopped => return,
            Moved::Some => is_busy = true,
            Moved::Nothing => {}
        }
        if is_busy {
            busy_until = Instant::now() + BUSY;
        }
    }
}

/// Looks at pages for which further accesses decide.
struct Looks {
    /// For each pace: its interval, and the time of the next look.
    next: [(Pace, Duration, Instant); 2],
}

impl Looks {
    fn new() -> Looks {
        let now = Instant::now();
        Looks { next: [(Pace::Soon, SOON, now), (Pace::Later, LATER, now)] }
    }

    /// Returns `true` if something was armed.
    fn take_if_due(&mut self, inner: &Inner) -> bool {
        let mut armed = false;
        for (pace, every, next) in &mut self.next {
            let pages = if Instant::now() >= *next { inner.rearm(*pace) } else { 0 };
            if pages > 0 {
                inner.note_rearmed(pages);
                *next = Instant::now() + *every;
                armed = true;
            }
        }
        armed
    }
}

/// Samples between passes: a few grains are armed, so that a change is detected long before a pass
/// is due.
struct Samples {
    every: Duration,
    next: Instant,
    turn: usize,
    /// Maximum number of sampled grains of a region.
    most: usize,
}

/// Divisor for the share of samples in the time that passes may take.
const SAMPLES_PART: u32 = 10;

impl Samples {
    fn new(every: Duration) -> Samples {
        Samples { every, next: Instant::now() + every, turn: 0, most: 1 }
    }

    /// Takes a sample if passes have become rare, at most as often as passes may be made. Reduces
    /// the number of grains if a sample takes long. Returns `true` if something was armed.
    fn take_if_due(&mut self, inner: &Inner) -> bool {
        let are_passes_rare = || inner.shortest_period() > self.every * 2;
        if Instant::now() < self.next || !are_passes_rare() {
            return false;
        }
        self.turn += 1;
        inner.sample(self.turn, self.most);
        let began = clock::own_run_time();
        let armed = inner.rearm(Pace::Soon) > 0;
        let took = clock::own_run_time().saturating_sub(began);
        let rest = took.saturating_mul(SAMPLES_PART * REST);
        self.most =
            if rest < self.every { self.most.saturating_mul(4) } else { self.most / 2 }.max(1);
        self.next = Instant::now() + self.every.max(rest);
        armed
    }
}

/// Result of the check whether a pass is due.
struct Looked {
    /// Time until a pass can be due.
    rest: Duration,
    has_passed: bool,
}

/// Makes a pass if the time budget permits one and it is due for a thread.
fn look(inner: &Inner, run_times: &mut RunTimes) -> Looked {
    let Some(bytes) = inner.affordable() else {
        return Looked { rest: TICK, has_passed: false };
    };
    let began = clock::own_run_time();
    let next = run_times.next(inner);
    inner.note_choice(clock::own_run_time().saturating_sub(began));
    match next {
        Next::None { rest } => Looked { rest, has_passed: false },
        Next::Due { scanner, period } => {
            let pass = inner.pass_for(scanner, bytes);
            run_times.rest_after(scanner.thread, pass.took, inner.settings.period_max);
            Looked { rest: period, has_passed: true }
        }
    }
}

/// Outcome of moving pages.
enum Moved {
    Nothing,
    Some,
    /// The thread must end.
    Stopped,
}

/// Moves the pages with a pending move, within the bandwidth limit.
fn move_all(inner: &Inner, stop: &Stop) -> Moved {
    let mut moved = Moved::Nothing;
    loop {
        let (began, most) = (Instant::now(), inner.batch_bytes());
        let batch = inner.move_batch();
        if batch.moved + batch.failed == 0 && !batch.more {
            return moved;
        }
        moved = Moved::Some;
        let bytes = batch.moved * memory::page_size() as u64;
        let due = Duration::from_secs_f64(bytes as f64 / inner.settings.bandwidth as f64);
        let took = began.elapsed();
        let gather = if bytes < most / 2 { took } else { Duration::ZERO };
        if !stop.pause(due.saturating_sub(took)) || !gather_for(inner, stop, gather) {
            return Moved::Stopped;
        }
        if !batch.more {
            return moved;
        }
    }
}

/// Waits for `time`, or until half of a batch has a pending move, because the fixed time of a call
/// is spent for few pages too. Returns `true` if the thread must continue.
fn gather_for(inner: &Inner, stop: &Stop, time: Duration) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end && inner.pending_bytes() < inner.batch_bytes() / 2 {
        if !stop.pause(GATHER) {
            return false;
        }
    }
    stop.goes_on()
}

/// The run times of threads: a pass is made for a thread that has run for a period.
#[derive(Debug, Default)]
struct RunTimes {
    threads: BTreeMap<u32, RunTime>,
}

/// The run time of a thread.
#[derive(Debug, Clone, Copy)]
struct RunTime {
    /// The run time at which its current period begins.
    stamp: Duration,
    /// The run time at the last check.
    ran: Duration,
}

/// The next step for the program's threads.
enum Next {
    /// A pass for a thread with this period.
    Due { scanner: Scanner, period: Duration },
    /// Nothing for this time: no thread can run for longer than the time that passes.
    None { rest: Duration },
}

impl RunTimes {
    /// Finds the program's thread that has run for longest beyond its period. Skips this thread and
    /// the monitor, which are percid's. The first period of a thread is the scan delay, as
    /// published.
    fn next(&mut self, inner: &Inner) -> Next {
        let (me, monitor) = (process::thread_id(), inner.monitor_thread());
        let mut threads = process::thread_ids();
        threads.sort_unstable();
        let others = (threads.len() as u32).saturating_sub(1);
        self.threads.retain(|thread, _| threads.binary_search(thread).is_ok());
        threads.retain(|&thread| thread != me && thread != monitor);
        // A thread that does not exist yet has all of its first period left.
        let delay = inner.settings.scan_delay;
        let mut rest = delay;
        let mut due: Option<(Duration, u32, Duration)> = None;
        for (&thread, period) in threads.iter().zip(inner.periods_of(&threads)) {
            let Some(ran) = clock::run_time(thread) else { continue };
            let since = self.note(thread, ran);
            let is_first = self.threads[&thread].stamp == Duration::ZERO;
            let period = if is_first { delay } else { period };
            match since.checked_sub(period) {
                Some(beyond) => due = due.max(Some((beyond, thread, period))),
                None => rest = rest.min(period - since),
            }
        }
        let Some((beyond, thread, period)) = due else { return Next::None { rest } };
        // Its next period begins now: missed passes are not repeated.
        if let Some(run_time) = self.threads.get_mut(&thread) {
            run_time.stamp += period + beyond;
        }
        // The kernel does not report another thread's memory policy. Threads inherit theirs, as
        // this one did.
        let balances = nodes::own_policy().is_none_or(|mode| mode.is_default() || mode.balances());
        Next::Due { scanner: Scanner { thread, balances, threads: others }, period }
    }

    /// Delays the next pass of a thread: as published, it must run for many times the duration of
    /// its last pass, but no longer than the longest period.
    fn rest_after(&mut self, thread: u32, took: Duration, longest: Duration) {
        if let Some(run_time) = self.threads.get_mut(&thread) {
            run_time.stamp += took.saturating_mul(REST - 1).min(longest);
        }
    }

    /// Records the run time of a thread. Returns the time beyond its stamp.
    fn note(&mut self, thread: u32, ran: Duration) -> Duration {
        let new = RunTime { stamp: Duration::ZERO, ran };
        let run_time = self.threads.entry(thread).or_insert(new);
        // If it is less than before, the number belongs to another thread now.
        *run_time = if ran < run_time.ran { new } else { RunTime { ran, ..*run_time } };
        ran.saturating_sub(run_time.stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_a_number_that_is_used_again_begins_anew() {
        let second = Duration::from_secs(1);
        let mut run_times = RunTimes::default();
        assert_eq!(run_times.note(7, 5 * second), 5 * second);
        run_times.threads.get_mut(&7).expect("noted").stamp += 4 * second;
        assert_eq!(run_times.note(7, 6 * second), 2 * second);
        assert_eq!(run_times.note(7, 3 * second), 3 * second, "another thread");
    }
}
