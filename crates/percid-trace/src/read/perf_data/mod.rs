//! Reads what `perf record` writes, as it lies in memory.
//!
//! The container is read here rather than by a crate: `linux-perf-data` allocates what a header
//! claims, does not keep the order of compressed records and stops at the tracing data of a pipe;
//! `tracepoint_perf` reads paths only, and nothing that is compressed.

use std::collections::{HashMap, HashSet};

use tracepoint_decode::{PerfEventHeaderMisc, PerfEventHeaderType as Type};

use crate::collector::{Collector, Tracepoint};
use crate::error::Error;
use crate::event::{Cpu, KTHREADD, Shares, State, Tid, UNKNOWN};
use crate::formats::{ByteOrder, Formats};
use crate::read::bytes::Bytes;
use crate::read::tracing_data;
use crate::trace::{Coverage, Origin, Trace};

mod compressed;
mod container;
mod counting;
mod directory;
mod namespace;
mod sample;

use container::{Container, Record, feature};
use counting::Counting;
use namespace::Namespace;
use sample::{Layout, Place};

pub(super) use directory::read_directory;

/// Reads a `perf.data` file.
pub(super) fn read(bytes: &[u8]) -> Result<Trace, Error> {
    trace(Container::read(bytes)?)
}

/// The trace that all records make.
fn trace(container: Container<'_>) -> Result<Trace, Error> {
    let formats = match container.feature(feature::TRACING_DATA) {
        Some(data) => tracing_data::read(data)?,
        None => Formats::default(),
    };
    let layouts = Layouts::new(&container)?;
    let Index { entries, lost } = Index::new(&container, &layouts)?;
    let namespace = Namespace::of(&container, &layouts, &formats, &entries)?;
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

/// A record that a trace may need.
struct Entry {
    time: u64,
    at: u64,
}

/// The records that a trace may need, by time.
struct Index {
    entries: Vec<Entry>,
    lost: u64,
}

impl Index {
    fn new(container: &Container<'_>, layouts: &Layouts) -> Result<Index, Error> {
        let order = container.order;
        let mut entries = Vec::new();
        let (mut lost, mut lost_samples) = (0u64, 0u64);
        let mut rest = container.records.all(order);
        while !rest.is_empty() {
            let at = rest.at();
            let Record { kind, mut body, .. } = Record::take(&mut rest)?;
            let time = match kind {
                Type::Sample => {
                    let time = layouts.of_sample(body).sample_time(body.rest(), order);
                    time.ok_or_else(|| body.error("a sample has no time"))?
                }
                Type::Comm | Type::Fork | Type::Exit | Type::Switch | Type::SwitchCpuWide => {
                    layouts.of_other(body).tail_time(body.rest(), order).unwrap_or(0)
                }
                Type::Lost => {
                    let all = body;
                    body.u64("the event of lost records")?;
                    lost = lost.saturating_add(body.u64("the number of lost records")?);
                    layouts.of_other(all).tail_time(all.rest(), order).unwrap_or(0)
                }
                Type::LostSamples => {
                    let number = body.u64("the number of lost samples")?;
                    lost_samples = lost_samples.saturating_add(number);
                    continue;
                }
                _ => continue,
            };
            entries.push(Entry { time, at });
        }
        entries.sort_by_key(|entry| entry.time);
        // Both report the same losses: the first when there was room again, the second at the end
        // and so for all.
        Ok(Index { entries, lost: lost.max(lost_samples) })
    }
}

/// Layouts of the records of each event.
struct Layouts {
    order: ByteOrder,
    first: Layout,
    /// Layouts by the event's numbers; empty if all events have the same layout.
    by_id: HashMap<u64, Layout>,
}

impl Layouts {
    fn new(container: &Container<'_>) -> Result<Layouts, Error> {
        let events = &container.events;
        let Some(first) = events.first() else {
            return Err(Error::at_byte(0, "the file has no events"));
        };
        let layouts = Layouts {
            order: container.order,
            first: Layout::new(first.attributes),
            by_id: HashMap::new(),
        };
        let others = || events.iter().map(|event| Layout::new(event.attributes));
        if others().all(|layout| layout == layouts.first) {
            return Ok(layouts);
        }
        if !others().all(|layout| layout.identifies_like(&layouts.first)) {
            let what = "the records of its events differ and do not say to which event they belong";
            return Err(Error::at_byte(0, what));
        }
        let by_id = events.iter().flat_map(|event| {
            let layout = Layout::new(event.attributes);
            event.ids.iter().map(move |&id| (id, layout))
        });
        Ok(Layouts { by_id: by_id.collect(), ..layouts })
    }

    #[inline]
    fn of_sample(&self, body: Bytes<'_>) -> &Layout {
        self.of(|first| first.sample_id(body.rest(), self.order))
    }

    fn of_other(&self, body: Bytes<'_>) -> &Layout {
        self.of(|first| first.tail_id(body.rest(), self.order))
    }

    /// Returns the layout of the event with this number. Records that perf synthesized at the
    /// beginning of the recording have the number 0.
    #[inline]
    fn of(&self, id: impl Fn(&Layout) -> Option<u64>) -> &Layout {
        if self.by_id.is_empty() {
            return &self.first;
        }
        let layout = id(&self.first).and_then(|id| self.by_id.get(&id));
        layout.unwrap_or(&self.first)
    }
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
    fn place(&self, body: Bytes<'_>) -> Option<Place> {
        self.layouts.of_other(body).tail_place(body.rest(), self.order)
    }
}

fn four(mut body: Bytes<'_>) -> Result<[u32; 4], Error> {
    let mut next = || body.u32("the threads and processes of a record");
    Ok([next()?, next()?, next()?, next()?])
}

fn origin(container: &Container<'_>) -> Result<Origin, Error> {
    let mut origin = Origin { clock: Some(clock(container).into()), ..Origin::default() };
    if let Some(mut data) = container.feature(feature::OS_RELEASE) {
        origin.release = Some(string(&mut data)?);
    }
    if let Some(mut data) = container.feature(feature::NR_CPUS) {
        origin.possible_cpus = Some(data.u32("the number of CPUs")?);
        origin.online_cpus = Some(data.u32("the number of CPUs that are there")?);
    }
    if let Some(mut data) = container.feature(feature::CMDLINE) {
        origin.command = Some(command(&mut data)?);
    }
    Ok(origin)
}

/// Returns which parts of the schedule were recorded, by the options of perf.
fn coverage(container: &Container<'_>, formats: &Formats) -> Result<Coverage, Error> {
    let all = || container.events.iter().map(|event| &event.attributes);
    let is_switch = |id: u64| formats.is(id, "sched_switch");
    let switches = || all().filter(|event| event.tracepoint().is_some_and(is_switch));
    let asked = match container.feature(feature::CMDLINE) {
        Some(mut data) => words(&mut data)?,
        None => Vec::new(),
    };
    let asked: Vec<String> = asked.into_iter().take_while(|word| word != "--").collect();
    let has = |options: &[&str]| asked.iter().any(|word| is_option(word, options));
    let of_threads = has(&["-p", "--pid", "-t", "--tid"]) && !has(&["-a", "--all-cpus"]);
    let of_group = has(&["-G", "--cgroup"]);
    let of_some = of_threads || of_group || all().any(|event| event.begins_with_command());
    Ok(Coverage {
        sampling: switches().find_map(|event| event.sampling()),
        // A tracepoint that belongs to a thread is hit while it runs, so not by the switch to it.
        away_only: of_some && switches().next().is_some(),
        not_inherited: of_some && !all().any(|event| event.is_inherited()),
        some_cpus: has(&["-C", "--cpu"]),
        filtered: of_some || has(&["--filter"]),
        cut_off: false,
        inferred: 0,
        unread: 0,
        no_states: false,
    })
}

/// Returns `true` if a word is one of these options, with or without its value.
fn is_option(word: &str, options: &[&str]) -> bool {
    options.iter().any(|option| match word.strip_prefix(option) {
        Some(value) if option.starts_with("--") => value.is_empty() || value.starts_with('='),
        Some(value) => value.is_empty() || value.starts_with(|first: char| first.is_ascii_digit()),
        None => false,
    })
}

/// Returns the recorded command: the words after `--`, or the whole command line of `perf`.
fn command(data: &mut Bytes<'_>) -> Result<String, Error> {
    let words = words(data)?;
    let recorded = words.iter().position(|word| word == "--").map_or(0, |dashes| dashes + 1);
    Ok(words[recorded..].join(" "))
}

fn words(data: &mut Bytes<'_>) -> Result<Vec<String>, Error> {
    let number = data.u32("the number of words of the command")?;
    (0..number).map(|_| string(data)).collect()
}

fn string(data: &mut Bytes<'_>) -> Result<String, Error> {
    let len = data.u32("the length of a text")?;
    let text = data.take(len.into(), "a text")?;
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    Ok(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// The clock of the times, by the kernel's name. The numbers are Linux's (`CLOCK_MONOTONIC` and so
/// on), on whatever system they are read.
fn clock(container: &Container<'_>) -> &'static str {
    let clock = container.events.first().and_then(|event| event.attributes.clock);
    match clock {
        Some(0) => "realtime",
        Some(1) => "mono",
        Some(4) => "mono_raw",
        Some(7) => "boot",
        Some(11) => "tai",
        _ => "perf",
    }
}
