//! The consumer: empties the rings and writes what it finds.

use std::io::{self, Write};

use percid::ring::Consumer;

use crate::event::Event;
use crate::nesting::Nesting;
use crate::order::Order;
use crate::recorder::Clock;
use crate::trace_file::TraceFile;

/// The consumer of the rings.
#[derive(Debug)]
pub(crate) struct Collector<'r, W> {
    consumer: Consumer<'r>,
    clock: Clock,
    order: Order,
    nesting: Nesting,
    file: TraceFile<W>,
    found: Found,
}

/// The counts of the collector.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    /// Events that the ring delivered.
    pub(crate) delivered: u64,
    /// Records that this program did not write.
    pub(crate) unreadable: u64,
    /// Ends that were left out, since their begin was lost.
    pub(crate) lost_begins: u64,
    /// Ends that were added, since they were lost.
    pub(crate) lost_ends: u64,
}

impl<'r, W: Write> Collector<'r, W> {
    pub(crate) fn new(consumer: Consumer<'r>, clock: Clock, file: TraceFile<W>) -> Self {
        let (order, nesting, found) = (Order::new(), Nesting::new(), Found::default());
        Collector { consumer, clock, order, nesting, file, found }
    }

    /// Empties the rings and writes what is in order.
    pub(crate) fn poll(&mut self) -> io::Result<()> {
        let began = self.clock.now();
        self.take();
        let mut events = Vec::new();
        self.order.complete(began, &mut events);
        self.write(&events)
    }

    /// Writes the rest. No thread records any more.
    pub(crate) fn finish(mut self) -> io::Result<(TraceFile<W>, Found)> {
        self.take();
        let mut events = Vec::new();
        self.order.finish(&mut events);
        self.write(&events)?;
        let mut ends = Vec::new();
        self.nesting.finish(&mut ends);
        ends.iter().try_for_each(|end| self.file.write(end))?;
        let Nesting { lost_begins, lost_ends, .. } = self.nesting;
        Ok((self.file, Found { lost_begins, lost_ends, ..self.found }))
    }

    fn take(&mut self) {
        let (order, found) = (&mut self.order, &mut self.found);
        self.consumer.poll(|record| match Event::decode(record.bytes) {
            Some(event) => {
                found.delivered += 1;
                order.add(event);
            }
            None => found.unreadable += 1,
        });
    }

    fn write(&mut self, events: &[Event]) -> io::Result<()> {
        let mut nested = Vec::new();
        events.iter().for_each(|event| self.nesting.add(*event, &mut nested));
        nested.iter().try_for_each(|event| self.file.write(event))
    }
}
