//! Tracepoints for which Perfetto has no message: they are written as names and values.

use bytes::Bytes;

use super::messages::{GenericField, GenericFtraceEvent};
use crate::collector::Tracepoint;
use crate::event::Tid;

/// The kernel's tracepoint of concurrency IDs.
const RSEQ_UPDATE: &str = "rseq_update";

/// Our own names for events that no tracepoint reports.
const TICK: &str = "percid_tick";
const AFFINITY: &str = "percid_affinity";
const MEMBER: &str = "percid_member";
const ORIGIN: &str = "percid_origin";

/// The content of such an event.
pub(super) enum GenericEvent {
    /// A tracepoint.
    Tracepoint(Tracepoint<'static>),
    /// The CPUs on which the current thread may run.
    Affinity(String),
    /// The process to which the current thread belongs.
    Member(Tid),
    /// The origin of the trace, in pairs of a key and a text.
    Origin(Vec<(String, String)>),
}

/// Reads the event; returns `None` if it is not one of ours.
pub(super) fn read(event: &GenericFtraceEvent) -> Option<GenericEvent> {
    let name = event.event_name.as_deref()?;
    match std::str::from_utf8(name).ok()? {
        RSEQ_UPDATE => {
            let (node_id, mm_cid) = (number(event, "node_id")?, number(event, "mm_cid")?);
            Some(GenericEvent::Tracepoint(Tracepoint::RseqUpdate { node_id, mm_cid }))
        }
        TICK => Some(GenericEvent::Tracepoint(Tracepoint::Tick)),
        AFFINITY => {
            let cpus = field(event, "cpus")?.str_value.as_deref()?;
            Some(GenericEvent::Affinity(String::from_utf8_lossy(cpus).into_owned()))
        }
        ORIGIN => Some(GenericEvent::Origin(event.field.iter().filter_map(pair).collect())),
        MEMBER => number(event, "process").map(GenericEvent::Member),
        _ => None,
    }
}

fn pair(field: &GenericField) -> Option<(String, String)> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    Some((field.name.as_ref().map(text)?, field.str_value.as_ref().map(text)?))
}

fn field<'a>(event: &'a GenericFtraceEvent, name: &str) -> Option<&'a GenericField> {
    event.field.iter().find(|field| field.name.as_deref() == Some(name.as_bytes()))
}

fn number(event: &GenericFtraceEvent, name: &str) -> Option<u32> {
    let field = field(event, name)?;
    let signed = field.int_value.map(|value| value as u64);
    field.uint_value.or(signed).map(|value| value as u32)
}

/// `rseq:rseq_update` on a CPU.
pub(super) fn rseq_update(cpu: u32, node: u32, id: u32) -> GenericFtraceEvent {
    let fields = [("cpu_id", cpu), ("node_id", node), ("mm_cid", id)];
    event(RSEQ_UPDATE, fields.map(|(name, value)| number_field(name, value)).to_vec())
}

/// The timer tick of a CPU.
pub(super) fn tick(cpu: u32) -> GenericFtraceEvent {
    event(TICK, vec![number_field("cpu_id", cpu)])
}

/// The CPUs on which the current thread may run.
pub(super) fn affinity(cpus: &str) -> GenericFtraceEvent {
    event(AFFINITY, vec![text_field("cpus", cpus)])
}

/// Returns the event with the origin of the trace.
pub(super) fn origin(pairs: &[(&'static str, String)]) -> GenericFtraceEvent {
    event(ORIGIN, pairs.iter().map(|(key, value)| text_field(key, value)).collect())
}

fn text_field(name: &'static str, value: &str) -> GenericField {
    GenericField {
        name: Some(Bytes::from_static(name.as_bytes())),
        str_value: Some(Bytes::copy_from_slice(value.as_bytes())),
        ..GenericField::default()
    }
}

/// The process to which the current thread belongs.
pub(super) fn member(process: Tid) -> GenericFtraceEvent {
    event(MEMBER, vec![number_field("process", process)])
}

fn number_field(name: &'static str, value: u32) -> GenericField {
    GenericField {
        name: Some(Bytes::from_static(name.as_bytes())),
        uint_value: Some(value.into()),
        ..GenericField::default()
    }
}

fn event(name: &'static str, field: Vec<GenericField>) -> GenericFtraceEvent {
    GenericFtraceEvent { event_name: Some(Bytes::from_static(name.as_bytes())), field }
}
