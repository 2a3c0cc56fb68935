//! The thread that makes passes and moves pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use percid_rules::scan::Scanner;

use crate::access::bell::{self, Moment};
use crate::access::pages::Pace;
use crate::inner::{Inner, REST};
use crate::sys::{clock, memory, nodes, process, signals};

/// The longest time between two checks whether a pass is due: the shortest period by default.
const TICK: Duration = Duration::from_millis(100);

/// The shortest time between any two looks, however short the periods are.
const SHORTEST: Duration = Duration::from_millis(1);

/// The time between two checks while something is going on, and for how long after a pass, a look or
/// a move there may be something.
const QUICK: Duration = Duration::from_millis(20);
const GATHER: Duration = Duration::from_millis(5);
const BUSY: Duration = Duration::from_millis(300);

/// The time between two looks at pages about which one more access decides; and at those about which
/// several do, which should not all be by threads that had the same turn on a CPU.
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
    /// Whether the thread is to go on.
    fn goes_on(&self) -> bool {
        !self.asked.load(SeqCst)
    }

    /// Waits for this time, or until the bell has rung since a moment. Returns whether it has.
    fn listen(&self, since: Moment, time: Duration) -> bool {
        self.goes_on() && since.sleep(time)
    }

    /// Waits for this time, whoever rings. Returns whether the thread is to go on.
    fn pause(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() || !self.goes_on() {
                return self.goes_on();
            }
            self.listen(Moment::now(), rest);
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
        // The program's handlers run in the program's threads.
        let builder = std::thread::Builder::new().name("percid-numa".to_owned());
        let thread = signals::without_the_programs(|| builder.spawn(body))?;
        Ok(Background { stop, thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.asked.store(true, SeqCst);
        bell::ring();
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported when it happened.
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
    // While something is going on: looks and moves follow each other quickly.
    let mut busy_until = Instant::now();
    let mut moment = Moment::now();
    loop {
        let now = Instant::now();
        let tick = if now < busy_until { QUICK.min(shortest) } else { shortest };
        let look_in = next_look.saturating_duration_since(now).max(SHORTEST);
        // Who rings is the first of many: more will be done together.
        let mut is_busy = stop.listen(moment, tick.min(look_in));
        if !stop.pause(if is_busy { GATHER } else { Duration::ZERO }) {
            return;
        }
        moment = Moment::now();
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

/// Looks at pages about which further accesses decide.
struct Looks {
    /// When those of each pace are due.
    next: [(Pace, Duration, Instant); 2],
}

impl Looks {
    fn new() -> Looks {
        let now = Instant::now();
        Looks { next: [(Pace::Soon, SOON, now), (Pace::Later, LATER, now)] }
    }

    /// Returns whether something was armed.
    fn take_if_due(&mut self, inner: &Inner) -> bool {
        let mut armed = false;
        for (pace, every, next) in &mut self.next {
            if Instant::now() >= *next && inner.look_again(*pace) > 0 {
                *next = Instant::now() + *every;
                armed = true;
            }
        }
        armed
    }
}

/// Samples between passes: a few grains are armed, so that a change is noticed long before a pass
/// is due.
struct Samples {
    every: Duration,
    next: Instant,
    turn: usize,
    /// How many grains of a region at the most.
    most: usize,
}

/// A part of the time that passes may take, which samples may.
const SAMPLES_PART: u32 = 10;

impl Samples {
    fn new(every: Duration) -> Samples {
        Samples { every, next: Instant::now() + every, turn: 0, most: 1 }
    }

    /// As often as a pass may be made at the most, where passes have become rarer. What turns out to
    /// take long is done less.
    fn take_if_due(&mut self, inner: &Inner) -> bool {
        let are_passes_rare = || inner.shortest_period() > self.every * 2;
        if Instant::now() < self.next || !are_passes_rare() {
            return false;
        }
        self.turn += 1;
        inner.sample(self.turn, self.most);
        let began = clock::own_run_time();
        let armed = inner.look(Pace::Soon) > 0;
        let took = clock::own_run_time().saturating_sub(began);
        let rest = took.saturating_mul(SAMPLES_PART * REST);
        self.most =
            if rest < self.every { self.most.saturating_mul(4) } else { self.most / 2 }.max(1);
        self.next = Instant::now() + self.every.max(rest);
        armed
    }
}

/// What came of looking whether a pass is due.
struct Looked {
    /// Until a pass can be due.
    rest: Duration,
    has_passed: bool,
}

/// Makes a pass if there is time for one and it is due for some thread.
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
            let pass = inner.pass_over(bytes, scanner);
            run_times.rest_after(scanner.thread, pass.took, inner.settings.period_max);
            Looked { rest: period, has_passed: true }
        }
    }
}

/// Whether pages moved.
enum Moved {
    Nothing,
    Some,
    /// The thread is to end.
    Stopped,
}

/// Moves what is to move, at no more than the bandwidth.
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

/// Waits for this time, or until half of a batch is to move: what a call takes in any case it takes for
/// few pages too. Returns whether the thread is to go on.
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
    /// The run time from which on its periods count.
    stamp: Duration,
    /// How long it had run when it was looked at last.
    ran: Duration,
}

/// What is to be done next for the threads of the program.
enum Next {
    /// A pass for a thread with this period.
    Due { scanner: Scanner, period: Duration },
    /// Nothing for so long: no thread runs for longer than time passes.
    None { rest: Duration },
}

impl RunTimes {
    /// Finds the thread of the program that has run for longest beyond its period. This thread and
    /// the monitor are percid's. As published, the first period of a thread is the scan delay.
    fn next(&mut self, inner: &Inner) -> Next {
        let (me, monitor) = (process::thread_id(), inner.monitor_thread());
        let mut threads = process::thread_ids();
        threads.sort_unstable();
        let others = (threads.len() as u32).saturating_sub(1);
        self.threads.retain(|thread, _| threads.binary_search(thread).is_ok());
        threads.retain(|&thread| thread != me && thread != monitor);
        // A thread that does not exist yet has its first period before it.
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
        // Its next period begins now: missed passes are not made up for.
        if let Some(run_time) = self.threads.get_mut(&thread) {
            run_time.stamp += period + beyond;
        }
        // The kernel does not say another thread's memory policy. Threads inherit theirs, as this
        // one did.
        let balances = nodes::own_policy().is_none_or(|mode| mode.is_default() || mode.balances());
        Next::Due { scanner: Scanner { thread, balances, threads: others }, period }
    }

    /// As published, a thread makes no other pass until it has run for many times what its last one
    /// took; but no longer than the longest period.
    fn rest_after(&mut self, thread: u32, took: Duration, longest: Duration) {
        if let Some(run_time) = self.threads.get_mut(&thread) {
            run_time.stamp += took.saturating_mul(REST - 1).min(longest);
        }
    }

    /// Notes how long a thread has run. Returns how long beyond its stamp.
    fn note(&mut self, thread: u32, ran: Duration) -> Duration {
        let new = RunTime { stamp: Duration::ZERO, ran };
        let run_time = self.threads.entry(thread).or_insert(new);
        // Less than before: the number belongs to another thread now.
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
