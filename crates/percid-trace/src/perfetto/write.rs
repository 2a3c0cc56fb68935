//! Conversion of a trace to Perfetto's packets.

use std::collections::BTreeMap;
use std::collections::{HashMap, HashSet};
use std::io::Write;

use bytes::Bytes;
use prost::Message;

use super::generic;
use super::ids::{self, IdTracks};
use super::messages::*;
use super::other::{self, OTHER};
use super::packets::{self, packet};
use crate::error::Error;
use crate::event::{Cpu, Event, IDLE, Shares, Stage, State, Tid, UNKNOWN, What};
use crate::origin_pairs::pairs;
use crate::trace::{Origin, Trace};

/// Number of events that wait for others of their CPU before they are written.
const WAITING: usize = 4096;

/// Writes a trace, and the IDs of as many replays of it as are given, as a file for Perfetto.
pub fn write(trace: &Trace, tracks: &[IdTracks], to: impl Write) -> Result<(), Error> {
    let mut out = Out { to };
    out.packet(&TracePacket { system_info: Some(system(&trace.origin)), ..packet() })?;
    out.packet(&provenance(trace))?;
    let names = ids::ProcessNames::from_trace(trace, tracks);
    for process in names.processes() {
        out.packet(&process)?;
    }
    Schedule::new(trace, &mut out).write()?;
    for (number, tracks) in tracks.iter().enumerate() {
        ids::write(tracks, number, &names, &mut |packet| out.packet(&packet))?;
    }
    if trace.origin.lost > 0 {
        out.packet(&TracePacket { ftrace_stats: Some(losses(trace.origin.lost)), ..packet() })?;
    }
    Ok(out.to.flush()?)
}

struct Out<W> {
    to: W,
}

impl<W: Write> Out<W> {
    fn packet(&mut self, packet: &TracePacket) -> Result<(), Error> {
        self.to.write_all(&[packets::PACKET])?;
        Ok(self.to.write_all(&packet.encode_length_delimited_to_vec())?)
    }
}

fn system(origin: &Origin) -> SystemInfo {
    let release = origin.release.clone().map(Bytes::from);
    let utsname = Utsname { sysname: Some(Bytes::from_static(b"Linux")), release };
    SystemInfo { utsname: Some(utsname), num_cpus: origin.online_cpus }
}

/// Returns a packet with data for which Perfetto has no message: how much of the schedule was
/// recorded, and how well.
fn provenance(trace: &Trace) -> TracePacket {
    // Counter values and events of NUMA balancing are not in the file.
    let origin = Origin { scan: None, counters: Vec::new(), ..trace.origin.clone() };
    let (time, cpu) = trace.events.first().map_or((0, 0), |event| (event.time, event.cpu));
    let hit = Hit::Generic(generic::origin(&pairs(&origin)));
    let event = FtraceEvent { timestamp: Some(time), pid: Some(IDLE), event: Some(hit) };
    let event = vec![event.encode_to_vec().into()];
    let bundle = FtraceEventBundle { cpu: Some(cpu), event, ..Default::default() };
    TracePacket { ftrace_events: Some(bundle), ..packet() }
}

/// All losses, as if they had been the first CPU's.
fn losses(lost: u64) -> FtraceStats {
    const END: u32 = 2;
    let cpu = FtraceCpuStats { cpu: Some(0), overrun: Some(lost), ..FtraceCpuStats::default() };
    FtraceStats { phase: Some(END), cpu_stats: vec![cpu] }
}

/// The events of a trace on their way out.
struct Schedule<'a, W> {
    trace: &'a Trace,
    out: &'a mut Out<W>,
    /// Events that wait for others of their CPU, and how many they are.
    bundles: BTreeMap<Cpu, Vec<Bytes>>,
    waiting: usize,
    /// Threads that wait for others of the same time.
    tree: (u64, ProcessTree),
    names: HashMap<Tid, Bytes>,
    running: HashMap<Cpu, Tid>,
    /// The CPUs on which [`OTHER`] runs.
    unknown: HashSet<Cpu>,
}

impl<'a, W: Write> Schedule<'a, W> {
    fn new(trace: &'a Trace, out: &'a mut Out<W>) -> Schedule<'a, W> {
        Schedule {
            trace,
            out,
            bundles: BTreeMap::new(),
            waiting: 0,
            tree: Default::default(),
            names: HashMap::new(),
            running: HashMap::new(),
            unknown: HashSet::new(),
        }
    }

    fn write(mut self) -> Result<(), Error> {
        let begins = other::begins(&self.trace.events);
        let mut events = self.trace.events.iter().enumerate().peekable();
        while let Some((place, event)) = events.next() {
            match event.what {
                What::Fork { parent, child, shares } => {
                    let named = |(_, next): &(usize, &Event)| names(next, event, child);
                    let comm = events.next_if(named).map(|(_, next)| self.renamed(next));
                    self.fork(event, parent, child, shares, comm.flatten())?;
                }
                What::Switch { prev, next, .. } => {
                    if self.unknown.remove(&event.cpu) {
                        self.unrecorded(event, OTHER, prev)?;
                    }
                    self.event(event)?;
                    if begins.contains(&place) {
                        self.unknown.insert(event.cpu);
                        self.unrecorded(event, next, OTHER)?;
                    }
                }
                _ => self.event(event)?,
            }
        }
        self.flush_bundles()?;
        self.flush_tree()
    }

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        let cpu = event.cpu;
        let running = self.running.get(&cpu).copied().unwrap_or(IDLE);
        let (current, hit) = match event.what {
            What::Switch { prev, state, next } => {
                let hit = Hit::SchedSwitch(self.switch(cpu, prev, state, next));
                (known(prev).map_or(IDLE, |_| prev), hit)
            }
            What::Wakeup { thread, target, stage } => {
                (running, self.wakeup(cpu, thread, target, stage))
            }
            What::Migrate { thread, from, to } => (running, self.migrate(cpu, thread, from, to)),
            What::Exec { thread, old } => (thread, self.exec(cpu, thread, old)),
            What::Exit { thread } => (thread, self.exit(cpu, thread)),
            What::Affinity { thread, cpus } => {
                (thread, Hit::Generic(generic::affinity(self.trace.texts.get(cpus))))
            }
            What::Id { thread, node, id } => {
                (thread, Hit::Generic(generic::rseq_update(cpu, node, id)))
            }
            What::Tick { thread } => (thread, Hit::Generic(generic::tick(cpu))),
            What::Name { thread, .. } => {
                let newcomm = self.renamed(event);
                (running, Hit::TaskRename(TaskRename { pid: Some(thread as i32), newcomm }))
            }
            What::Member { thread, process } => {
                self.member(event.time, thread, process)?;
                (thread, Hit::Generic(generic::member(process)))
            }
            What::Fork { .. } => return Ok(()),
        };
        self.push(event, current, hit)
    }

    /// A switch that was not recorded, at the time of one that was.
    fn unrecorded(&mut self, event: &Event, prev: Tid, next: Tid) -> Result<(), Error> {
        let switch = self.switch(event.cpu, prev, State::SLEEPING, next);
        self.push(event, prev, Hit::SchedSwitch(switch))
    }

    fn switch(&mut self, cpu: Cpu, prev: Tid, state: State, next: Tid) -> SchedSwitch {
        /// Default priority of threads, in the kernel's numbers.
        const PRIORITY: i32 = 120;
        self.running.insert(cpu, next);
        SchedSwitch {
            prev_comm: self.comm(cpu, prev),
            prev_pid: known(prev),
            prev_prio: Some(PRIORITY),
            prev_state: Some(state.0.into()),
            next_comm: self.comm(cpu, next),
            next_pid: Some(next as i32),
            next_prio: Some(PRIORITY),
        }
    }

    fn wakeup(&self, cpu: Cpu, thread: Tid, target: Cpu, stage: Stage) -> Hit {
        let comm = self.comm(cpu, thread);
        let (pid, target_cpu) = (Some(thread as i32), Some(target as i32));
        let event = SchedWakeup { comm, pid, target_cpu };
        match stage {
            Stage::Waking => Hit::SchedWaking(event),
            Stage::Woken => Hit::SchedWakeup(event),
            Stage::New => Hit::SchedWakeupNew(event),
        }
    }

    fn migrate(&self, cpu: Cpu, thread: Tid, from: Cpu, to: Cpu) -> Hit {
        let (comm, pid) = (self.comm(cpu, thread), Some(thread as i32));
        let (orig_cpu, dest_cpu) = (Some(from as i32), Some(to as i32));
        Hit::SchedMigrateTask(SchedMigrateTask { comm, pid, orig_cpu, dest_cpu })
    }

    fn exec(&self, cpu: Cpu, thread: Tid, old: Tid) -> Hit {
        let (filename, pid) = (self.comm(cpu, thread), Some(thread as i32));
        Hit::SchedProcessExec(SchedProcessExec { filename, pid, old_pid: known(old) })
    }

    fn exit(&self, cpu: Cpu, thread: Tid) -> Hit {
        let (comm, pid) = (self.comm(cpu, thread), Some(thread as i32));
        Hit::SchedProcessExit(SchedProcessExit { comm, pid })
    }

    /// A new thread, with its name if that comes right after it.
    fn fork(
        &mut self,
        event: &Event,
        parent: Tid,
        child: Tid,
        shares: Shares,
        comm: Option<Bytes>,
    ) -> Result<(), Error> {
        if comm.is_none() {
            self.names.remove(&child);
        }
        let hit = match shares.clone_flags() {
            Some(flags) => Hit::TaskNewtask(TaskNewtask {
                pid: Some(child as i32),
                comm,
                clone_flags: Some(flags),
            }),
            None => Hit::SchedProcessFork(SchedProcessFork {
                parent_pid: known(parent),
                child_comm: comm,
                child_pid: Some(child as i32),
            }),
        };
        self.push(event, parent, hit)
    }

    /// Perfetto leaves out events that do not contain the running thread.
    fn push(&mut self, event: &Event, current: Tid, hit: Hit) -> Result<(), Error> {
        let coded =
            FtraceEvent { timestamp: Some(event.time), pid: Some(current), event: Some(hit) };
        let bundle = self.bundles.entry(event.cpu).or_default();
        bundle.push(coded.encode_to_vec().into());
        self.waiting += 1;
        if self.waiting >= WAITING {
            self.flush_bundles()?;
        }
        Ok(())
    }

    /// A thread, as Perfetto takes it in. That has no CPU: our own reader keeps to the event.
    fn member(&mut self, time: u64, thread: Tid, process: Tid) -> Result<(), Error> {
        if self.tree.0 != time {
            self.flush_tree()?;
        }
        self.tree.0 = time;
        // Their names are left to the events that give them.
        let (tid, tgid) = (Some(thread as i32), Some(process as i32));
        if thread == process {
            self.tree.1.processes.push(Process { pid: tgid, ..Process::default() });
        } else {
            self.tree.1.threads.push(Thread { tid, tgid, ..Thread::default() });
        }
        Ok(())
    }

    fn flush_tree(&mut self) -> Result<(), Error> {
        let (time, tree) = std::mem::take(&mut self.tree);
        if tree.processes.is_empty() && tree.threads.is_empty() {
            return Ok(());
        }
        let (timestamp, process_tree) = (Some(time), Some(tree));
        self.out.packet(&TracePacket { timestamp, process_tree, ..packet() })
    }

    fn flush_bundles(&mut self) -> Result<(), Error> {
        self.waiting = 0;
        for (cpu, event) in std::mem::take(&mut self.bundles) {
            let bundle = FtraceEventBundle { cpu: Some(cpu), event, ..Default::default() };
            self.out.packet(&TracePacket { ftrace_events: Some(bundle), ..packet() })?;
        }
        Ok(())
    }

    /// Takes in the new name of a thread.
    fn renamed(&mut self, event: &Event) -> Option<Bytes> {
        let What::Name { thread, name } = event.what else { return None };
        let name = Bytes::copy_from_slice(self.trace.texts.get(name).as_bytes());
        self.names.insert(thread, name.clone());
        Some(name)
    }

    fn comm(&self, cpu: Cpu, thread: Tid) -> Option<Bytes> {
        match thread {
            IDLE => Some(format!("swapper/{cpu}").into()),
            OTHER => Some(Bytes::from_static(other::NAME.as_bytes())),
            _ => self.names.get(&thread).cloned(),
        }
    }
}

/// Returns `true` if `next` gives a name to the thread that `event` created, at the same time.
fn names(next: &Event, event: &Event, child: Tid) -> bool {
    let named = matches!(next.what, What::Name { thread, .. } if thread == child);
    named && (next.time, next.cpu) == (event.time, event.cpu)
}

/// A thread's number, left out if it is not known.
fn known(thread: Tid) -> Option<i32> {
    (thread != UNKNOWN).then_some(thread as i32)
}
