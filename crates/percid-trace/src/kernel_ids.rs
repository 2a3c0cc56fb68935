//! Compares the concurrency IDs that the kernel gave the threads of a process with those that the policy of the kernel's
//! generation gives on the same schedule.
//!
//! A trace suffices if it shows the process from the start of its program on, with the IDs (`rseq:rseq_update`), timer
//! ticks, migrations, and threads that are created and end, and if nothing was lost. What it does not show is this:
//!
//! - **A switch away from the idle thread** is missing at times in traces of some kernels. A thread that does something on a
//!   CPU runs there, so the switch is inferred from the first such event; mostly that is its way back to user space.
//! - **Whether a tick led to a scan.** Every tick asks whether a scan is due, and the ticked thread scans when it goes back to
//!   user space, perhaps after a sleep or in its next turn. On that way it tells its ID. So a tick that comes when a
//!   scan is due stands before the next ID of that thread, and says how long ago it landed.
//! - **When a thread that ends gives up its ID.** That is shortly before the trace shows the end.

use std::collections::HashMap;
use std::fmt;

use percid_sim::replay::{self, Comparison, Recording, Step};
use percid_sim::{MS, Ns, US};

use crate::event::{Cpu, Event, Shares, Tid, What};
use crate::record::count_cpus;
use crate::trace::Trace;

/// Why the IDs in a trace cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Insufficient {
    /// The trace does not say from which kernel it is.
    NoRelease,
    /// That kernel, by its release, has no concurrency IDs.
    NoGeneration(String),
    /// So many events were lost.
    Lost(u64),
    /// The trace does not show that this process started its program.
    BeganBefore(Tid),
    /// The trace has no IDs of this process's threads: they were not recorded, or the process does not use
    /// restartable sequences.
    NoIds(Tid),
    /// The trace does not say whether this thread shares the memory of the one that created it.
    UnknownMemory(Tid),
    /// The events cannot have happened one after the other. At this time something else was expected.
    Inconsistent(Ns, String),
}

impl fmt::Display for Insufficient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Insufficient::NoRelease => write!(f, "the trace does not say from which kernel it is"),
            Insufficient::NoGeneration(release) => {
                write!(f, "Linux {release} has no concurrency IDs")
            }
            Insufficient::Lost(count) => write!(f, "{count} events were lost"),
            Insufficient::BeganBefore(process) => {
                write!(f, "process {process} does not start its program within the trace")
            }
            Insufficient::NoIds(process) => write!(
                f,
                "the trace has no IDs of process {process}: rseq:rseq_update was not recorded, or \
                 the process does not use restartable sequences"
            ),
            Insufficient::UnknownMemory(thread) => write!(
                f,
                "the trace does not say whether thread {thread} shares its parent's memory: \
                 task:task_newtask was not recorded"
            ),
            Insufficient::Inconsistent(time, expected) => {
                write!(f, "at {time} ns: expected {expected}")
            }
        }
    }
}

impl std::error::Error for Insufficient {}

/// Compares the IDs of a process with the policy of the trace's kernel. If the process started several programs, the last
/// one is meant.
///
/// # Errors
///
/// Why the trace does not suffice.
pub fn compare(trace: &Trace, process: Tid) -> Result<Comparison, Insufficient> {
    let recording = recording(trace, process)?;
    match replay::generation(&recording.release) {
        Some(entry) => Ok(recording.compare(entry)),
        None => Err(Insufficient::NoGeneration(recording.release)),
    }
}

/// What happened in a process since it started its last program, for any policy to be compared with.
///
/// # Errors
///
/// Why the trace does not suffice.
pub fn recording(trace: &Trace, process: Tid) -> Result<Recording, Insufficient> {
    let release = trace.origin.release.clone().ok_or(Insufficient::NoRelease)?;
    if trace.origin.lost > 0 {
        return Err(Insufficient::Lost(trace.origin.lost));
    }
    let starts =
        |event: &Event| matches!(event.what, What::Exec { thread, .. } if thread == process);
    let start = trace.events.iter().rposition(starts);
    let start = start.ok_or(Insufficient::BeganBefore(process))?;
    let (before, events) = trace.events.split_at(start);
    let possible = possible_cpus(trace);
    let allowed = allowed_cpus(trace, before, process).unwrap_or(possible);
    let mut translation = Translation::new(trace, events[0], process);
    events[1..].iter().try_for_each(|event| translation.take(event))?;
    if !translation.has_ids {
        return Err(Insufficient::NoIds(process));
    }
    let recording =
        Recording { release, possible, allowed: allowed.min(possible), steps: translation.steps };
    let checked = recording.check();
    checked.map_err(|(time, expected)| {
        Insufficient::Inconsistent(events[0].time.saturating_add(time), expected)
    })?;
    Ok(recording)
}

fn possible_cpus(trace: &Trace) -> u32 {
    let seen = trace.events.iter().map(|event| event.cpu).max().unwrap_or(0).saturating_add(1);
    trace.origin.possible_cpus.map_or(seen, |possible| possible.max(seen))
}

/// How many CPUs a process may use when it starts its program, by what its thread, or the nearest ancestor's of which
/// it is known, was allowed.
fn allowed_cpus(trace: &Trace, before: &[Event], process: Tid) -> Option<u32> {
    let mut allowed: HashMap<Tid, u32> = HashMap::new();
    for event in before {
        match event.what {
            What::Affinity { thread, cpus } => {
                allowed.extend(count_cpus(trace.texts.get(cpus)).map(|count| (thread, count)));
            }
            What::Fork { parent, child, .. } => match allowed.get(&parent).copied() {
                Some(count) => drop(allowed.insert(child, count)),
                None => drop(allowed.remove(&child)),
            },
            _ => {}
        }
    }
    allowed.get(&process).copied()
}

/// The least time between two scans.
const PERIOD: Ns = 100 * MS;

/// From the events of a trace to the steps of a recording.
struct Translation<'a> {
    trace: &'a Trace,
    began: Ns,
    /// The number of each thread that uses the memory, and of those that did.
    threads: HashMap<Tid, Member>,
    /// How many there have been.
    count: u32,
    /// For each CPU the thread that runs there, if it uses the memory.
    current: HashMap<Cpu, Tid>,
    /// From when on a tick leads to a scan.
    due: Ns,
    steps: Vec<Step>,
    has_ids: bool,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    number: u32,
    runs_on: Option<Cpu>,
    /// The tick after which it scans on its way to user space.
    tick: Option<Ns>,
}

impl<'a> Translation<'a> {
    fn new(trace: &'a Trace, start: Event, process: Tid) -> Translation<'a> {
        let Event { time, cpu, .. } = start;
        let first = Member { number: 0, runs_on: Some(cpu), tick: None };
        Translation {
            trace,
            began: time,
            threads: HashMap::from([(process, first)]),
            count: 1,
            current: HashMap::from([(cpu, process)]),
            due: time + PERIOD,
            steps: vec![Step { time: 0, event: replay::Event::Exec(cpu, 0) }],
            has_ids: false,
        }
    }

    fn push(&mut self, time: Ns, event: replay::Event) {
        self.steps.push(Step { time: time - self.began, event });
    }

    fn number(&self, thread: Tid) -> Option<u32> {
        self.threads.get(&thread).map(|member| member.number)
    }

    fn take(&mut self, event: &Event) -> Result<(), Insufficient> {
        let &Event { time, cpu, what } = event;
        match what {
            What::Switch { prev, next, .. } => {
                self.runs(time, cpu, prev);
                self.switch(time, cpu, next);
            }
            What::Id { thread, id, .. } => {
                let Some(number) = self.runs(time, cpu, thread) else { return Ok(()) };
                self.scan(time, cpu, thread);
                self.push(time, replay::Event::Id(number, id));
                self.has_ids = true;
            }
            What::Tick { thread } => self.tick(time, cpu, thread),
            What::Fork { parent, child, shares } => return self.fork(time, parent, child, shares),
            What::Exec { thread, .. } => self.leave(time, cpu, thread),
            What::Exit { thread } => {
                if let Some(number) = self.runs(time, cpu, thread) {
                    self.push(time, replay::Event::Exit(cpu, number));
                }
            }
            What::Migrate { thread, from, to } => {
                if let Some(number) = self.number(thread) {
                    self.push(time, replay::Event::Migrate(number, from, to));
                }
            }
            What::Affinity { thread, cpus } => {
                let weight = count_cpus(self.trace.texts.get(cpus));
                if let (Some(number), Some(weight)) = (self.number(thread), weight) {
                    self.push(time, replay::Event::Affinity(number, weight));
                }
            }
            What::Wakeup { .. } | What::Member { .. } | What::Name { .. } => {}
        }
        Ok(())
    }

    /// Takes it that a thread runs on a CPU. Returns its number if it uses the memory.
    fn runs(&mut self, time: Ns, cpu: Cpu, thread: Tid) -> Option<u32> {
        if self.current.get(&cpu) != Some(&thread) {
            self.switch(time, cpu, thread);
        }
        self.number(thread)
    }

    /// A CPU switches to a thread.
    fn switch(&mut self, time: Ns, cpu: Cpu, next: Tid) {
        let next_member = self.threads.get(&next).copied();
        if let Some(elsewhere) = next_member.and_then(|next| next.runs_on).filter(|&on| on != cpu) {
            self.set(time, elsewhere, None);
        }
        self.set(time, cpu, next_member.map(|_| next));
    }

    /// Lets a thread of the process run on a CPU, or none.
    fn set(&mut self, time: Ns, cpu: Cpu, next: Option<Tid>) {
        let prev = match next {
            Some(next) => self.current.insert(cpu, next),
            None => self.current.remove(&cpu),
        };
        if prev == next {
            return;
        }
        let prev = prev.and_then(|prev| self.threads.get_mut(&prev)).map(|prev| {
            prev.runs_on = None;
            prev.number
        });
        let next = next.and_then(|next| self.threads.get_mut(&next)).map(|next| {
            next.runs_on = Some(cpu);
            next.number
        });
        self.push(time, replay::Event::Switch(cpu, prev, next));
    }

    fn tick(&mut self, time: Ns, cpu: Cpu, thread: Tid) {
        let Some(number) = self.runs(time, cpu, thread) else { return };
        if time < self.due {
            self.push(time, replay::Event::Tick(cpu, number, 0));
        } else if let Some(member) = self.threads.get_mut(&thread) {
            member.tick.get_or_insert(time);
        }
    }

    /// A thread goes back to user space. If it has been ticked when a scan was due, it scans.
    fn scan(&mut self, time: Ns, cpu: Cpu, thread: Tid) {
        let Some(member) = self.threads.get_mut(&thread) else { return };
        let Some(landed) = member.tick.take() else { return };
        let ago = u32::try_from((time - landed) / US).unwrap_or(u32::MAX);
        let event = replay::Event::Tick(cpu, member.number, ago);
        if time >= self.due {
            self.due = time + PERIOD;
        }
        self.push(time, event);
    }

    fn fork(
        &mut self,
        time: Ns,
        parent: Tid,
        child: Tid,
        shares: Shares,
    ) -> Result<(), Insufficient> {
        let Some(parent) = self.number(parent) else {
            self.threads.remove(&child);
            return Ok(());
        };
        match shares {
            Shares::Unknown => return Err(Insufficient::UnknownMemory(child)),
            Shares::Nothing => drop(self.threads.remove(&child)),
            Shares::Process | Shares::Memory => {
                let number = self.count;
                self.count += 1;
                self.threads.insert(child, Member { number, runs_on: None, tick: None });
                self.push(time, replay::Event::Spawn(number, parent));
            }
        }
        Ok(())
    }

    /// A thread, which has shared the memory so far, replaces its program.
    fn leave(&mut self, time: Ns, cpu: Cpu, thread: Tid) {
        let Some(number) = self.runs(time, cpu, thread) else { return };
        self.push(time, replay::Event::Exit(cpu, number));
        self.set(time, cpu, None);
        self.threads.remove(&thread);
    }
}
