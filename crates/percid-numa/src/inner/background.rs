//! The thread that makes passes and moves pages.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use percid_rules::scan::Scanner;

use crate::inner::{Inner, REST};
use crate::lock::lock;
use crate::sys::{clock, memory, nodes, process, signals};

/// The longest time between two checks whether a pass is due: the shortest period by default.
const TICK: Duration = Duration::from_millis(100);

/// The thread, running until this is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits for this time. Returns whether the thread is to go on.
    fn pause(&self, time: Duration) -> bool {
        let asked = lock(&self.asked);
        let waited = self.changed.wait_timeout_while(asked, time, |asked| !*asked);
        let (asked, _) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
        !*asked
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
        *lock(&self.stop.asked) = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn run(inner: &Inner, stop: &Stop) {
    let tick = TICK.min(inner.settings.period_min).max(Duration::from_millis(1));
    let mut run_times = RunTimes::default();
    let mut next_look = Instant::now();
    while stop.pause(tick) {
        if Instant::now() >= next_look {
            next_look = Instant::now() + look(inner, &mut run_times);
        }
        if !move_all(inner, stop) {
            return;
        }
    }
}

/// Makes a pass if there is time for one and it is due for some thread. Returns how long to rest.
fn look(inner: &Inner, run_times: &mut RunTimes) -> Duration {
    let Some(bytes) = inner.affordable() else { return Duration::ZERO };
    let began = clock::own_run_time();
    let next = run_times.next(inner.settings.scan_delay, inner.period(), inner.monitor_thread());
    let took = clock::own_run_time().saturating_sub(began);
    inner.add_scan_time(took);
    // With thousands of threads choosing one takes milliseconds.
    let rest = took.saturating_mul(REST);
    rest.max(next.map_or(Duration::ZERO, |next| inner.pause_after(&inner.pass_over(bytes, next))))
}

/// Moves what is to move, at no more than the bandwidth. Returns whether to go on.
fn move_all(inner: &Inner, stop: &Stop) -> bool {
    loop {
        let began = Instant::now();
        let batch = inner.move_batch();
        if batch.moved + batch.failed == 0 && !batch.more {
            return true;
        }
        let bytes = batch.moved * memory::page_size() as u64;
        let due = Duration::from_secs_f64(bytes as f64 / inner.settings.bandwidth as f64);
        if !stop.pause(due.saturating_sub(began.elapsed())) {
            return false;
        }
        if !batch.more {
            return true;
        }
    }
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

impl RunTimes {
    /// Returns the thread of the program that has run for longest beyond its period, if any has.
    /// This thread and the monitor are percid's.
    fn next(&mut self, delay: Duration, period: Duration, monitor: u32) -> Option<Scanner> {
        let me = process::thread_id();
        let mut threads = process::thread_ids();
        threads.sort_unstable();
        self.threads.retain(|thread, _| threads.binary_search(thread).is_ok());
        let mut due: Option<(Duration, u32)> = None;
        for &thread in threads.iter().filter(|&&thread| thread != me && thread != monitor) {
            let Some(ran) = clock::run_time(thread) else { continue };
            if let Some(beyond) = self.note(thread, ran, delay).checked_sub(period) {
                due = due.max(Some((beyond, thread)));
            }
        }
        let (beyond, thread) = due?;
        // Its next period begins now: missed passes are not made up for.
        if let Some(run_time) = self.threads.get_mut(&thread) {
            run_time.stamp += period + beyond;
        }
        let threads = (threads.len() as u32).saturating_sub(1);
        // The kernel does not say another thread's memory policy. Threads inherit theirs, as this
        // one did.
        let balances = nodes::own_policy().is_none_or(|mode| mode.is_default() || mode.balances());
        Some(Scanner { thread, balances, threads })
    }

    /// Notes how long a thread has run. Returns how long beyond its stamp.
    fn note(&mut self, thread: u32, ran: Duration, delay: Duration) -> Duration {
        let new = RunTime { stamp: delay, ran };
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
        assert_eq!(run_times.note(7, 5 * second, second), 4 * second);
        run_times.threads.get_mut(&7).expect("noted").stamp += 4 * second;
        assert_eq!(run_times.note(7, 6 * second, second), second);
        assert_eq!(run_times.note(7, 3 * second, second), 2 * second, "another thread");
    }
}
