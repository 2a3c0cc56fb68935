//! Makes one trace of the records of all buffers.
//!
//! Several buffers may have recorded what happened on the same CPU. Their records are merged by time, and
//! what several of them hold is taken once.

use std::collections::BTreeMap;
use std::slice::Chunks;

use super::buffer::{Buffer, DatContent};
use crate::collector::Collector;
use crate::error::Error;
use crate::event::Cpu;
use crate::formats::Formats;
use crate::read::repeats::Repeats;
use crate::sub_buffers::{Record, SubBuffer};
use crate::trace::{Origin, Trace};

/// The bytes of a short record; a hint for how many there are.
const SHORT_RECORD: usize = 64;

/// The trace that a file holds.
pub(super) fn trace(recording: DatContent<'_>) -> Result<Trace, Error> {
    let DatContent { formats, options, buffers } = &recording;
    let clock = buffers.first().map(|first| first.clock);
    if let Some(other) = buffers.iter().find(|buffer| Some(buffer.clock) != clock) {
        let what = format!(
            "the instance {:.32?} has times of another clock: expected was one clock for all",
            other.name
        );
        return Err(Error::in_file(what));
    }
    let all = || buffers.iter().flat_map(|buffer| &buffer.cpus);
    let bytes: usize = all().map(|(_, data)| data.len()).sum();
    let mut collector = Collector::with_capacity(bytes / SHORT_RECORD);
    let mut streams = BTreeMap::<Cpu, Vec<Stream<'_>>>::new();
    for buffer in buffers {
        for (cpu, data) in &buffer.cpus {
            streams.entry(*cpu).or_default().push(Stream::new(buffer, *cpu, data));
        }
    }
    let mut lost = 0u64;
    for (cpu, streams) in &mut streams {
        merge(*cpu, streams, formats, &mut collector)?;
        lost = streams.iter().map(|stream| stream.lost).fold(lost, u64::saturating_add);
    }
    let mut origin = Origin {
        release: options.release.clone(),
        clock: options.clock.clone(),
        possible_cpus: options.cpus,
        // Both report the same losses: the first where they happened, the second all of them.
        lost: lost.max(options.lost),
        ..Origin::default()
    };
    formats.tell_left_out(&mut origin);
    Ok(collector.finish(origin))
}

/// Hands what happened on a CPU to a collector.
fn merge<'a>(
    cpu: Cpu,
    streams: &mut [Stream<'a>],
    formats: &Formats,
    collector: &mut Collector,
) -> Result<(), Error> {
    for stream in &mut *streams {
        stream.advance()?;
    }
    let mut repeats = Repeats::new();
    loop {
        let due = streams.iter().enumerate().filter_map(|(nr, stream)| Some((stream.next?, nr)));
        let Some((record, nr)) = due.min_by_key(|(record, nr)| (record.time, *nr)) else {
            return Ok(());
        };
        let decoded = formats.decode(record.data).map_err(|what| streams[nr].damaged(what))?;
        streams[nr].advance()?;
        let Some((current, tracepoint)) = decoded else { continue };
        // There is one CPU here.
        if streams.len() == 1 || !repeats.is_one(nr, 0, current, tracepoint) {
            collector.tracepoint(record.time, cpu, current, tracepoint);
        }
    }
}

/// The records of a buffer and a CPU.
struct Stream<'a> {
    buffer: &'a Buffer<'a>,
    cpu: Cpu,
    pages: Chunks<'a, u8>,
    /// The number of sub-buffers that were begun.
    begun: u64,
    page: Option<SubBuffer<'a>>,
    /// The record that is due, with its time and not the stamp.
    next: Option<Record<'a>>,
    lost: u64,
}

impl<'a> Stream<'a> {
    fn new(buffer: &'a Buffer<'a>, cpu: Cpu, data: &'a [u8]) -> Stream<'a> {
        let pages = data.chunks(buffer.layout.size);
        Stream { buffer, cpu, pages, begun: 0, page: None, next: None, lost: 0 }
    }

    /// Goes on to the next record.
    fn advance(&mut self) -> Result<(), Error> {
        loop {
            if let Some(page) = &mut self.page {
                let next = page.next().map_err(|error| self.damaged(error))?;
                if let Some(Record { time, data }) = next {
                    self.next = Some(Record { time: self.buffer.clock.time(time), data });
                    return Ok(());
                }
            }
            let Some(bytes) = self.pages.next() else {
                self.next = None;
                return Ok(());
            };
            self.begun += 1;
            let page = SubBuffer::new(bytes, &self.buffer.layout);
            let page = page.map_err(|error| self.damaged(error))?;
            self.lost = self.lost.saturating_add(page.lost);
            self.page = Some(page);
        }
    }

    /// Returns the error for the current sub-buffer.
    #[cold]
    fn damaged(&self, what: impl std::fmt::Display) -> Error {
        let Stream { cpu, begun, .. } = self;
        let of = match self.buffer.name.as_str() {
            "" => String::new(),
            name => format!("instance {name:.32?}, "),
        };
        Error::in_file(format!("{of}CPU {cpu}, sub-buffer {begun}: {what}"))
    }
}
