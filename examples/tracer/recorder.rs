//! The side of the traced threads: what it costs to be traced.
//!
//! An event is 32 bytes on the stack, a look at the clock, and [`Ring::append`]: no allocation, no
//! other CPU's cache line, and no locked instruction unless the source of IDs is the atomic one.

use std::cell::Cell;
use std::time::Instant;

use percid::Ring;

use crate::event::{Event, Name, Phase};

/// The clock of a trace. On Linux an [`Instant`] is a time of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Nanoseconds since the trace began.
    pub(crate) fn now(self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// Records what one thread does.
#[derive(Debug)]
pub(crate) struct Recorder<'r> {
    ring: &'r Ring,
    clock: Clock,
    thread: u16,
    /// Events recorded so far, whether or not the ring had room.
    recorded: Cell<u64>,
    depth: Cell<u8>,
}

impl<'r> Recorder<'r> {
    pub(crate) fn new(ring: &'r Ring, clock: Clock, thread: u16) -> Recorder<'r> {
        Recorder { ring, clock, thread, recorded: Cell::new(0), depth: Cell::new(0) }
    }

    /// Begins a span, which ends when it is dropped. Spans of a thread must end in the order in
    /// which variables are dropped, the youngest first.
    pub(crate) fn span(&self, name: Name, task: u32) -> Span<'_> {
        let begin = self.recorded.get();
        let depth = self.depth.get();
        self.record(Phase::Begin, name, task, depth, 0);
        self.depth.set(depth.saturating_add(1));
        Span { recorder: self, name, task, depth, begin }
    }

    /// Returns the number of events that were recorded so far.
    pub(crate) fn recorded(&self) -> u64 {
        self.recorded.get()
    }

    fn record(&self, phase: Phase, name: Name, task: u32, depth: u8, age: u32) {
        let number = self.recorded.get();
        self.recorded.set(number + 1);
        let (time, thread) = (self.clock.now(), self.thread);
        let event = Event { time, number, age, task, thread, depth, name, phase };
        // The ring counts what is lost.
        let _ = self.ring.append(&event.encode());
    }
}

/// A span that is going on.
#[derive(Debug)]
pub(crate) struct Span<'r> {
    recorder: &'r Recorder<'r>,
    name: Name,
    task: u32,
    depth: u8,
    begin: u64,
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        let Span { recorder, name, task, depth, begin } = *self;
        let age = (recorder.recorded.get() - begin) as u32;
        recorder.depth.set(depth);
        recorder.record(Phase::End, name, task, depth, age);
    }
}
