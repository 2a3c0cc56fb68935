//! Teams of worker threads that exist for the whole measurement and run one batch at a time
//! together.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::cpu;
use super::loops::Measured;
use super::thread_usage::ThreadUsage;
use percid_command::exit::Failure;

/// Placement of a team's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// This number of threads, placed by the scheduler.
    Anywhere(usize),
    /// One thread pinned to each of these CPUs.
    OneOn(Vec<u32>),
}

impl Placement {
    /// Returns a placement with a thread for each of these CPUs, pinned to it if threads can be
    /// pinned.
    pub(crate) fn one_on_each(cpus: &[u32]) -> Placement {
        match cpu::CAN_PIN {
            true => Placement::OneOn(cpus.to_vec()),
            false => Placement::Anywhere(cpus.len()),
        }
    }

    /// Returns one thread, one on each of two CPUs, and eight that the scheduler places.
    pub(crate) fn one_two_and_eight(cpus: &[u32]) -> Vec<Placement> {
        let two = &cpus[..cpus.len().min(2)];
        let mut placements =
            vec![Placement::Anywhere(1), Placement::one_on_each(two), Placement::Anywhere(8)];
        placements.dedup();
        placements
    }

    pub(crate) fn threads(&self) -> usize {
        match self {
            Placement::Anywhere(threads) => *threads,
            Placement::OneOn(cpus) => cpus.len(),
        }
    }

    pub(crate) fn pinned(&self) -> bool {
        matches!(self, Placement::OneOn(_))
    }

    fn cpu(&self, worker: usize) -> Option<u32> {
        match self {
            Placement::Anywhere(_) => None,
            Placement::OneOn(cpus) => Some(cpus[worker]),
        }
    }
}

/// Result of one batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// From the first worker's start to the last one's end.
    pub(crate) wall: Duration,
    /// `true` if the kernel preempted a worker during the batch.
    pub(crate) preempted: bool,
}

/// Threads waiting for batches. Dropping the team ends them.
pub(crate) struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    batches: u64,
}

struct Shared {
    state: Mutex<State>,
    /// Notifies the workers of a new order.
    ordered: Condvar,
    /// Notifies the team's owner that the last report is in.
    reported: Condvar,
    /// Arrivals of workers at the start of a batch, summed over all batches.
    at_start: AtomicU64,
    threads: usize,
    /// `true` if every thread can have a CPU, so that all can wait for each other at the start.
    start_together: bool,
}

struct State {
    order: Order,
    reports: Vec<Report>,
    pinning: Result<(), io::Error>,
}

#[derive(Clone, Copy)]
enum Order {
    /// Start and wait.
    Gather,
    /// Run batch `number` (from 1).
    Run {
        number: u64,
        measured: &'static dyn Measured,
        times: u64,
    },
    Leave,
}

struct Report {
    start: Instant,
    end: Instant,
    preempted: bool,
}

impl Report {
    fn of(work: impl FnOnce()) -> Self {
        let before = ThreadUsage::now();
        let start = Instant::now();
        work();
        let end = Instant::now();
        Report { start, end, preempted: ThreadUsage::now().preemptions != before.preemptions }
    }
}

impl Team {
    /// Starts the threads and waits until each is on its CPU.
    pub(crate) fn gather(placement: &Placement) -> Result<Self, Failure> {
        let threads = placement.threads();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                order: Order::Gather,
                reports: Vec::with_capacity(threads),
                pinning: Ok(()),
            }),
            ordered: Condvar::new(),
            reported: Condvar::new(),
            at_start: AtomicU64::new(0),
            threads,
            start_together: placement.pinned() || threads == 1,
        });
        let mut team = Team { shared, workers: Vec::with_capacity(threads), batches: 0 };
        for worker in 0..threads {
            let handle = team.spawn(worker, placement.cpu(worker));
            team.workers
                .push(handle.map_err(|cause| Failure::new("cannot start a thread", cause))?);
        }
        team.first_reports()?;
        Ok(team)
    }

    fn spawn(&self, worker: usize, cpu: Option<u32>) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let name = "percid-ops".to_owned();
        thread::Builder::new().name(name).spawn(move || shared.work(worker, cpu))
    }

    fn first_reports(&self) -> Result<(), Failure> {
        let mut state = self.shared.wait_for_reports();
        state.reports.clear();
        let pinning = std::mem::replace(&mut state.pinning, Ok(()));
        pinning.map_err(|cause| Failure::new("cannot pin a thread to an allowed CPU", cause))
    }

    /// Executes the operation `times` times in every worker.
    pub(crate) fn run(&mut self, measured: &'static dyn Measured, times: u64) -> Batch {
        self.batches += 1;
        self.shared.give(Order::Run { number: self.batches, measured, times });
        let mut state = self.shared.wait_for_reports();
        let batch = Batch::of(&state.reports);
        state.reports.clear();
        batch
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.give(Order::Leave);
        for worker in self.workers.drain(..) {
            // A worker's panic was already printed by the worker.
            let _ = worker.join();
        }
    }
}

impl Batch {
    fn of(reports: &[Report]) -> Self {
        let start = reports.iter().map(|report| report.start).min();
        let end = reports.iter().map(|report| report.end).max();
        Batch {
            wall: start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start),
            preempted: reports.iter().any(|report| report.preempted),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn give(&self, order: Order) {
        self.lock().order = order;
        self.ordered.notify_all();
    }

    fn wait_for_reports(&self) -> MutexGuard<'_, State> {
        let missing = |state: &mut State| state.reports.len() < self.threads;
        self.reported
            .wait_while(self.lock(), missing)
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn report(&self, report: Report) {
        let mut state = self.lock();
        state.reports.push(report);
        if state.reports.len() == self.threads {
            self.reported.notify_one();
        }
    }

    /// Runs a worker until the team ends.
    fn work(&self, worker: usize, cpu: Option<u32>) {
        if let Some(Err(cause)) = cpu.map(cpu::pin_this_thread) {
            self.lock().pinning = Err(cause);
        }
        let now = Instant::now();
        self.report(Report { start: now, end: now, preempted: false });
        let mut last = 0;
        while let Some((number, measured, times)) = self.next_order(last) {
            last = number;
            if self.start_together {
                self.wait_for_the_others(number);
            }
            self.report(Report::of(|| measured.repeat(times, worker)));
        }
    }

    fn next_order(&self, last: u64) -> Option<(u64, &'static dyn Measured, u64)> {
        let old = |state: &mut State| match state.order {
            Order::Gather => true,
            Order::Run { number, .. } => number == last,
            Order::Leave => false,
        };
        let state = self
            .ordered
            .wait_while(self.lock(), old)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        match state.order {
            Order::Run { number, measured, times } => Some((number, measured, times)),
            Order::Gather | Order::Leave => None,
        }
    }

    /// Waits for the other workers by spinning, because a sleeping thread would start late by its
    /// wake-up latency. If the others do not arrive for long, they lack a CPU: this thread yields
    /// its own.
    fn wait_for_the_others(&self, number: u64) {
        const SPINS: u32 = 10_000;
        let all = number * self.threads as u64;
        self.at_start.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        while self.at_start.load(Ordering::Acquire) < all {
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}
