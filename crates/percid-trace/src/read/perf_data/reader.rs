//! The conversion of a file's records to a trace.

use std::collections::{HashMap, HashSet};

use tracepoint_decode::{PerfEventHeaderMisc, PerfEventHeaderType as Type};

use super::container::{Container, Record, feature};
use super::counting::Counting;
use super::index::Index;
use super::layouts::Layouts;
use super::namespace::Namespace;
use super::origin::{coverage, origin};
use super::sample::RecordOrigin;
use crate::collector::{Collector, Tracepoint};
use crate::error::Error;
use crate::event::{Cpu, KTHREADD, Shares, State, Tid, UNKNOWN};
use crate::formats::{ByteOrder, Formats};
use crate::read::bytes::Bytes;
use crate::read::tracing_data;
use crate::trace::{Coverage, Trace};

/// Returns the trace that all records make.
pub(super) fn trace(container: Container<'_>) -> Result<Trace, Error> {
    let formats = match container.feature(feature::TRACING_DATA) {
        Some(data) => tracing_data::read(data)?,
        None => Formats::default(),
    };
    let layouts = Layouts::new(&container)?;
    let Index { entries, lost } = Index::new(&container, &layouts)?;
    let namespace = Namespace::detect(&container, &layouts, &formats, &entries)?;
    let mut reader = Reader {
        order: container.order,
        uses: Uses::new(&formats),
        formats: &formats,
        layouts: &layouts,
        beginning: entries.iter().map(|entry| entry.time).find(|&time| time != 0).unwrap_or(0),
        collector: Collector::with_capacity(entries.len()),
        running: HashMap::new(),
        of_the_kernel: HashSet::new(),
        told: HashSet::new(),
        namespace,
        counting: Counting::new(&container, &formats)?,
    };
    for entry in entries {
        reader.record(entry.time, container.records.get(entry.at, container.order)?)?;
    }
    let mut origin = origin(&container)?;
    origin.lost = lost;
    origin.coverage = coverage(&container, &formats)?;
    formats.tell_left_out(&mut origin);
    if reader.namespace.is_one() {
        origin.remark(format!(
            "perf ran in a PID namespace of its own (a container), so its numbers of threads are not the kernel's; all \
             are the kernel's here, and {} names and new threads were left out of which these are not known",
            reader.namespace.unknown
        ));
    }
    if container.text > 0 {
        origin.remark(format!(
            "{} bytes of text among the records were left out (perf's own words or those of the command, in the same pipe)",
            container.text
        ));
    }
    let counted = match origin.coverage {
        // The counter of a thread stops while others run, and the time between samples is no turn.
        Coverage { away_only: true, .. } | Coverage { sampling: Some(_), .. } => Vec::new(),
        _ => reader.counting.finish(&mut origin.counters),
    };
    Ok(Trace { counted, ..reader.collector.finish(origin) })
}

/// The kinds of records other than tracepoints that are used, because no tracepoint reports the
/// same.
struct Uses {
    switches: bool,
    forks: bool,
    execs: bool,
    exits: bool,
    names: bool,
}

impl Uses {
    fn new(formats: &Formats) -> Uses {
        let switches = !formats.has("sched_switch");
        Uses {
            switches,
            // `sched_process_fork` does not contain what the two threads share.
            forks: !formats.has("task_newtask"),
            execs: !formats.has("sched_process_exec"),
            exits: !formats.has("sched_process_exit"),
            names: switches && !formats.has("task_rename"),
        }
    }
}

/// Hands records to a collector.
struct Reader<'a> {
    order: ByteOrder,
    formats: &'a Formats,
    uses: Uses,
    layouts: &'a Layouts,
    /// The time of the first event.
    beginning: u64,
    collector: Collector,
    /// The thread to which each CPU switched, by records that are no tracepoints.
    running: HashMap<Cpu, Tid>,
    /// Threads of the kernel that were there before.
    of_the_kernel: HashSet<Tid>,
    /// New threads whose creation was reported without its CPU, so that `sched_process_fork` cannot
    /// be matched by CPU.
    told: HashSet<Tid>,
    namespace: Namespace,
    counting: Counting,
}

impl Reader<'_> {
    fn record(&mut self, time: u64, record: Record<'_>) -> Result<(), Error> {
        let Record { kind, misc, body, .. } = record;
        let misc = PerfEventHeaderMisc(misc);
        match kind {
            Type::Sample => self.sample(time, body),
            Type::Comm => self.comm(time, misc, body),
            Type::Fork => self.fork(time, body),
            Type::Exit => self.exit(time, body),
            Type::Lost => {
                self.counting.lose(self.place(body).map(|place| place.cpu));
                Ok(())
            }
            _ if !self.uses.switches => Ok(()),
            Type::Switch => self.switch(time, misc, body, UNKNOWN),
            _ => self.switch_cpu_wide(time, misc, body),
        }
    }

    #[inline]
    fn sample(&mut self, time: u64, body: Bytes<'_>) -> Result<(), Error> {
        let sample = self.layouts.of_sample(body).sample(body.rest(), self.order);
        let sample = sample.ok_or_else(|| body.error("a sample is shorter than its parts"))?;
        let Some(raw) = sample.raw else { return Ok(()) };
        let decoded = self.formats.decode(raw).map_err(|what| body.error(what))?;
        let Some((current, tracepoint)) = decoded else { return Ok(()) };
        let cpu = sample.cpu.ok_or_else(|| body.error("the samples do not say on which CPU"))?;
        if let (Tracepoint::SchedSwitch { prev_pid, next_pid, .. }, Some(group)) =
            (tracepoint, &sample.group)
        {
            self.counting.switch(time, cpu, (prev_pid, next_pid), group);
        }
        if let Tracepoint::SchedProcessFork { child_pid, .. } = tracepoint {
            if self.told.remove(&child_pid) {
                return Ok(());
            }
        }
        self.collector.tracepoint(time, cpu, current, tracepoint);
        Ok(())
    }

    /// The name of a thread; at time 0, of one that was there before.
    fn comm(&mut self, time: u64, misc: PerfEventHeaderMisc, body: Bytes<'_>) -> Result<(), Error> {
        let cpu = self.cpu(body);
        let mut fields = body;
        let process = fields.u32("the process of a name")?;
        let thread = fields.u32("the thread of a name")?;
        let name = fields.text("the name of a thread")?;
        let Some(thread) = self.namespace.outside(thread) else { return Ok(()) };
        if time == 0 {
            // Members are threads that have user space.
            let process = self.namespace.find(process);
            if let Some(process) = process.filter(|_| !self.of_the_kernel.contains(&thread)) {
                self.collector.member(self.beginning, cpu, thread, process);
            }
            self.collector.name(self.beginning, cpu, thread, name);
            return Ok(());
        }
        if self.uses.execs && misc.comm_exec() {
            let exec = Tracepoint::SchedProcessExec { pid: thread, old_pid: thread };
            self.collector.tracepoint(time, cpu, thread, exec);
        }
        if self.uses.names {
            self.collector.name(time, cpu, thread, name);
        }
        Ok(())
    }

    /// A new thread; at time 0, one that was there before, whose name comes next.
    fn fork(&mut self, time: u64, body: Bytes<'_>) -> Result<(), Error> {
        let [process, parent_process, thread, parent] = four(body)?;
        let Some(thread) = self.namespace.outside(thread) else { return Ok(()) };
        let parent = self.namespace.find(parent).unwrap_or(UNKNOWN);
        if time == 0 {
            let is_of_the_kernel = self.namespace.find(parent_process) == Some(KTHREADD);
            self.of_the_kernel.extend(is_of_the_kernel.then_some(thread));
            return Ok(());
        }
        if !self.uses.forks {
            return Ok(());
        }
        let shares = match process == parent_process {
            true => Shares::Process,
            false => Shares::Nothing,
        };
        let place = self.place(body);
        self.told.extend(place.is_none().then_some(thread));
        let cpu = place.map_or(0, |place| place.cpu);
        self.collector.fork(time, cpu, parent, thread, b"", shares);
        Ok(())
    }

    fn exit(&mut self, time: u64, body: Bytes<'_>) -> Result<(), Error> {
        if self.uses.exits {
            let cpu = self.cpu(body);
            let [_, _, pid, _] = four(body)?;
            let Some(pid) = self.namespace.outside(pid) else { return Ok(()) };
            let exit = Tracepoint::SchedProcessExit { comm: b"", pid };
            self.collector.tracepoint(time, cpu, pid, exit);
        }
        Ok(())
    }

    /// A switch that may name both threads.
    fn switch_cpu_wide(
        &mut self,
        time: u64,
        misc: PerfEventHeaderMisc,
        mut body: Bytes<'_>,
    ) -> Result<(), Error> {
        body.u32("the other process of a switch")?;
        let other = body.u32("the other thread of a switch")?;
        self.switch(time, misc, body, other)
    }

    /// Adds a switch from or to a thread. Both ends of a switch are reported, so the second is left
    /// out if the first was complete.
    fn switch(
        &mut self,
        time: u64,
        misc: PerfEventHeaderMisc,
        body: Bytes<'_>,
        other: Tid,
    ) -> Result<(), Error> {
        let place = self.place(body).ok_or_else(|| {
            body.error("a switch does not say of which thread and CPU (perf record --sample-cpu)")
        })?;
        let (prev_pid, next_pid, state) = match misc.switch_out() {
            true if misc.switch_out_preempt() => (place.tid, other, State::PREEMPTED),
            true => (place.tid, other, State::SLEEPING),
            false => (other, place.tid, State::RUNNABLE),
        };
        let known = self.running.insert(place.cpu, next_pid) == Some(next_pid);
        if known && !misc.switch_out() {
            return Ok(());
        }
        if other == UNKNOWN {
            match misc.switch_out() {
                true => self.collector.switch_from(time, place.cpu, prev_pid, state, next_pid),
                false => self.collector.switch_to(time, place.cpu, prev_pid, next_pid),
            }
            return Ok(());
        }
        let switch = Tracepoint::SchedSwitch {
            prev_comm: b"",
            prev_pid,
            prev_state: state.0,
            next_comm: b"",
            next_pid,
        };
        self.collector.tracepoint(time, place.cpu, prev_pid, switch);
        Ok(())
    }

    /// Returns the CPU on which a record that is no sample was made; 0 if it is not recorded.
    fn cpu(&self, body: Bytes<'_>) -> Cpu {
        self.place(body).map_or(0, |place| place.cpu)
    }

    /// Returns where a record that is no sample was made, if that is recorded.
    fn place(&self, body: Bytes<'_>) -> Option<RecordOrigin> {
        self.layouts.of_other(body).tail_place(body.rest(), self.order)
    }
}

fn four(mut body: Bytes<'_>) -> Result<[u32; 4], Error> {
    let mut next = || body.u32("the threads and processes of a record");
    Ok([next()?, next()?, next()?, next()?])
}
