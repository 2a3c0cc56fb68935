//! The work of the probes: they use every structure of percid that has critical sections, and add
//! up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use percid::{Buckets, Counter, FloatCounter, Histogram, Local, Overflow, Ring, Source, Stack};

/// One of each.
pub(crate) struct Exercise {
    counter: Counter,
    histogram: Histogram,
    float: FloatCounter,
    buckets: Buckets,
    local: Local<u64>,
    stack: Stack<u64>,
    popped: Counter,
    ring: Ring,
    polled: AtomicU64,
}

const ITEMS: u32 = 16;
const BYTES: usize = 1024;

impl Exercise {
    /// Makes the structures with the source of the process.
    pub(crate) const fn new() -> Exercise {
        Exercise {
            counter: Counter::new(),
            histogram: Histogram::new(),
            float: FloatCounter::new(),
            buckets: Buckets::new(5),
            local: Local::new(|| 0),
            stack: Stack::new(ITEMS),
            popped: Counter::new(),
            ring: Ring::new(BYTES, Overflow::OverwriteOldest),
            polled: AtomicU64::new(0),
        }
    }

    /// Makes the structures with this source; `None` if it is not available.
    #[allow(dead_code, reason = "the library uses the source of the process")]
    pub(crate) fn with_source(source: Source) -> Option<Exercise> {
        let mut made = Exercise::new();
        made.counter = Counter::with_source(source).ok()?;
        made.histogram = Histogram::with_source(source).ok()?;
        made.float = FloatCounter::with_source(source).ok()?;
        made.buckets = Buckets::with_source(source, 5).ok()?;
        made.local = <Local<_>>::with_source(source, || 0).ok()?;
        made.stack = Stack::with_source(source, ITEMS).ok()?;
        made.ring = Ring::with_source(source, BYTES, Overflow::OverwriteOldest).ok()?;
        Some(made)
    }

    /// Uses each of them this many times.
    pub(crate) fn work(&self, times: u64) {
        for n in 0..times {
            self.counter.add(1);
            self.histogram.record(n);
            self.float.add(1.0);
            self.buckets.record(n as usize % 5, 1.0);
            self.local.with(|value| *value += 1);
            let popped = if self.stack.push(1).is_err() { Some(1) } else { None };
            // Every other time, so that parts run full and batches move.
            let popped = popped.or_else(|| if n % 2 == 0 { self.stack.pop() } else { None });
            self.popped.add(popped.unwrap_or(0) as i64);
            let _ = self.ring.append(&n.to_ne_bytes()[..n as usize % 9]);
        }
    }

    /// Returns the number of uses of each structure. Must be called when no thread uses them.
    ///
    /// # Errors
    ///
    /// Returns the number of each structure, if they differ.
    pub(crate) fn total(&self) -> Result<i64, String> {
        let counted = self.counter.sum();
        let recorded = self.histogram.snapshot().count() as i64;
        let added = self.float.sum() as i64;
        let mut counts = [0; 5];
        let tallied = self.buckets.read(&mut counts) as i64;
        let in_buckets = counts.iter().sum::<u64>() as i64;
        let mut lent = 0;
        self.local.for_each(|value| lent += *value as i64);
        self.stack.drain(|item| self.popped.add(item as i64));
        let pushed = self.popped.sum();
        if let Some(mut consumer) = self.ring.consumer() {
            self.polled.fetch_add(consumer.poll(|_| ()) as u64, Relaxed);
        }
        let appended = (self.polled.load(Relaxed) + self.ring.lost()) as i64;
        let all = [counted, recorded, added, tallied, in_buckets, lent, pushed, appended];
        if all == [counted; 8] { Ok(counted) } else { Err(format!("{all:?}")) }
    }
}
