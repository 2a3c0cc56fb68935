//! The thread that balances by itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::core::{Core, Pass};
use super::pages::lock;
use super::walk::Scanner;
use crate::sys::{clock, memory, process, signals};

/// How often it looks whether a pass is due, at the most: the shortest period there is by default.
const TICK: Duration = Duration::from_millis(100);

/// The thread, running until this is dropped.
#[derive(Debug)]
pub(super) struct Background {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits for so long; answers whether the thread is to go on.
    fn pause(&self, time: Duration) -> bool {
        let asked = lock(&self.asked);
        let waited = self.changed.wait_timeout_while(asked, time, |asked| !*asked);
        let (asked, _) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
        !*asked
    }
}

impl Background {
    pub(super) fn start(core: Arc<Core>) -> std::io::Result<Background> {
        let stop = Arc::new(Stop::default());
        let of_thread = Arc::clone(&stop);
        let body = move || {
            // The program's handlers run in the program's threads.
            let _blocked = signals::block_all();
            run(&core, &of_thread);
        };
        let thread = std::thread::Builder::new().name("percid-numa".to_owned()).spawn(body)?;
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

fn run(core: &Core, stop: &Stop) {
    let tick = TICK.min(core.settings.period_min).max(Duration::from_millis(1));
    let mut turns = Turns::default();
    let mut next_pass = Instant::now();
    while stop.pause(tick) {
        if Instant::now() >= next_pass {
            if let Some(pass) = make_pass(core, &mut turns) {
                next_pass = Instant::now() + core.pause_after(&pass);
            }
        }
        if !move_all(core, stop) {
            return;
        }
    }
}

/// Makes a pass if time may be spent on one and it is some thread's turn.
fn make_pass(core: &Core, turns: &mut Turns) -> Option<Pass> {
    let bytes = core.affordable()?;
    let scanner = turns.next(core.settings.scan_delay, core.period())?;
    Some(core.pass_over(bytes, scanner))
}

/// Moves what is to move, at no more than the bandwidth. Answers whether to go on.
fn move_all(core: &Core, stop: &Stop) -> bool {
    loop {
        let began = Instant::now();
        let batch = core.move_batch();
        if batch.moved + batch.failed == 0 && !batch.more {
            return true;
        }
        let bytes = batch.moved * memory::page_size() as u64;
        let due = Duration::from_secs_f64(bytes as f64 / core.settings.bandwidth as f64);
        if !stop.pause(due.saturating_sub(began.elapsed())) {
            return false;
        }
        if !batch.more {
            return true;
        }
    }
}

/// Whose turn it is to be scanned for: threads, by how long they have run.
#[derive(Debug, Default)]
struct Turns {
    /// For each thread the run time from which on its periods count.
    stamps: BTreeMap<u32, Duration>,
}

impl Turns {
    /// The thread that has run for longest beyond its period, if any has.
    fn next(&mut self, delay: Duration, period: Duration) -> Option<Scanner> {
        let me = process::thread_id();
        let threads = process::thread_ids();
        self.stamps.retain(|thread, _| threads.contains(thread));
        let mut due: Option<(Duration, u32)> = None;
        for &thread in threads.iter().filter(|&&thread| thread != me) {
            let Some(ran) = clock::run_time(thread) else { continue };
            let stamp = *self.stamps.entry(thread).or_insert(delay);
            if let Some(beyond) = ran.checked_sub(stamp + period) {
                due = due.max(Some((beyond, thread)));
            }
        }
        let (beyond, thread) = due?;
        // It counts from now on: passes that nobody could make are not made up for.
        if let Some(stamp) = self.stamps.get_mut(&thread) {
            *stamp += period + beyond;
        }
        let threads = (threads.len() as u32).saturating_sub(1);
        // Another thread's own memory policy cannot be asked for.
        Some(Scanner { thread, balances: true, threads })
    }
}
