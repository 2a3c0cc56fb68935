//! The messages of Perfetto's traces, with the fields that concern us. Names and numbers are those
//! of `protos/perfetto/trace` in Perfetto. Names of threads are bytes here: the kernel does not
//! promise UTF-8.

use bytes::Bytes;
use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub(super) ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub(super) process_tree: Option<ProcessTree>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(message, optional, tag = "9")]
    pub(super) process_stats: Option<ProcessStats>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "34")]
    pub(super) ftrace_stats: Option<FtraceStats>,
    #[prost(message, optional, tag = "45")]
    pub(super) system_info: Option<SystemInfo>,
    #[prost(bytes = "bytes", optional, tag = "50")]
    pub(super) compressed_packets: Option<Bytes>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
    #[prost(bytes = "bytes", optional, tag = "133")]
    pub(super) zstd_compressed_packets: Option<Bytes>,
}

/// Tracepoints of one CPU. Each [`FtraceEvent`] stays encoded until its turn: decoded ones are many
/// times larger.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(super) event: Vec<Bytes>,
    #[prost(bool, optional, tag = "3")]
    pub(super) lost_events: Option<bool>,
    #[prost(message, optional, tag = "4")]
    pub(super) compact_sched: Option<CompactSched>,
    #[prost(uint32, optional, tag = "5")]
    pub(super) ftrace_clock: Option<u32>,
}

/// The switches and wakings of a bundle, field by field. Times are distances from the one before.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CompactSched {
    #[prost(uint64, repeated, tag = "1")]
    pub(super) switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub(super) switch_next_pid: Vec<i32>,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub(super) intern_table: Vec<Bytes>,
    #[prost(uint32, repeated, tag = "6")]
    pub(super) switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub(super) waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub(super) waking_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "9")]
    pub(super) waking_target_cpu: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    pub(super) waking_comm_index: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    /// The thread that ran.
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(oneof = "Hit", tags = "4, 17, 20, 114, 235, 236, 237, 238, 239, 327, 491")]
    pub(super) event: Option<Hit>,
}

/// The tracepoint of an event.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Hit {
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    #[prost(message, tag = "17")]
    SchedWakeup(SchedWakeup),
    #[prost(message, tag = "20")]
    SchedWaking(SchedWakeup),
    #[prost(message, tag = "114")]
    SchedWakeupNew(SchedWakeup),
    #[prost(message, tag = "235")]
    TaskNewtask(TaskNewtask),
    #[prost(message, tag = "236")]
    TaskRename(TaskRename),
    #[prost(message, tag = "237")]
    SchedProcessExec(SchedProcessExec),
    #[prost(message, tag = "238")]
    SchedProcessExit(SchedProcessExit),
    #[prost(message, tag = "239")]
    SchedProcessFork(SchedProcessFork),
    #[prost(message, tag = "327")]
    Generic(GenericFtraceEvent),
    #[prost(message, tag = "491")]
    SchedMigrateTask(SchedMigrateTask),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedSwitch {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) prev_comm: Option<Bytes>,
    #[prost(int32, optional, tag = "2")]
    pub(super) prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub(super) prev_state: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub(super) next_comm: Option<Bytes>,
    #[prost(int32, optional, tag = "6")]
    pub(super) next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub(super) next_prio: Option<i32>,
}

/// `SchedWaking`, `SchedWakeup` and `SchedWakeupNew`, which have the same fields.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedWakeup {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) comm: Option<Bytes>,
    #[prost(int32, optional, tag = "2")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) target_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedMigrateTask {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) comm: Option<Bytes>,
    #[prost(int32, optional, tag = "2")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(super) orig_cpu: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) dest_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedProcessFork {
    #[prost(int32, optional, tag = "2")]
    pub(super) parent_pid: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) child_comm: Option<Bytes>,
    #[prost(int32, optional, tag = "4")]
    pub(super) child_pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedProcessExec {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) filename: Option<Bytes>,
    #[prost(int32, optional, tag = "2")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) old_pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedProcessExit {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) comm: Option<Bytes>,
    #[prost(int32, optional, tag = "2")]
    pub(super) pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskNewtask {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) comm: Option<Bytes>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) clone_flags: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskRename {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) newcomm: Option<Bytes>,
}

/// A tracepoint for which Perfetto has no separate message.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GenericFtraceEvent {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) event_name: Option<Bytes>,
    #[prost(message, repeated, tag = "2")]
    pub(super) field: Vec<GenericField>,
}

/// A field of it; one of the values is there.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GenericField {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) name: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) str_value: Option<Bytes>,
    #[prost(int64, optional, tag = "4")]
    pub(super) int_value: Option<i64>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) uint_value: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub(super) processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub(super) threads: Vec<Thread>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) collection_end_timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Process {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub(super) cmdline: Vec<Bytes>,
    #[prost(bool, optional, tag = "9")]
    pub(super) cmdline_is_comm: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub(super) tid: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) name: Option<Bytes>,
    #[prost(int32, optional, tag = "3")]
    pub(super) tgid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessStats {
    #[prost(message, repeated, tag = "1")]
    pub(super) processes: Vec<ProcessOfStats>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) collection_end_timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessOfStats {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(message, repeated, tag = "11")]
    pub(super) threads: Vec<ThreadOfStats>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadOfStats {
    #[prost(int32, optional, tag = "1")]
    pub(super) tid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceStats {
    /// 1 at the start of the trace, 2 at its end.
    #[prost(uint32, optional, tag = "1")]
    pub(super) phase: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) cpu_stats: Vec<FtraceCpuStats>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceCpuStats {
    #[prost(uint64, optional, tag = "1")]
    pub(super) cpu: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) overrun: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(super) commit_overrun: Option<u64>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) dropped_events: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) utsname: Option<Utsname>,
    #[prost(uint32, optional, tag = "8")]
    pub(super) num_cpus: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Utsname {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) sysname: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) release: Option<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    /// 3: by the ranks of the children.
    #[prost(uint32, optional, tag = "11")]
    pub(super) child_ordering: Option<u32>,
    #[prost(int32, optional, tag = "12")]
    pub(super) sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(super) process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    /// 1 where a slice begins, 2 where it ends.
    #[prost(uint32, optional, tag = "9")]
    pub(super) r#type: Option<u32>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub(super) categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(super) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(super) terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    pub(super) uint_value: Option<u64>,
    #[prost(string, optional, tag = "10")]
    pub(super) name: Option<String>,
}
