//! The threads of the intermittent benchmark: meet, then take turns.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::baton::Baton;
use super::index::{Index, Turn};
use super::meter::Meter;
use super::plan::Plan;
use super::tally::Tally;
use crate::bench::cpu;
use crate::bench::thread_usage::ThreadUsage;
use crate::deadline::Deadline;
use percid_command::burst::{AREA, burst};

/// State shared by all threads.
pub(crate) struct Series {
    threads: usize,
    bursts: u64,
    warmup: u64,
    delay: Duration,
    indices: Vec<Index>,
    meter: Arc<Meter>,
    /// Arrivals of threads at meetings, summed over the meetings.
    met: AtomicUsize,
}

impl Series {
    pub(crate) fn new(plan: &Plan, delay: Duration, meter: &Arc<Meter>) -> Self {
        Series {
            threads: plan.selection.cpus.len(),
            bursts: plan.bursts,
            warmup: plan.warmup,
            delay,
            indices: plan.indices.clone(),
            meter: Arc::clone(meter),
            met: AtomicUsize::new(0),
        }
    }

    /// Waits without sleeping until every thread has come to meeting `number` (from 1).
    fn meet(&self, number: usize) {
        self.met.fetch_add(1, Ordering::AcqRel);
        while self.met.load(Ordering::Acquire) < number * self.threads {
            // Lets a thread run that could not pin itself yet.
            thread::yield_now();
        }
    }
}

/// One thread of the ring.
pub(crate) struct Worker {
    number: usize,
    cpu: u32,
    series: Arc<Series>,
    receive: Receiver<Baton>,
    give: Sender<Baton>,
    tallies: Vec<Tally>,
    /// Memory for the burst that counts for no index.
    scratch: Box<[u8; AREA]>,
}

impl Worker {
    pub(crate) fn new(
        number: usize,
        cpu: u32,
        series: Arc<Series>,
        receive: Receiver<Baton>,
        give: Sender<Baton>,
    ) -> Self {
        let tallies = vec![Tally::default(); series.indices.len()];
        Worker { number, cpu, series, receive, give, tallies, scratch: Box::new([0; AREA]) }
    }

    /// Takes all turns and returns the tallies of each index.
    ///
    /// A thread that stops early drops its end of the ring, which stops the next thread too.
    pub(crate) fn run(mut self) -> io::Result<Vec<Tally>> {
        let pinned = cpu::pin_this_thread(self.cpu);
        self.hold_ids_together();
        pinned?;
        for number in 0..self.series.bursts {
            let Ok(mut baton) = self.receive.recv() else {
                break;
            };
            if self.series.meter.is_over() {
                break;
            }
            self.turn(&mut baton, number);
            self.series.meter.tick();
            self.series.meter.sleep(self.series.delay);
            // The very last turn has no receiver.
            let _ = self.give.send(baton);
        }
        Ok(self.tallies)
    }

    /// Assigns an ID to each CPU: all threads run at once here.
    fn hold_ids_together(&self) {
        self.series.meet(1);
        for index in &self.series.indices {
            let _ = index.select(self.turn_number(0));
        }
        self.series.meet(2);
    }

    fn turn_number(&self, burst: u64) -> Turn {
        Turn { thread: self.number as u32, threads: self.series.threads as u32, burst }
    }

    /// Runs one burst with each index, beginning with another index each turn. In the first turn
    /// each burst follows a warm-up.
    fn turn(&mut self, baton: &mut Baton, number: u64) {
        if self.series.indices.len() > 1 {
            burst(&mut self.scratch);
        }
        let turn = self.turn_number(number);
        let indices = self.series.indices.len();
        for step in 0..indices {
            let at = (self.number + number as usize + step) % indices;
            if number == 0 {
                self.warm_up(baton, at, turn);
            }
            if self.series.meter.is_over() {
                break;
            }
            self.timed_burst(baton, at, turn);
        }
    }

    fn warm_up(&mut self, baton: &mut Baton, at: usize, turn: Turn) {
        // Recording the index may cause a page fault that is not one of the area's.
        if let Some(area) = self.select(baton, at, turn) {
            let before = ThreadUsage::now();
            burst(area);
            let faults = ThreadUsage::now().minor_faults - before.minor_faults;
            self.tallies[at].faults_first = Some(faults);
        }
        let end = Deadline::new(Duration::ZERO, 1);
        for _ in 1..self.series.warmup {
            if self.series.meter.is_warm(&end) {
                break;
            }
            self.burst(baton, at, turn);
        }
    }

    /// Runs one timed burst. An interrupted hot burst is repeated, because it is hot again. A burst
    /// after a pause is not: a repetition would be hot.
    fn timed_burst(&mut self, baton: &mut Baton, at: usize, turn: Turn) {
        let is_first = turn.burst == 0;
        while self.was_preempted(baton, at, turn, is_first) {
            self.tallies[at].preempted += 1;
            if !is_first || self.series.meter.is_over() {
                break;
            }
        }
    }

    /// Times one burst, unless the thread was preempted during it. Returns `true` if it was.
    fn was_preempted(&mut self, baton: &mut Baton, at: usize, turn: Turn, is_first: bool) -> bool {
        let Some(area) = self.select(baton, at, turn) else {
            return false;
        };
        let before = ThreadUsage::now();
        let start = Instant::now();
        burst(area);
        let took = start.elapsed();
        let after = ThreadUsage::now();
        let was_preempted = after.preemptions != before.preemptions;
        if !was_preempted {
            let faults = after.minor_faults - before.minor_faults;
            self.tallies[at].time(is_first, took, faults);
        }
        was_preempted
    }

    fn burst(&mut self, baton: &mut Baton, at: usize, turn: Turn) {
        if let Some(area) = self.select(baton, at, turn) {
            burst(area);
        }
    }

    /// Returns the area that the index currently selects.
    fn select<'baton>(
        &mut self,
        baton: &'baton mut Baton,
        at: usize,
        turn: Turn,
    ) -> Option<&'baton mut [u8; AREA]> {
        let index = self.series.indices[at].select(turn)?;
        self.tallies[at].saw(index);
        baton.pools[at].area(index)
    }
}
