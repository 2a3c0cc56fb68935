//! Concurrency IDs that a replay handed out, as tracks.

use std::collections::{BTreeMap, HashMap};

use super::messages::{
    DebugAnnotation, ProcessDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use super::packets::packet;
use crate::error::Error;
use crate::event::{Cpu, Shares, Tid, What};
use crate::trace::Trace;

/// The IDs that one policy handed out on a recorded schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdTracks {
    /// Name of the policy.
    pub policy: String,
    /// The times at which threads held IDs.
    pub spans: Vec<IdSpan>,
    /// The IDs that were taken from another CPU.
    pub steals: Vec<Steal>,
}

/// A thread holds an ID of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdSpan {
    /// The process.
    pub process: Tid,
    /// Its ID.
    pub id: u32,
    /// The CPU on which the thread runs.
    pub cpu: Cpu,
    /// The thread.
    pub thread: Tid,
    /// Start time, in nanoseconds on the trace's clock.
    pub from_ns: u64,
    /// End time.
    pub to_ns: u64,
}

/// A CPU takes an ID that another CPU used last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steal {
    /// Time, in nanoseconds on the trace's clock.
    pub time_ns: u64,
    /// The process.
    pub process: Tid,
    /// Its ID.
    pub id: u32,
    /// The CPU that used it last.
    pub from_cpu: Cpu,
    /// The CPU that takes it.
    pub to_cpu: Cpu,
}

/// The names of threads, and which of them are processes, since when.
pub(super) struct ProcessNames {
    names: HashMap<Tid, String>,
    processes: BTreeMap<Tid, u64>,
}

impl ProcessNames {
    /// Returns the names in a trace and in the tracks beside it: the last name of each process.
    pub(super) fn from_trace(trace: &Trace, tracks: &[IdTracks]) -> ProcessNames {
        let mut names = HashMap::new();
        let mut processes: BTreeMap<Tid, u64> = BTreeMap::new();
        for event in &trace.events {
            match event.what {
                What::Name { thread, name } => {
                    names.insert(thread, name);
                }
                What::Member { process, .. } => {
                    processes.entry(process).or_insert(event.time);
                }
                // It begins with its creation. If Perfetto hears of it before, it takes it for
                // another one.
                What::Fork { child, shares: Shares::Nothing | Shares::Memory, .. } => {
                    processes.insert(child, event.time.saturating_add(1));
                }
                _ => {}
            }
        }
        for span in tracks.iter().flat_map(|tracks| &tracks.spans) {
            processes.entry(span.process).or_insert(span.from_ns);
        }
        let spell = |(thread, name)| (thread, trace.texts.get(name).to_string());
        ProcessNames { names: names.into_iter().map(spell).collect(), processes }
    }

    /// The tracks of the processes.
    pub(super) fn processes(&self) -> impl Iterator<Item = TracePacket> {
        self.processes.iter().map(|(&process, &since)| {
            let process_name = self.names.get(&process).cloned();
            let descriptor = TrackDescriptor {
                uuid: Some(track(process)),
                process: Some(ProcessDescriptor { pid: Some(process as i32), process_name }),
                child_ordering: Some(BY_RANK),
                ..TrackDescriptor::default()
            };
            let (timestamp, track_descriptor) = (Some(since), Some(descriptor));
            TracePacket { timestamp, track_descriptor, ..packet() }
        })
    }

    fn called(&self, thread: Tid) -> String {
        match self.names.get(&thread) {
            Some(name) => format!("{name} ({thread})"),
            None => format!("{thread}"),
        }
    }
}

const BY_RANK: u32 = 3;
const SLICE_BEGIN: u32 = 1;
const SLICE_END: u32 = 2;

/// The number of a process's track. Those of its IDs follow from other bits.
fn track(process: Tid) -> u64 {
    1 << 62 | u64::from(process)
}

/// A number for everything that needs one: tracks first, then arrows, apart from those of other
/// replays.
struct TrackNumbers {
    next: u64,
}

impl TrackNumbers {
    fn of_replay(number: usize) -> TrackNumbers {
        TrackNumbers { next: (number as u64 + 1) << 40 }
    }

    fn take(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Writes the tracks of one replay, which has this number among all that are written.
pub(super) fn write(
    tracks: &IdTracks,
    number: usize,
    names: &ProcessNames,
    out: &mut impl FnMut(TracePacket) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut numbers = TrackNumbers::of_replay(number);
    let steals = by_id(&tracks.steals, |steal| (steal.process, steal.id, steal.time_ns));
    for ((process, id), spans) in by_id(&tracks.spans, |span| (span.process, span.id, span.from_ns))
    {
        let uuid = numbers.take();
        let name = format!("ID {id} of {}: {}", names.called(process), tracks.policy);
        let descriptor = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid: Some(track(process)),
            sibling_order_rank: Some(id as i32),
            ..TrackDescriptor::default()
        };
        out(TracePacket { track_descriptor: Some(descriptor), ..packet() })?;
        let steals = steals.get(&(process, id)).map_or(&[][..], |steals| steals);
        let arrows = arrows(&spans, steals, &mut numbers);
        for (span, arrows) in spans.iter().zip(arrows) {
            out(event(span.from_ns, begin(span, uuid, names, arrows)))?;
            out(event(span.to_ns, end(uuid)))?;
        }
    }
    Ok(())
}

/// Things by the ID they tell of, each ID's by time; `key` is process, ID and time.
fn by_id<T>(all: &[T], key: impl Fn(&T) -> (Tid, u32, u64)) -> BTreeMap<(Tid, u32), Vec<&T>> {
    let mut sorted: Vec<&T> = all.iter().collect();
    sorted.sort_by_key(|one| key(one));
    let mut by_id: BTreeMap<(Tid, u32), Vec<&T>> = BTreeMap::new();
    for one in sorted {
        let (process, id, _) = key(one);
        by_id.entry((process, id)).or_default().push(one);
    }
    by_id
}

/// The arrows at a slice.
#[derive(Default)]
struct Arrows {
    away: Vec<u64>,
    here: Vec<u64>,
}

/// The arrows of each span of one ID: from the last one that began before a steal to the first one
/// after it.
fn arrows(spans: &[&IdSpan], steals: &[&Steal], numbers: &mut TrackNumbers) -> Vec<Arrows> {
    let mut arrows: Vec<Arrows> = spans.iter().map(|_| Arrows::default()).collect();
    for steal in steals {
        let after = spans.partition_point(|span| span.from_ns < steal.time_ns);
        let taken = spans.get(after).is_some_and(|span| span.cpu == steal.to_cpu);
        let before = after.checked_sub(1).filter(|_| taken);
        if let Some(before) = before.filter(|&before| spans[before].cpu == steal.from_cpu) {
            let flow = numbers.take();
            arrows[before].away.push(flow);
            arrows[after].here.push(flow);
        }
    }
    arrows
}

fn begin(span: &IdSpan, uuid: u64, names: &ProcessNames, arrows: Arrows) -> TrackEvent {
    let cpu = DebugAnnotation { name: Some("cpu".into()), uint_value: Some(span.cpu.into()) };
    TrackEvent {
        r#type: Some(SLICE_BEGIN),
        track_uuid: Some(uuid),
        categories: vec!["percid".into()],
        name: Some(names.called(span.thread)),
        flow_ids: arrows.away,
        terminating_flow_ids: arrows.here,
        debug_annotations: vec![cpu],
    }
}

fn end(uuid: u64) -> TrackEvent {
    TrackEvent { r#type: Some(SLICE_END), track_uuid: Some(uuid), ..TrackEvent::default() }
}

fn event(time: u64, event: TrackEvent) -> TracePacket {
    TracePacket { timestamp: Some(time), track_event: Some(event), ..packet() }
}
