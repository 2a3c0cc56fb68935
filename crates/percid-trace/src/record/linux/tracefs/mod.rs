//! Recording by tracefs.
//!
//! An instance of our own records, so that nothing else that is traced on this machine is
//! disturbed. For a single process the kernel itself keeps only what that process and its offspring
//! do, and the switches and wakeups in which one of their threads takes part. Migrations are mostly
//! the work of others, so they come from a second instance that has those of everybody, and nothing
//! else.

mod events;
mod instance;
mod place;
mod probes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use self::events::Events;
use self::instance::Instance;
use self::probes::Probes;
use super::buffers::Buffers;
use super::clock::now;
use super::stream::Stream;
use super::{cpus, snapshot};
use crate::collector::Tracepoint;
use crate::event::{Cpu, Tid};
use crate::formats::ByteOrder;
use crate::record::options::Options;
use crate::sub_buffers::{Layout, SubBuffer};

/// Prepares a recording of a process, or of everything; the error contains what is missing.
pub(super) fn open(options: &Options, process: Option<Tid>) -> Result<Tracefs, String> {
    let tracefs = place::find()?;
    let probes = options.extra.numa.then(|| Probes::set(&tracefs));
    let instance = new_instance(&tracefs, options)?;
    let mut others = None;
    let mut targets = None;
    if let Some(process) = process {
        targets = Some(restrict(&instance, process)?);
        let instance = new_instance(&tracefs, options)?;
        let events = Events::of_others(&instance)?;
        others = Some(Buffer::new(instance, events)?);
    }
    let events = Events::of_target(&instance, options.extra, process.is_none())?;
    let own = Buffer::new(instance, events)?;
    let at_once = (options.kernel_buffer_kib as usize * 1024).div_ceil(own.layout.size).max(1);
    Ok(Tracefs { own, others, targets, at_once, _probes: probes })
}

fn new_instance(tracefs: &Path, options: &Options) -> Result<Instance, String> {
    let instance = Instance::new(tracefs)?;
    instance.write("trace_clock", "mono")?;
    instance.write("buffer_size_kb", &options.kernel_buffer_kib.to_string())?;
    // Kernels before 5.0 wake the reader for every event instead.
    let _ = instance.write("buffer_percent", "50");
    Ok(instance)
}

/// Keeps only what the threads of a process do, and those that they create. Returns them.
fn restrict(instance: &Instance, process: Tid) -> Result<BTreeSet<Tid>, String> {
    instance.write("options/event-fork", "1")?;
    let mut known = BTreeSet::new();
    // Until no thread has been created by one that was not known yet.
    loop {
        let new: Vec<Tid> =
            snapshot::threads(process).into_iter().filter(|thread| known.insert(*thread)).collect();
        if new.is_empty() {
            return Ok(known);
        }
        for some in new.chunks(THREADS_AT_ONCE) {
            let list: Vec<String> = some.iter().map(Tid::to_string).collect();
            instance.append("set_event_pid", &list.join(" "))?;
        }
    }
}

/// This number of thread IDs is less than a page of text, the most that the kernel takes.
const THREADS_AT_ONCE: usize = 256;

/// A recording.
pub(super) struct Tracefs {
    own: Buffer,
    /// The migrations of the whole system, among them those of the target's threads.
    others: Option<Buffer>,
    /// The threads that were there when it began, until they are passed on.
    targets: Option<BTreeSet<Tid>>,
    /// Number of sub-buffers of a CPU that are taken before those of the next one: as many as it has.
    /// More may come as fast as they are taken, and what was taken is in memory until it is settled.
    at_once: usize,
    /// Removed after the instances that use them.
    _probes: Option<Probes>,
}

impl Buffers for Tracefs {
    fn begin(&mut self) -> Result<(), String> {
        if let Some(others) = &self.others {
            others.instance.write("tracing_on", "1")?;
        }
        self.own.instance.write("tracing_on", "1")
    }

    /// The pipe of a CPU that is not plugged in would always seem to be ready.
    fn descriptors(&self) -> Vec<RawFd> {
        let online: BTreeSet<Cpu> = cpus::online().into_iter().collect();
        let pipes = self.own.pipes.iter().chain(self.others.iter().flat_map(|other| &other.pipes));
        let ready = pipes.filter(|(cpu, _)| online.contains(cpu));
        ready.map(|(_, pipe)| pipe.as_raw_fd()).collect()
    }

    fn drain(&mut self, stream: &mut Stream) -> Result<u64, String> {
        self.take(stream, self.at_once)
    }

    fn end(&mut self, stream: &mut Stream) -> Result<(), String> {
        self.own.instance.write("tracing_on", "0")?;
        if let Some(others) = &self.others {
            others.instance.write("tracing_on", "0")?;
        }
        self.take(stream, usize::MAX)?;
        let lost = self.own.instance.lost();
        stream.lost = stream.lost.max(lost);
        Ok(())
    }

    fn without(&self) -> Vec<&'static str> {
        self.own.events.without.clone()
    }
}

impl Tracefs {
    fn take(&mut self, stream: &mut Stream, pages: usize) -> Result<u64, String> {
        if let Some(targets) = self.targets.take() {
            stream.keep_migrations_of(targets);
        }
        let mut calls = BTreeMap::new();
        let own = self.own.drain(pages, |events, time, cpu, record| {
            if let Some(thread) = events.affinity_call(record) {
                calls.insert(thread, (time, cpu));
                return Ok(());
            }
            let Some((current, event)) = events.formats.decode(record)? else { return Ok(()) };
            stream.tracepoint(time, cpu, current, event);
            Ok(())
        })?;
        stream.lost += own.lost;
        for (thread, (time, cpu)) in calls {
            if let Some(cpus) = cpus::allowed(thread) {
                stream.affinity(time, cpu, thread, &cpus);
            }
        }
        let Some(others) = &mut self.others else { return Ok(own.until) };
        let others = others.drain(pages, |events, time, cpu, record| {
            let Some((current, event)) = events.formats.decode(record)? else { return Ok(()) };
            if let Tracepoint::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } = event {
                let comm = &[];
                let event = Tracepoint::SchedMigrateTask { comm, pid, orig_cpu, dest_cpu };
                stream.late(time, cpu, current, event);
            }
            Ok(())
        })?;
        stream.lost += others.lost;
        Ok(own.until.min(others.until))
    }
}

/// The result of draining a buffer.
struct Drained {
    /// Events that were lost on the way.
    lost: u64,
    /// Time until which everything was taken.
    until: u64,
}

/// An instance and its pipes.
struct Buffer {
    // Closed before the instance goes.
    pipes: Vec<(Cpu, File)>,
    instance: Instance,
    events: Events,
    layout: Layout,
    page: Vec<u8>,
}

impl Buffer {
    fn new(instance: Instance, events: Events) -> Result<Buffer, String> {
        let layout = Layout::read(&instance.read("events/header_page")?, ByteOrder::NATIVE)
            .map_err(|error| format!("events/header_page: {error}"))?;
        let pipes = instance.pipes()?;
        let page = vec![0; layout.size];
        Ok(Buffer { pipes, instance, events, layout, page })
    }

    /// Hands out the records of up to `pages` sub-buffers of each CPU: their times, CPUs and bytes.
    fn drain(
        &mut self,
        pages: usize,
        mut take: impl FnMut(&Events, u64, Cpu, &[u8]) -> Result<(), String>,
    ) -> Result<Drained, String> {
        let mut drained = Drained { lost: 0, until: now() };
        for (cpu, pipe) in &mut self.pipes {
            let mut last = 0;
            for nr in 0..pages {
                let Some(length) = read(pipe, &mut self.page)? else { break };
                let damaged = |error| format!("CPU {cpu}, a sub-buffer: {error}");
                let page = self.page.get(..length).unwrap_or_default();
                let mut page = SubBuffer::new(page, &self.layout).map_err(damaged)?;
                drained.lost += page.lost;
                while let Some(record) = page.next().map_err(damaged)? {
                    take(&self.events, record.time, *cpu, record.data)?;
                    last = record.time;
                }
                if nr + 1 == pages {
                    // There may be more.
                    drained.until = drained.until.min(last);
                }
            }
        }
        Ok(drained)
    }
}

/// Reads a sub-buffer; `None` if there is none.
fn read(pipe: &mut File, page: &mut [u8]) -> Result<Option<usize>, String> {
    loop {
        return match pipe.read(page) {
            Ok(0) => Ok(None),
            Ok(length) => Ok(Some(length)),
            // A CPU has no buffer before it is plugged in.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(format!("trace_pipe_raw: {error}")),
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::record::options::Target;

    /// A recording of the whole system, which a few threads keep busy, that has ended and has not
    /// been read.
    fn recorded() -> Result<Tracefs, String> {
        let mut options = Options::new(Target::System);
        options.kernel_buffer_kib = 16 << 10;
        let mut recording = open(&options, None)?;
        recording.begin()?;
        let nap = || (0..50).for_each(|_| thread::sleep(Duration::from_micros(100)));
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(nap))));
        recording.own.instance.write("tracing_on", "0")?;
        Ok(recording)
    }

    /// Returns the records of each CPU in the kernel's format.
    fn by_records(recording: &mut Tracefs) -> BTreeMap<Cpu, Vec<String>> {
        let mut all: BTreeMap<Cpu, Vec<String>> = BTreeMap::new();
        let taken = recording.own.drain(usize::MAX, |events, time, cpu, record| {
            if let Some((current, event)) = events.formats.decode(record)? {
                let micros = (time + 500) / 1000;
                all.entry(cpu).or_default().push(format!("{micros} {current} {}", spelled(event)));
            }
            Ok(())
        });
        assert_eq!(taken.map(|drained| drained.lost), Ok(0), "nothing is lost");
        all
    }

    fn spelled(event: Tracepoint<'_>) -> String {
        use Tracepoint::*;
        match event {
            SchedSwitch { prev_pid, next_pid, .. } => format!("sched_switch {prev_pid} {next_pid}"),
            SchedWaking { pid, target_cpu, .. } => format!("sched_waking {pid} {target_cpu}"),
            SchedWakeup { pid, target_cpu, .. } => format!("sched_wakeup {pid} {target_cpu}"),
            SchedWakeupNew { pid, target_cpu, .. } => {
                format!("sched_wakeup_new {pid} {target_cpu}")
            }
            SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } => {
                format!("sched_migrate_task {pid} {orig_cpu} {dest_cpu}")
            }
            SchedProcessFork { parent_pid, child_pid, .. } => {
                format!("sched_process_fork {parent_pid} {child_pid}")
            }
            TaskNewtask { pid, clone_flags, .. } => format!("task_newtask {pid} {clone_flags:x}"),
            TaskRename { pid, .. } => format!("task_rename {pid}"),
            SchedProcessExec { pid, old_pid } => format!("sched_process_exec {pid} {old_pid}"),
            SchedProcessExit { pid, .. } => format!("sched_process_exit {pid}"),
            RseqUpdate { node_id, mm_cid } => format!("rseq_update {node_id} {mm_cid}"),
            Tick => "hrtimer_expire_entry".to_owned(),
            Numa(_) => unreachable!("not asked for"),
        }
    }

    /// The fields of each event that stand above, by the kernel's names.
    const FIELDS: [(&str, &[&str]); 12] = [
        ("sched_switch", &["prev_pid", "next_pid"]),
        ("sched_waking", &["pid", "target_cpu"]),
        ("sched_wakeup", &["pid", "target_cpu"]),
        ("sched_wakeup_new", &["pid", "target_cpu"]),
        ("sched_migrate_task", &["pid", "orig_cpu", "dest_cpu"]),
        ("sched_process_fork", &["pid", "child_pid"]),
        ("task_newtask", &["pid", "clone_flags"]),
        ("task_rename", &["pid"]),
        ("sched_process_exec", &["pid", "old_pid"]),
        ("sched_process_exit", &["pid"]),
        ("rseq_update", &["node_id", "mm_cid"]),
        ("hrtimer_expire_entry", &[]),
    ];

    /// The same from a line of the kernel's text.
    fn by_text(line: &str) -> Option<(Cpu, String)> {
        let (head, rest) = line.split_once(": ")?;
        let (name, fields) = rest.split_once(": ")?;
        let mut words = head.split_whitespace().rev();
        let (seconds, micros) = words.next()?.split_once('.')?;
        let cpu = words.nth(1)?.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
        let current = words.find_map(|word| word.rsplit_once('-'))?.1;
        let (_, wanted) = FIELDS.iter().find(|(known, _)| *known == name.trim())?;
        let time = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
        let mut text = format!("{time} {current} {}", name.trim());
        for field in *wanted {
            let mut words = fields.split_whitespace().rev();
            let value = words.find_map(|word| word.strip_prefix(field)?.strip_prefix('='))?;
            let plain = value.trim_start_matches('0');
            text.push_str(if plain.is_empty() { " 0" } else { " " });
            text.push_str(plain);
        }
        Some((cpu, text))
    }

    #[test]
    fn records_say_what_the_kernel_says_in_words() {
        let mut recording = match recorded() {
            Ok(recording) => recording,
            Err(missing) => return crate::record::linux::testing::skip(&missing),
        };
        let path = recording.own.instance.path().join("trace");
        let text = std::fs::read(path).expect("the same trace as text");
        let text = String::from_utf8_lossy(&text);
        let mut in_words: BTreeMap<Cpu, Vec<String>> = BTreeMap::new();
        for (cpu, event) in text.lines().filter(|line| !line.starts_with('#')).filter_map(by_text) {
            in_words.entry(cpu).or_default().push(event);
        }
        let events = in_words.values().map(Vec::len).sum::<usize>();
        assert!(events > 400, "four threads slept fifty times each: {events}");
        assert_eq!(by_records(&mut recording), in_words);
    }
}
