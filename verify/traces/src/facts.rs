//! Requirements for a recording of the workload, for every way of recording.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use percid_trace::Trace;
use percid_trace::event::{Cpu, Shares, State, Tid, UNKNOWN, What};

use crate::recording::Recording;
use crate::workload::Notes;

/// The counts of a recording.
#[derive(Debug)]
pub(crate) struct Figures {
    events: usize,
    inferred: usize,
    threads: usize,
    cpus: usize,
    turns: usize,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { events, inferred, threads, cpus, turns } = self;
        write!(f, "events={events} inferred={inferred} threads={threads} cpus={cpus} turns={turns}")
    }
}

/// Compares a recording with what the workload noted.
pub(crate) fn check(recording: &Recording, online: &[Cpu]) -> Result<Figures, String> {
    check_trace(&recording.recorded.trace, recording, online)
}

/// Compares a trace with what the workload noted in a recording.
fn check_trace(trace: &Trace, recording: &Recording, online: &[Cpu]) -> Result<Figures, String> {
    let Recording { recorded, notes, is_of_system } = recording;
    if trace.origin.lost > 0 {
        return Err(format!("{} events were lost", trace.origin.lost));
    }
    births(trace, notes)?;
    let turns = turns(trace, notes)?;
    run_times(&turns, notes)?;
    places(&turns, notes)?;
    if *is_of_system {
        if recorded.inferred > 0 {
            return Err(format!("{} switches were missing", recorded.inferred));
        }
        no_gaps(trace, online)?;
    }
    Ok(Figures {
        events: trace.events.len(),
        inferred: recorded.inferred,
        threads: notes.threads.len(),
        cpus: turns.iter().map(|turn| turn.cpu).collect::<BTreeSet<_>>().len(),
        turns: turns.len(),
    })
}

/// Checks that as many threads and children were created as the workload reports, and that all
/// ended.
fn births(trace: &Trace, notes: &Notes) -> Result<(), String> {
    let is_own = |thread: &Tid| *thread == notes.process || notes.threads.contains_key(thread);
    let (mut threads, mut children, mut ended) = (BTreeSet::new(), 0, BTreeSet::new());
    for event in &trace.events {
        match event.what {
            What::Fork { parent, child, shares } if is_own(&parent) => match shares {
                Shares::Process => drop(threads.insert(child)),
                Shares::Nothing | Shares::Memory => children += 1,
                Shares::Unknown => return Err(format!("what {child} shares is not known")),
            },
            What::Exit { thread } => drop(ended.insert(thread)),
            _ => {}
        }
    }
    let noted: BTreeSet<Tid> = notes.threads.keys().copied().collect();
    if threads != noted {
        return Err(format!("threads {threads:?} were created, {noted:?} noted"));
    }
    if children != notes.children {
        return Err(format!("{children} children were created, {} noted", notes.children));
    }
    match threads.difference(&ended).next() {
        Some(thread) => Err(format!("thread {thread} did not end")),
        None => Ok(()),
    }
}

/// A thread of the workload ran on a CPU.
#[derive(Debug, Clone, Copy)]
struct Turn {
    thread: Tid,
    cpu: Cpu,
    run_ns: u64,
}

/// Returns the turns. Checks that each turn of a thread ends on the CPU where it began, before the
/// next one begins, and that none follows the thread's end.
fn turns(trace: &Trace, notes: &Notes) -> Result<Vec<Turn>, String> {
    let mut running: HashMap<Tid, (Cpu, u64)> = HashMap::new();
    let mut dead = BTreeSet::new();
    let mut turns = Vec::new();
    for event in &trace.events {
        let What::Switch { prev, state, next } = event.what else { continue };
        if notes.threads.contains_key(&prev) {
            match running.remove(&prev) {
                Some((cpu, since)) if cpu == event.cpu => {
                    turns.push(Turn { thread: prev, cpu, run_ns: event.time - since });
                }
                found => return Err(format!("{event:?} ends a turn that is {found:?}")),
            }
            if state.is_dead() {
                dead.insert(prev);
            }
        }
        if notes.threads.contains_key(&next) {
            let before = running.insert(next, (event.cpu, event.time));
            if before.is_some() || dead.contains(&next) {
                return Err(format!("{event:?} begins a turn of a thread that runs or has ended"));
            }
        }
    }
    if dead.len() < notes.threads.len() || !running.is_empty() {
        return Err(format!("the last turns of {running:?} have no end, {} died", dead.len()));
    }
    Ok(turns)
}

/// Threads ran for about as long as they noted.
fn run_times(turns: &[Turn], notes: &Notes) -> Result<(), String> {
    let mut times: BTreeMap<Tid, u64> = BTreeMap::new();
    turns.iter().for_each(|turn| *times.entry(turn.thread).or_default() += turn.run_ns);
    for (thread, noted) in &notes.threads {
        let (run, noted) = (times.get(thread).copied().unwrap_or_default(), noted.run_ns);
        // An emulated CPU that stands still does so before a thread's time is taken or after it was
        // traced.
        if run < noted / 3 || run > 3 * noted + SLACK_NS {
            return Err(format!("thread {thread} ran for {run} ns, and noted {noted} ns"));
        }
    }
    Ok(())
}

/// Time that an emulated CPU may take to end a thread, in nanoseconds.
const SLACK_NS: u64 = 50_000_000;

/// Checks that threads ran on the CPUs that they noted.
fn places(turns: &[Turn], notes: &Notes) -> Result<(), String> {
    let mut places: BTreeMap<Tid, BTreeSet<Cpu>> = BTreeMap::new();
    for turn in turns {
        places.entry(turn.thread).or_default().insert(turn.cpu);
    }
    for (thread, noted) in &notes.threads {
        let found = places.get(thread).cloned().unwrap_or_default();
        if !noted.cpus.is_subset(&found) {
            let noted = &noted.cpus;
            return Err(format!("thread {thread} was on CPUs {found:?}, and noted {noted:?}"));
        }
    }
    Ok(())
}

/// Checks that every CPU continues with the thread to which it switched, from the first switch to
/// the last; every online CPU must have some.
fn no_gaps(trace: &Trace, online: &[Cpu]) -> Result<(), String> {
    let mut running: BTreeMap<Cpu, Tid> = BTreeMap::new();
    for event in &trace.events {
        let What::Switch { prev, next, .. } = event.what else { continue };
        let before = running.insert(event.cpu, next);
        if before.is_some_and(|before| before != prev && before != UNKNOWN && prev != UNKNOWN) {
            return Err(format!("{event:?} on a CPU that runs {before:?}"));
        }
    }
    let found: Vec<Cpu> = running.keys().copied().collect();
    if found != online {
        return Err(format!("CPUs {found:?} have switches, {online:?} are online"));
    }
    Ok(())
}

/// Runs the negative control: recordings of the system with a fault, each of which the checks must
/// detect.
pub(crate) fn control(recording: &Recording, online: &[Cpu]) -> Result<(), String> {
    for fault in FAULTS {
        let mut trace = recording.recorded.trace.clone();
        fault.commit(&mut trace, &recording.notes)?;
        if let Ok(figures) = check_trace(&trace, recording, online) {
            return Err(format!("{fault:?} was not noticed: {figures}"));
        }
    }
    Ok(())
}

/// The possible faults of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A switch away from a thread of the workload is missing.
    NoSwitch,
    /// A switch between others is missing.
    NoSwitchOfOthers,
    /// A switch has another CPU.
    OtherCpu,
    /// The beginning of a thread is missing.
    NoBirth,
}

const FAULTS: [Fault; 4] =
    [Fault::NoSwitch, Fault::NoSwitchOfOthers, Fault::OtherCpu, Fault::NoBirth];

impl Fault {
    /// Spoils an event in the middle of the workload.
    fn commit(self, trace: &mut Trace, notes: &Notes) -> Result<(), String> {
        let is_noted = |thread: &Tid| notes.threads.contains_key(thread);
        let fits = |what: &What| match (self, what) {
            (Fault::NoBirth, What::Fork { child, .. }) => is_noted(child),
            (Fault::NoSwitch | Fault::OtherCpu, What::Switch { prev, state, .. }) => {
                *state != State::DEAD && is_noted(prev)
            }
            (Fault::NoSwitchOfOthers, What::Switch { prev, next, .. }) => {
                !is_noted(prev) && !is_noted(next)
            }
            _ => false,
        };
        let places = (0..trace.events.len()).filter(|&nr| fits(&trace.events[nr].what));
        let places: Vec<usize> = places.collect();
        let &place = places.get(places.len() / 2).ok_or("nothing to spoil")?;
        match self {
            Fault::OtherCpu => trace.events[place].cpu += 1,
            _ => _ = trace.events.remove(place),
        }
        Ok(())
    }
}
