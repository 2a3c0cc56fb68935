//! The positions of the parts of a record that the kernel includes by the event's attributes.

use tracepoint_decode::{
    PerfEventAttrOptions as Options, PerfEventAttrReadFormat as ReadFormat,
    PerfEventAttrSampleType as SampleType, PerfEventAttrSize, PerfEventAttrType as EventType,
};

use crate::error::Error;
use crate::event::{Cpu, Tid};
use crate::formats::ByteOrder;
use crate::read::bytes::Bytes;
use crate::trace::Sampling;

/// The attributes of an event on which its records depend.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes {
    kind: EventType,
    /// The number of a tracepoint.
    config: u64,
    /// The sampling period, or the approximate number of records a second.
    period: u64,
    sample_type: SampleType,
    read_format: ReadFormat,
    options: Options,
    /// The clock of its times, by the system's number; the kernel's own if none was requested.
    pub(super) clock: Option<u32>,
}

impl Attributes {
    /// Reads a `perf_event_attr` of any version.
    pub(super) fn read(mut attr: Bytes<'_>) -> Result<Attributes, Error> {
        const WHAT: &str = "the attributes of an event";
        let all = attr;
        let kind = EventType(attr.u32(WHAT)?);
        let size = attr.u32(WHAT)?;
        let config = attr.u64(WHAT)?;
        let period = attr.u64(WHAT)?;
        let sample_type = SampleType(attr.u64(WHAT)?);
        let read_format = ReadFormat(attr.u64(WHAT)?);
        // They are bit fields, of which compilers for big-endian machines put the first into the highest bit.
        let options = Options(match attr.order() {
            ByteOrder::Little => attr.u64(WHAT)?,
            ByteOrder::Big => attr.u64(WHAT)?.reverse_bits(),
        });
        let has_clock = size >= PerfEventAttrSize::Ver3.0 && options.has_flag(Options::UseClockId);
        let clock = has_clock.then(|| clock(all)).transpose()?;
        Ok(Attributes { kind, config, period, sample_type, read_format, options, clock })
    }

    /// The number of the tracepoint, if it is one.
    pub(super) fn tracepoint(&self) -> Option<u64> {
        (self.kind == EventType::Tracepoint).then_some(self.config)
    }

    /// Returns how its hits are sampled, if not all are recorded.
    pub(super) fn sampling(&self) -> Option<Sampling> {
        match (self.options.has_flag(Options::Freq), self.period) {
            (true, hz) => Some(Sampling::Frequency(hz)),
            (false, 0 | 1) => None,
            (false, nth) => Some(Sampling::Period(nth)),
        }
    }

    /// The kernel's numbers for what it counts.
    pub(super) fn counter(&self) -> (u32, u64) {
        (self.kind.0, self.config)
    }

    /// Returns `true` if the event belongs to a command, and so to its threads.
    pub(super) fn begins_with_command(&self) -> bool {
        self.options.has_flag(Options::EnableOnExec)
    }

    /// Returns `true` if threads that are created later have the event too.
    pub(super) fn is_inherited(&self) -> bool {
        self.options.has_flag(Options::Inherit)
    }
}

fn clock(mut attr: Bytes<'_>) -> Result<u32, Error> {
    attr.take(92, "the attributes of an event")?;
    attr.u32("the clock of an event")
}

/// The size of all parts but those of variable size.
const PART: usize = 8;

/// The parts before those of variable size, in the kernel's order.
const FIXED: [SampleType; 9] = [
    SampleType::Identifier,
    SampleType::IP,
    SampleType::Tid,
    SampleType::Time,
    SampleType::Addr,
    SampleType::Id,
    SampleType::StreamId,
    SampleType::Cpu,
    SampleType::Period,
];

/// The parts at the end of a record that is no sample, in the kernel's order.
const TAIL: [SampleType; 6] = [
    SampleType::Tid,
    SampleType::Time,
    SampleType::Id,
    SampleType::StreamId,
    SampleType::Cpu,
    SampleType::Identifier,
];

/// Positions of the parts in the records of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    is_tracepoint: bool,
    sample_type: SampleType,
    read_format: ReadFormat,
    id: Option<usize>,
    tid: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
    /// Offset at which the parts of variable size begin.
    variable: usize,
    tail: Option<Tail>,
}

/// Offsets from the end of a record that is no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tail {
    id: Option<usize>,
    tid: Option<usize>,
    time: Option<usize>,
    cpu: Option<usize>,
}

/// The contents of a tracepoint's sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample<'a> {
    /// The thread that ran, as perf numbers it.
    pub(super) tid: Option<Tid>,
    pub(super) cpu: Option<Cpu>,
    /// The kernel's trace record; there is none if the event is no tracepoint.
    pub(super) raw: Option<&'a [u8]>,
    /// The counters of its group; `None` if it has none, or if their values have no numbers.
    pub(super) group: Option<Group<'a>>,
}

/// The counters of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group<'a> {
    /// Time for which they were requested, and time for which they counted; 0 if it is not
    /// recorded.
    pub(super) asked: u64,
    pub(super) running: u64,
    /// The value of each counter, with the counter's number.
    values: &'a [u8],
    /// Bytes of each.
    each: usize,
    order: ByteOrder,
}

impl Group<'_> {
    /// The numbers of the events, and what they show.
    pub(super) fn values(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.values.chunks_exact(self.each).filter_map(|value| {
            Some((u64_at(value, PART, self.order)?, u64_at(value, 0, self.order)?))
        })
    }
}

/// The thread and CPU of a record that is no sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordOrigin {
    pub(super) tid: Tid,
    pub(super) cpu: Cpu,
}

impl Layout {
    pub(super) fn new(attributes: Attributes) -> Layout {
        let kind = attributes.sample_type;
        let before =
            |parts: &[SampleType]| parts.iter().filter(|&&part| kind.has_flag(part)).count() * PART;
        let from_start = |part| {
            let index = FIXED.iter().position(|&fixed| fixed == part)?;
            kind.has_flag(part).then(|| before(&FIXED[..index]))
        };
        let from_end = |part| {
            let index = TAIL.iter().position(|&tail| tail == part)?;
            kind.has_flag(part).then(|| before(&TAIL[index..]))
        };
        let tail = Tail {
            id: from_end(SampleType::Identifier).or(from_end(SampleType::Id)),
            tid: from_end(SampleType::Tid),
            time: from_end(SampleType::Time),
            cpu: from_end(SampleType::Cpu),
        };
        Layout {
            is_tracepoint: attributes.kind == EventType::Tracepoint,
            sample_type: kind,
            read_format: attributes.read_format,
            id: from_start(SampleType::Identifier).or(from_start(SampleType::Id)),
            // The thread is the second number of its part, after its process.
            tid: from_start(SampleType::Tid).map(|part| part + 4),
            time: from_start(SampleType::Time),
            cpu: from_start(SampleType::Cpu),
            variable: before(&FIXED),
            tail: attributes.options.has_flag(Options::SampleIdAll).then_some(tail),
        }
    }

    /// Returns `true` if records of events with these two layouts have the event's number at the
    /// same place.
    pub(super) fn identifies_like(&self, other: &Layout) -> bool {
        let id = |layout: &Layout| (layout.id, layout.tail.and_then(|tail| tail.id));
        self.id.is_some() && id(self) == id(other)
    }

    /// The number of the event to which a sample belongs.
    pub(super) fn sample_id(&self, body: &[u8], order: ByteOrder) -> Option<u64> {
        u64_at(body, self.id?, order)
    }

    /// The number of the event to which a record that is no sample belongs.
    pub(super) fn tail_id(&self, body: &[u8], order: ByteOrder) -> Option<u64> {
        u64_at(body, body.len().checked_sub(self.tail?.id?)?, order)
    }

    /// Returns the time of a sample.
    pub(super) fn sample_time(&self, body: &[u8], order: ByteOrder) -> Option<u64> {
        u64_at(body, self.time?, order)
    }

    /// Returns the time of a record that is no sample.
    pub(super) fn tail_time(&self, body: &[u8], order: ByteOrder) -> Option<u64> {
        u64_at(body, body.len().checked_sub(self.tail?.time?)?, order)
    }

    /// Returns where a record that is no sample was made.
    pub(super) fn tail_place(&self, body: &[u8], order: ByteOrder) -> Option<RecordOrigin> {
        let tail = self.tail?;
        let from_end = |offset: usize| u32_at(body, body.len().checked_sub(offset)?, order);
        // The thread is the second number of its part, after its process.
        Some(RecordOrigin { tid: from_end(tail.tid? - 4)?, cpu: from_end(tail.cpu?)? })
    }

    /// Reads a sample, if it is as long as it should be.
    #[inline]
    pub(super) fn sample<'a>(&self, body: &'a [u8], order: ByteOrder) -> Option<Sample<'a>> {
        let cpu = match self.cpu {
            Some(offset) => Some(u32_at(body, offset, order)?),
            None => None,
        };
        let tid = self.tid.and_then(|offset| u32_at(body, offset, order));
        let kind = self.sample_type;
        if !self.is_tracepoint || !kind.has_flag(SampleType::Raw) {
            return Some(Sample { tid, cpu, raw: None, group: None });
        }
        let (mut at, mut group) = (self.variable, None);
        if kind.has_flag(SampleType::Read) {
            let end = self.after_read(body, at, order)?;
            group = self.group(body.get(at..end)?, order);
            at = end;
        }
        if kind.has_flag(SampleType::Callchain) {
            at = after_list(body, at, PART, PART, order)?;
        }
        let len = u32_at(body, at, order)? as usize;
        let raw = body.get(at + 4..)?.get(..len)?;
        Some(Sample { tid, cpu, raw: Some(raw), group })
    }

    /// Returns the counters of a group, if there is a group whose counters have numbers.
    fn group<'a>(&self, read: &'a [u8], order: ByteOrder) -> Option<Group<'a>> {
        let format = self.read_format;
        if !format.has_flag(ReadFormat::Group) || !format.has_flag(ReadFormat::Id) {
            return None;
        }
        let mut at = PART;
        let mut time = |flag| {
            let has = format.has_flag(flag);
            let time = if has { u64_at(read, at, order)? } else { 0 };
            at += if has { PART } else { 0 };
            Some(time)
        };
        let asked = time(ReadFormat::TotalTimeEnabled)?;
        let running = time(ReadFormat::TotalTimeRunning)?;
        let (asked, running) = match [ReadFormat::TotalTimeEnabled, ReadFormat::TotalTimeRunning] {
            both if both.iter().all(|&flag| format.has_flag(flag)) => (asked, running),
            _ => (0, 0),
        };
        let lost = usize::from(format.has_flag(ReadFormat::Lost));
        Some(Group { asked, running, values: read.get(at..)?, each: (2 + lost) * PART, order })
    }

    /// Returns the end of the counter values: one, or a list if the events are a group.
    fn after_read(&self, body: &[u8], at: usize, order: ByteOrder) -> Option<usize> {
        let format = self.read_format;
        let parts = |flags: &[ReadFormat]| {
            (1 + flags.iter().filter(|&&flag| format.has_flag(flag)).count()) * PART
        };
        let times = [ReadFormat::TotalTimeEnabled, ReadFormat::TotalTimeRunning];
        let each = [ReadFormat::Id, ReadFormat::Lost];
        match format.has_flag(ReadFormat::Group) {
            true => after_list(body, at, parts(&times), parts(&each), order),
            false => Some(at + parts(&times) + parts(&each) - PART),
        }
    }
}

/// Returns the end of a list that begins with its number of items.
fn after_list(body: &[u8], at: usize, head: usize, item: usize, order: ByteOrder) -> Option<usize> {
    let items = usize::try_from(u64_at(body, at, order)?).ok()?;
    items.checked_mul(item)?.checked_add(at + head).filter(|&end| end <= body.len())
}

fn u64_at(body: &[u8], offset: usize, order: ByteOrder) -> Option<u64> {
    body.get(offset..)?.first_chunk().map(|&bytes| order.u64(bytes))
}

fn u32_at(body: &[u8], offset: usize, order: ByteOrder) -> Option<u32> {
    body.get(offset..)?.first_chunk().map(|&bytes| order.u32(bytes))
}
