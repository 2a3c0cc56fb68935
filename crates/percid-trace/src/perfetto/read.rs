//! The conversion of Perfetto's packets to a trace.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read};

use bytes::Bytes;
use flate2::read::ZlibDecoder;
use prost::Message;

use super::compact::{self, Compact};
use super::compressed::zstd_reader;
use super::generic;
use super::messages::*;
use super::other::OTHER;
use super::packets::{OURS, Packets};
use super::unknown;
use crate::collector::{Collector, Tracepoint};
use crate::error::Error;
use crate::event::{Cpu, Tid, UNKNOWN};
use crate::filtered;
use crate::kernel_states;
use crate::late;
use crate::origin_pairs::from_pairs;
use crate::trace::{Origin, Trace};

/// Maximum ratio of the length of packets to that of their compressed form. In real traces it is
/// three to ten.
const INFLATION: u64 = 64;

/// Reads a trace of Perfetto: scheduling events of ftrace, full or compact, and which thread
/// belongs to which process.
///
/// Reads packet by packet, so that it requires memory for the events and one packet. An error
/// contains the position in the file, in bytes, at which the faulty packet begins.
pub fn read(from: impl Read) -> Result<Trace, Error> {
    let mut packets = Packets::new(BufReader::with_capacity(1 << 16, from));
    let mut reading = Reading::default();
    while let Some((at, packet)) = packets.next()? {
        reading.packet(packet, true).map_err(|what| Error::at_byte(at, what))?;
    }
    if reading.packets == 0 {
        return Err(Error::at_byte(0, "an empty file is no trace of Perfetto"));
    }
    reading.finish()
}

/// The description of a fault in a packet.
type Fault = String;

#[derive(Default)]
struct Reading {
    collector: Collector,
    /// The thread that runs on each CPU, which compact events leave out.
    running: HashMap<Cpu, Tid>,
    /// The process of each thread for which a packet has reported it.
    processes: HashMap<Tid, Tid>,
    origin: Origin,
    /// The origin of the trace that our own export was made of, as pairs.
    exported: Option<Vec<(String, String)>>,
    /// Number of events lost before the trace began: the kernel's counters do not start there.
    lost_before: u64,
    /// Number of packets, including those in compressed packets.
    packets: u64,
    /// `true` if the packet is one of our own export, whose states are not the kernel's numbers.
    is_ours: bool,
    has_kernels_states: bool,
    /// Number of packets that carry other packets in an unknown field, by field.
    unknown: BTreeMap<u64, u64>,
}

impl Reading {
    fn packet(&mut self, packet: Bytes, may_be_compressed: bool) -> Result<(), Fault> {
        self.packets += 1;
        if let Some(field) = unknown::carrier(&packet) {
            *self.unknown.entry(field).or_default() += 1;
        }
        let packet = TracePacket::decode(packet).map_err(|error| error.to_string())?;
        let (zlib, zstd) = (packet.compressed_packets, packet.zstd_compressed_packets);
        if !may_be_compressed && (zlib.is_some() || zstd.is_some()) {
            return Err("compressed packets in compressed packets".into());
        }
        if let Some(compressed) = zlib {
            self.compressed(ZlibDecoder::new(&compressed[..]), compressed.len())?;
        }
        if let Some(compressed) = zstd {
            let plain = zstd_reader(&compressed);
            let plain = plain.map_err(|error| format!("in compressed packets: {error}"))?;
            self.compressed(plain, compressed.len())?;
        }
        self.is_ours = packet.trusted_packet_sequence_id == Some(OURS);
        if let Some(bundle) = packet.ftrace_events {
            self.bundle(bundle)?;
        }
        // Our own export contains the same as events.
        let tree = packet.process_tree.filter(|_| packet.trusted_packet_sequence_id != Some(OURS));
        if let Some(tree) = tree {
            let time = packet.timestamp.or(tree.collection_end_timestamp);
            self.tree(time.unwrap_or(0), tree);
        }
        if let Some(stats) = packet.process_stats {
            let time = packet.timestamp.or(stats.collection_end_timestamp);
            self.stats(time.unwrap_or(0), stats);
        }
        if let Some(stats) = packet.ftrace_stats {
            self.losses(&stats);
        }
        if let Some(info) = packet.system_info {
            self.system(info);
        }
        Ok(())
    }

    /// Reads the packets in a packet, which were compressed to this number of bytes.
    fn compressed(&mut self, plain: impl Read, compressed: usize) -> Result<(), Fault> {
        let most = compressed as u64 * INFLATION;
        // One byte more than is permitted, to distinguish the end from the limit.
        let inflated = BufReader::new(plain).take(most + 1);
        let mut packets = Packets::new(inflated);
        loop {
            let next = packets.next().map_err(|error| format!("in compressed packets: {error}"));
            if packets.read() > most {
                return Err(format!("compressed packets are more than {INFLATION} times as long"));
            }
            let Some((_, packet)) = next? else { return Ok(()) };
            self.packet(packet, false).map_err(|what| format!("in compressed packets: {what}"))?;
        }
    }

    fn bundle(&mut self, bundle: FtraceEventBundle) -> Result<(), Fault> {
        let cpu = bundle.cpu.unwrap_or(0);
        if let Some(clock) = clock(bundle.ftrace_clock.unwrap_or(0)) {
            self.origin.clock.get_or_insert_with(|| clock.into());
        }
        if bundle.lost_events == Some(true) {
            self.running.remove(&cpu);
        }
        let compact = bundle.compact_sched.unwrap_or_default();
        let mut compact = Compact::new(&compact)?;
        for event in bundle.event {
            let event = FtraceEvent::decode(event).map_err(|error| error.to_string())?;
            let time = event.timestamp.unwrap_or(0);
            while let Some(earlier) = compact.before(time) {
                self.compact(cpu, earlier);
            }
            self.event(time, cpu, event.pid.unwrap_or(UNKNOWN), event.event)?;
        }
        while let Some(event) = compact.next() {
            self.compact(cpu, event);
        }
        Ok(())
    }

    fn compact(&mut self, cpu: Cpu, event: compact::Event<'_>) {
        let current = self.running.get(&cpu).copied().unwrap_or(UNKNOWN);
        let tracepoint = match event.what {
            compact::CompactKind::Switch { prev_state, next_pid, next_comm } => {
                self.running.insert(cpu, next_pid);
                let prev_comm: &[u8] = &[];
                let prev_pid = current;
                let prev_state = self.state(prev_state);
                Tracepoint::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid }
            }
            compact::CompactKind::Waking { pid, target_cpu, comm } => {
                Tracepoint::SchedWaking { comm, pid, target_cpu }
            }
        };
        self.collector.tracepoint(event.time, cpu, current, tracepoint);
    }

    /// Returns the state of a switch. The number is the kernel's, except in our own export.
    fn state(&mut self, number: u32) -> u32 {
        self.has_kernels_states |= !self.is_ours;
        match self.is_ours {
            true => number,
            false => kernel_states::raw(number.into()).0,
        }
    }

    fn event(&mut self, time: u64, cpu: Cpu, current: Tid, hit: Option<Hit>) -> Result<(), Fault> {
        let Some(hit) = hit else { return Ok(()) };
        let mut tracepoint = match &hit {
            Hit::Generic(event) => match generic::read(event) {
                Some(generic::GenericEvent::Tracepoint(tracepoint)) => tracepoint,
                Some(generic::GenericEvent::Affinity(cpus)) => {
                    self.collector.affinity(time, cpu, current, &cpus);
                    return Ok(());
                }
                Some(generic::GenericEvent::Member(process)) => {
                    self.collector.member(time, cpu, current, process);
                    return Ok(());
                }
                Some(generic::GenericEvent::Origin(pairs)) => {
                    self.exported = Some(pairs);
                    return Ok(());
                }
                None => return Ok(()),
            },
            other => {
                tracepoint(other).ok_or("a tracepoint without the thread or CPU it tells of")?
            }
        };
        if let Tracepoint::SchedSwitch { prev_state, .. } = &mut tracepoint {
            *prev_state = self.state(*prev_state);
        }
        match tracepoint {
            // Only our own export has these: `OTHER` replaces threads that were not recorded.
            Tracepoint::SchedSwitch { prev_pid, next_pid, .. }
                if [prev_pid, next_pid].contains(&OTHER) =>
            {
                return Ok(());
            }
            Tracepoint::SchedSwitch { next_pid, .. } => {
                self.running.insert(cpu, next_pid);
            }
            // The number may have belonged to another thread before.
            Tracepoint::TaskNewtask { pid, .. }
            | Tracepoint::SchedProcessFork { child_pid: pid, .. } => {
                self.processes.remove(&pid);
            }
            _ => {}
        }
        self.collector.tracepoint(time, cpu, current, tracepoint);
        Ok(())
    }

    fn tree(&mut self, time: u64, tree: ProcessTree) {
        for process in tree.processes {
            let Some(pid) = process.pid else { continue };
            self.member(time, tid(pid), tid(pid));
            if process.cmdline_is_comm == Some(true) {
                let comm = process.cmdline.first().map_or(&[][..], |comm| comm);
                self.collector.name(time, 0, tid(pid), comm);
            }
        }
        for thread in tree.threads {
            let (Some(thread_id), Some(process)) = (thread.tid, thread.tgid) else { continue };
            self.member(time, tid(thread_id), tid(process));
            self.collector.name(time, 0, tid(thread_id), &thread.name.unwrap_or_default());
        }
    }

    fn stats(&mut self, time: u64, stats: ProcessStats) {
        for process in stats.processes {
            let Some(pid) = process.pid else { continue };
            self.member(time, tid(pid), tid(pid));
            for thread in process.threads.iter().filter_map(|thread| thread.tid) {
                self.member(time, tid(thread), tid(pid));
            }
        }
    }

    /// Adds the process of a thread, unless it is known: Perfetto reports processes repeatedly.
    fn member(&mut self, time: u64, thread: Tid, process: Tid) {
        if self.processes.insert(thread, process) != Some(process) {
            self.collector.member(time, 0, thread, process);
        }
    }

    fn losses(&mut self, stats: &FtraceStats) {
        const START: u32 = 1;
        let counted = stats.cpu_stats.iter().flat_map(|cpu| {
            [cpu.overrun, cpu.commit_overrun, cpu.dropped_events].into_iter().flatten()
        });
        let lost = counted.fold(0, u64::saturating_add);
        match stats.phase {
            Some(START) => self.lost_before = lost,
            _ => self.origin.lost = lost,
        }
    }

    fn system(&mut self, info: SystemInfo) {
        let release = info.utsname.and_then(|name| name.release);
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        self.origin.release = release.map(text).or(self.origin.release.take());
        self.origin.online_cpus = info.num_cpus.or(self.origin.online_cpus);
    }

    fn finish(self) -> Result<Trace, Error> {
        let mut origin = self.origin;
        let is_foreign = self.exported.is_none();
        origin.lost = origin.lost.saturating_sub(self.lost_before);
        if let Some(pairs) = self.exported {
            let text =
                |key: &str| pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1.clone());
            let lost = origin.lost;
            origin = from_pairs(text)?;
            origin.lost = origin.lost.max(lost);
        }
        for (field, packets) in &self.unknown {
            origin.remark(format!(
                "{packets} packets were not read, because they carry others in field {field}, which is not known: \
                 let Perfetto write the trace without compression"
            ));
        }
        if self.collector.is_empty() {
            let packets = self.packets;
            origin.remark(format!(
                "none of its {packets} packets holds an event of the scheduler (linux.ftrace with sched/sched_switch)"
            ));
        }
        let mut trace = self.collector.finish(origin);
        if self.has_kernels_states {
            trace.settle_states();
        }
        if is_foreign {
            trace.origin.coverage.filtered |= filtered::shows_by_breaks(&trace.events);
            late::note(&mut trace);
        }
        Ok(trace)
    }
}

/// Returns the kernel's name for the clock of a bundle (`FtraceClock`).
fn clock(number: u32) -> Option<&'static str> {
    match number {
        0 => Some("boot"),
        2 => Some("global"),
        3 => Some("local"),
        4 => Some("mono_raw"),
        _ => None,
    }
}

/// Returns a tracepoint, if it has all required fields.
fn tracepoint(hit: &Hit) -> Option<Tracepoint<'_>> {
    Some(match hit {
        Hit::SchedSwitch(event) => Tracepoint::SchedSwitch {
            prev_comm: comm(&event.prev_comm),
            prev_pid: event.prev_pid.map_or(UNKNOWN, tid),
            prev_state: event.prev_state.unwrap_or(0) as u32,
            next_comm: comm(&event.next_comm),
            next_pid: tid(event.next_pid?),
        },
        Hit::SchedWaking(event) => {
            let (comm, pid, target_cpu) = wakeup(event)?;
            Tracepoint::SchedWaking { comm, pid, target_cpu }
        }
        Hit::SchedWakeup(event) => {
            let (comm, pid, target_cpu) = wakeup(event)?;
            Tracepoint::SchedWakeup { comm, pid, target_cpu }
        }
        Hit::SchedWakeupNew(event) => {
            let (comm, pid, target_cpu) = wakeup(event)?;
            Tracepoint::SchedWakeupNew { comm, pid, target_cpu }
        }
        Hit::SchedMigrateTask(event) => Tracepoint::SchedMigrateTask {
            comm: comm(&event.comm),
            pid: tid(event.pid?),
            orig_cpu: event.orig_cpu? as Cpu,
            dest_cpu: event.dest_cpu? as Cpu,
        },
        Hit::SchedProcessFork(event) => Tracepoint::SchedProcessFork {
            parent_pid: event.parent_pid.map_or(UNKNOWN, tid),
            child_comm: comm(&event.child_comm),
            child_pid: tid(event.child_pid?),
        },
        Hit::SchedProcessExec(event) => Tracepoint::SchedProcessExec {
            pid: tid(event.pid?),
            old_pid: event.old_pid.map_or(UNKNOWN, tid),
        },
        Hit::SchedProcessExit(event) => {
            Tracepoint::SchedProcessExit { comm: comm(&event.comm), pid: tid(event.pid?) }
        }
        Hit::TaskNewtask(event) => Tracepoint::TaskNewtask {
            comm: comm(&event.comm),
            pid: tid(event.pid?),
            clone_flags: event.clone_flags?,
        },
        Hit::TaskRename(event) => {
            Tracepoint::TaskRename { pid: tid(event.pid?), newcomm: comm(&event.newcomm) }
        }
        Hit::Generic(_) => return None,
    })
}

fn wakeup(event: &SchedWakeup) -> Option<(&[u8], Tid, Cpu)> {
    Some((comm(&event.comm), tid(event.pid?), event.target_cpu? as Cpu))
}

/// Returns a name, or an empty one if it is missing.
fn comm(comm: &Option<Bytes>) -> &[u8] {
    comm.as_ref().map_or(&[], |comm| comm)
}

/// Returns the thread with this signed number.
fn tid(pid: i32) -> Tid {
    pid as Tid
}
