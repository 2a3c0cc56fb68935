//! Recording by perf events.
//!
//! An event that counts nothing is attached to the target on every CPU, for the sake of the records
//! that the kernel writes beside counting: of switches, of threads that begin and end, of names.
//!
//! If a single process is recorded, the kernel does not report what ran before and after its
//! threads. So that the events of a CPU fit together, this is taken to be the idle thread.

mod counting;
mod event;
mod records;
mod ring;

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

pub(super) use self::counting::Counting;
use self::records::Records;
use self::ring::Ring;
use super::buffers::Buffers;
use super::clock::now;
use super::stream::Stream;
use super::{cpus, snapshot};
use crate::event::{Cpu, Tid};
use crate::record::options::{Extra, Options};

/// Prepares a recording of a process, or of everything; the error contains what is missing.
pub(super) fn open(options: &Options, process: Option<Tid>) -> Result<Perf, String> {
    let threads = process.map(snapshot::threads);
    let size = options.kernel_buffer_kib as usize * 1024;
    let mut perf = Perf {
        rings: Vec::new(),
        others: Vec::new(),
        records: Records::new(process.is_none()),
        extra: options.extra,
    };
    for cpu in cpus::online() {
        match &threads {
            None => perf.attach(cpu, None, size)?,
            Some(threads) => {
                threads.iter().try_for_each(|&thread| perf.attach(cpu, Some(thread), size))?;
            }
        }
    }
    match perf.rings.is_empty() {
        true => Err("the process has ended".to_owned()),
        false => Ok(perf),
    }
}

/// A recording.
pub(super) struct Perf {
    /// A ring for each CPU.
    rings: Vec<(Cpu, Ring)>,
    /// The events of further threads, which use the rings of the first.
    others: Vec<OwnedFd>,
    records: Records,
    extra: Extra,
}

impl Perf {
    /// Attaches to a thread, or to all, on a CPU. A thread that has ended is skipped.
    fn attach(&mut self, cpu: Cpu, thread: Option<Tid>, size: usize) -> Result<(), String> {
        let Some(event) = event::open(cpu, thread)? else { return Ok(()) };
        match self.rings.last().filter(|(of, _)| *of == cpu) {
            Some((_, ring)) => {
                event::share(&event, ring.event())?;
                self.others.push(event);
            }
            None => {
                let ring = Ring::new(event, size).map_err(|error| event::missing_memory(&error))?;
                self.rings.push((cpu, ring));
            }
        }
        Ok(())
    }

    fn events(&self) -> impl Iterator<Item = RawFd> {
        let rings = self.rings.iter().map(|(_, ring)| ring.event().as_raw_fd());
        rings.chain(self.others.iter().map(AsRawFd::as_raw_fd))
    }
}

impl Buffers for Perf {
    fn begin(&mut self) -> Result<(), String> {
        self.events().try_for_each(event::enable)
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.rings.iter().map(|(_, ring)| ring.event().as_raw_fd()).collect()
    }

    fn drain(&mut self, stream: &mut Stream) -> Result<u64, String> {
        let until = now();
        let records = &mut self.records;
        for (cpu, ring) in &mut self.rings {
            ring.drain(|record| records.take(record, *cpu, stream))?;
        }
        records.tell(until, stream)?;
        Ok(until)
    }

    fn end(&mut self, stream: &mut Stream) -> Result<(), String> {
        self.events().try_for_each(event::disable)?;
        self.drain(stream)?;
        self.records.tell(u64::MAX, stream)?;
        // The kernel writes of a loss into the ring when there is room again, and that may never
        // be.
        stream.lost = stream.lost.max(self.events().map(event::lost).sum());
        Ok(())
    }

    fn without(&self) -> Vec<&'static str> {
        let Extra { ids, ticks, wakeups, affinity, numa } = self.extra;
        let asked = [
            (true, "migrations"),
            (wakeups, "wakeups"),
            (ids, "concurrency IDs"),
            (ticks, "timer ticks"),
            (affinity, "changes of affinity"),
            (numa, "the NUMA scan (tracefs has it)"),
        ];
        asked.into_iter().filter(|(asked, _)| *asked).map(|(_, what)| what).collect()
    }
}
