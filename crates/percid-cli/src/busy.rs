//! Detects that other processes used the CPUs during a measurement, so that its times are noise.
//!
//! The kernel reports the current number of threads that run or wait for a CPU (`/proc/loadavg`).
//! The measuring thread reads it between two batches: a separate thread would disturb the
//! measurement. The averages in the same file, and `/proc/pressure/cpu`, are too coarse for one
//! second. They also count the threads of this process, which are subtracted here. `/proc/stat` has
//! the same number, but takes milliseconds to read on machines with many CPUs.
//!
//! That number is the whole machine's. A process that is confined to a few CPUs, as in a container,
//! may share just those. So the time for which the measuring thread itself waited for a CPU also
//! counts (`/proc/thread-self/schedstat`).

use std::fmt;
use std::fs;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::bench::has_realtime_priority;

/// Time between two samples, each of which takes a few microseconds.
const PAUSE: Duration = Duration::from_millis(10);

/// Environment variable: `ignore` measures everything to the end and shows all times.
const VARIABLE: &str = "PERCID_BUSY";

/// Returns `true` if a busy machine must be treated as an idle one.
pub(crate) fn is_ignored() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "ignore")
}

/// The load of other processes on the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Noise {
    /// Runnable threads of other processes: the median of the samples.
    pub(crate) runnable_threads: u32,
    pub(crate) cpus: u32,
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Noise { runnable_threads, cpus } = self;
        write!(f, "the machine was busy: {runnable_threads} runnable threads on {cpus} CPUs")
    }
}

/// Samples of the load while something is measured.
#[derive(Debug)]
pub(crate) struct Watch {
    began: Instant,
    next: Instant,
    /// The measuring thread, and the time that it had waited before.
    thread: ThreadId,
    waited_before: Duration,
    seen: Seen,
}

/// Results of all samples.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Runnable threads of other processes, one value per sample.
    others: Vec<u32>,
    /// Number of CPUs of the machine.
    cpus: u32,
    /// Time that the measuring thread waited for a CPU.
    waited: Duration,
    elapsed: Duration,
    /// `true` if threads of normal priority wait for this one.
    realtime: bool,
}

impl Watch {
    /// Starts with a sample, so that there is one however short the measurement is.
    pub(crate) fn start() -> Watch {
        let here = percid::machine::read();
        let plugged_in = here.cpus.iter().filter(|cpu| cpu.core.is_some()).count();
        let cpus = plugged_in.max(here.allowed.len()) as u32;
        let began = Instant::now();
        let mut watch = Watch {
            began,
            next: began,
            thread: thread::current().id(),
            waited_before: waited().unwrap_or_default(),
            seen: Seen { cpus, realtime: has_realtime_priority(), ..Seen::default() },
        };
        watch.look(0);
        watch
    }

    /// Takes a sample, unless one was taken a moment ago. `mine` is the number of processes started
    /// by this one that never sleep.
    pub(crate) fn look(&mut self, mine: u32) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + PAUSE;
        self.seen.elapsed = now - self.began;
        if let Some(others) = others(self.seen.cpus) {
            self.seen.others.push(others.saturating_sub(mine));
        }
        // With several threads that take turns, each has waited for its own turn.
        if thread::current().id() == self.thread {
            let waited = waited().unwrap_or_default();
            self.seen.waited = waited.saturating_sub(self.waited_before);
        }
    }

    /// Returns `Some` if times that were measured since the start are noise.
    pub(crate) fn noise(&self) -> Option<Noise> {
        self.seen.noise()
    }
}

impl Seen {
    /// Returns the noise, if times are noise. One reason is that other processes could have used
    /// every CPU in more than half of the samples, so that no thread had one to itself. The other
    /// is that the measuring thread waited for a CPU for more than half of the time. Less load is
    /// no noise: batches during which a thread was preempted are repeated, and the fastest counts.
    fn noise(&self) -> Option<Noise> {
        let full = self.others.iter().filter(|&&others| others >= self.cpus).count();
        let crowded = 2 * full > self.others.len() && !self.realtime;
        let starved = 2 * self.waited > self.elapsed;
        let noise = || Noise { runnable_threads: self.median(), cpus: self.cpus };
        (crowded || starved).then(noise)
    }

    fn median(&self) -> u32 {
        let mut others = self.others.clone();
        others.sort_unstable();
        others.get(others.len() / 2).copied().unwrap_or(0)
    }
}

/// Returns the runnable threads of other processes; `None` if the kernel does not report them.
fn others(cpus: u32) -> Option<u32> {
    let running = running()?;
    if running <= cpus {
        // Too few to matter: this process's own threads need not be counted.
        return Some(running.saturating_sub(1));
    }
    // Count the own threads before the sum is read: one that falls asleep in between is then not
    // counted as another process's.
    let own = own();
    Some(self::running()?.saturating_sub(own))
}

fn running() -> Option<u32> {
    running_in(&fs::read_to_string("/proc/loadavg").ok()?)
}

/// Parses the fourth word: runnable threads, a slash, and all threads.
fn running_in(loadavg: &str) -> Option<u32> {
    loadavg.split_ascii_whitespace().nth(3)?.split('/').next()?.parse().ok()
}

/// Returns the number of this process's own runnable threads.
fn own() -> u32 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    stats.filter(|stat| is_runnable(stat)).count() as u32
}

/// Returns `true` if the state after the name, which is in parentheses, is R.
fn is_runnable(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, behind)| behind.trim_start().starts_with('R'))
}

/// Returns the time that this thread has waited for a CPU so far.
fn waited() -> Option<Duration> {
    waited_in(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Parses the second number, in nanoseconds.
fn waited_in(schedstat: &str) -> Option<Duration> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(others: &[u32]) -> Seen {
        let elapsed = Duration::from_secs(10);
        Seen { others: others.to_vec(), cpus: 2, elapsed, ..Seen::default() }
    }

    #[test]
    fn others_on_every_cpu_at_most_looks_are_noise() {
        for (others, noise) in [
            (&[][..], None),
            (&[0, 0, 0], None),
            // One thread uses half of the CPUs, all the time.
            (&[1, 1, 1], None),
            (&[2, 2, 0, 0], None),
            (&[2, 0, 0, 9, 0], None),
            (&[2, 2, 0], Some(2)),
            (&[4, 4, 4, 3, 4], Some(4)),
        ] {
            let found = seen(others).noise();
            let expected = noise.map(|runnable_threads| Noise { runnable_threads, cpus: 2 });
            assert_eq!(found, expected, "{others:?}");
        }
    }

    #[test]
    fn a_real_time_thread_is_not_disturbed_by_those_that_wait_for_it() {
        let realtime = Seen { realtime: true, ..seen(&[4, 4, 4]) };
        assert_eq!(realtime.noise(), None);
    }

    #[test]
    fn waiting_for_most_of_the_time_is_noise_whoever_was_seen() {
        let waited = |seconds| Seen { waited: Duration::from_secs(seconds), ..seen(&[1, 0, 1]) };
        assert_eq!(waited(5).noise(), None);
        assert_eq!(waited(6).noise(), Some(Noise { runnable_threads: 1, cpus: 2 }));
    }

    #[test]
    fn noise_is_said_in_one_line() {
        let noise = Noise { runnable_threads: 4, cpus: 2 };
        assert_eq!(noise.to_string(), "the machine was busy: 4 runnable threads on 2 CPUs");
    }

    #[test]
    fn what_the_kernel_writes_is_read() {
        assert_eq!(running_in("5.16 3.02 1.82 8/138 3889\n"), Some(8));
        assert_eq!(running_in("5.16 3.02"), None);
        assert_eq!(waited_in("267699 61552 1\n"), Some(Duration::from_nanos(61_552)));
        assert_eq!(waited_in("267699"), None);
        assert!(is_runnable("7 (a) S) R 1 7") && !is_runnable("7 (R) S 1 7"));
    }

    /// Threads of this process are not counted as others', however many there are.
    #[cfg(target_os = "linux")]
    #[test]
    fn own_threads_are_counted() {
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        std::hint::spin_loop()
                    }
                });
            }
            // Other tests have threads too, and new threads are not visible at once.
            while own() < 4 {
                thread::yield_now();
            }
            over.store(true, Relaxed);
        });
    }
}
