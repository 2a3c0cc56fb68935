//! A pass over a trace for all processes. Each event is passed to the processes that it may
//! concern.
//!
//! An event concerns a process if it is about one of its threads, or happens on a CPU where one of
//! them runs. It may be passed to other processes too: they ignore it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;

use percid_sim::conformance::Recording;
use percid_sim::run_control::RunControl;

use super::insufficient::Insufficient;
use super::reorderings::Slack;
use super::reporting;
use super::translation::Translation;
use crate::event::{Cpu, Event, Shares, Tid, What};
use crate::trace::Trace;
use percid_sim::cpu_list;

/// A recording, and when else each of its steps may have happened.
pub(super) type Translated = (Recording, Vec<Slack>);

/// Translates the events of each process since it started its last program. Adds processed events
/// to `progress`; if it is stopped, no recording is complete, and the result is empty.
pub(super) fn translate_all(
    trace: &Trace,
    processes: &[Tid],
    progress: &RunControl,
) -> Vec<Result<Translated, Insufficient>> {
    let wanted: HashSet<Tid> = processes.iter().copied().collect();
    let Some(mut dispatcher) = Dispatcher::new(trace, &wanted, progress) else { return Vec::new() };
    let possible = possible_cpus(trace);
    let taken = |&process| dispatcher.end(process, possible);
    processes.iter().map(taken).collect()
}

fn possible_cpus(trace: &Trace) -> u32 {
    let seen = trace.largest_cpu().unwrap_or(0).saturating_add(1);
    trace.origin.possible_cpus.map_or(seen, |possible| possible.max(seen))
}

/// Events between two looks at whether to stop.
const AT_ONCE: usize = 4096;

/// The place of a process among those that have begun.
type BegunIndex = usize;

struct Dispatcher<'a> {
    trace: &'a Trace,
    begun: Vec<Begun<'a>>,
    of_process: HashMap<Tid, BegunIndex>,
    /// Whose threads have had this number.
    of_thread: HashMap<Tid, Vec<BegunIndex>>,
    /// Whose threads run on the CPU.
    on_cpu: HashMap<Cpu, Vec<BegunIndex>>,
    allowed: Allowed,
    tells_changes_only: bool,
}

struct Begun<'a> {
    start: Event,
    /// Number of CPUs that it may use, if that is known.
    allowed: Option<u32>,
    translation: Translation<'a>,
    failed: Option<Insufficient>,
}

impl<'a> Dispatcher<'a> {
    /// Nothing if it was stopped.
    fn new(
        trace: &'a Trace,
        wanted: &HashSet<Tid>,
        progress: &RunControl,
    ) -> Option<Dispatcher<'a>> {
        let starts = last_starts(&trace.events, wanted);
        let guests = guests(&trace.events);
        let mut dispatcher = Dispatcher {
            trace,
            begun: Vec::new(),
            of_process: HashMap::new(),
            of_thread: HashMap::new(),
            on_cpu: HashMap::new(),
            allowed: Allowed::default(),
            tells_changes_only: reporting::tells_changes_only(&trace.events),
        };
        let mut concerned = Vec::new();
        for (nr, events) in trace.events.chunks(AT_ONCE).enumerate() {
            if progress.stop.load(Relaxed) {
                return None;
            }
            for (place, event) in (nr * AT_ONCE..).zip(events) {
                dispatcher.tell(event, guests.contains(&place), &mut concerned);
                dispatcher.allowed.take(event, trace);
                if let Some(&process) = starts.get(&place) {
                    dispatcher.begin(process, *event);
                }
            }
            progress.done.fetch_add(events.len() as u64, Relaxed);
        }
        Some(dispatcher)
    }

    fn begin(&mut self, process: Tid, start: Event) {
        let place = self.begun.len();
        self.begun.push(Begun {
            start,
            allowed: self.allowed.get(process),
            translation: Translation::new(self.trace, start, process, self.tells_changes_only),
            failed: None,
        });
        self.of_process.insert(process, place);
        note(self.of_thread.entry(process).or_default(), place);
        note(self.on_cpu.entry(start.cpu).or_default(), place);
    }

    /// `concerned` is memory to work in.
    fn tell(&mut self, event: &Event, is_guest: bool, concerned: &mut Vec<BegunIndex>) {
        concerned.clear();
        for thread in threads(event.what).into_iter().flatten() {
            concerned.extend(self.of_thread.get(&thread).into_iter().flatten());
        }
        concerned.extend(self.on_cpu.get(&event.cpu).into_iter().flatten());
        concerned.sort_unstable();
        concerned.dedup();
        concerned.iter().for_each(|&place| self.tell_one(place, event, is_guest));
    }

    fn tell_one(&mut self, place: BegunIndex, event: &Event, is_guest: bool) {
        let Begun { translation, failed, .. } = &mut self.begun[place];
        if failed.is_some() {
            return;
        }
        *failed = translation.take(event, is_guest).err();
        if let What::Fork { child, .. } = event.what {
            if translation.has_member(child) {
                note(self.of_thread.entry(child).or_default(), place);
            }
        }
        // No thread begins to run on another CPU than that of the event.
        let there = self.on_cpu.entry(event.cpu).or_default();
        match translation.runs_on(event.cpu) {
            true => note(there, place),
            false => there.retain(|&other| other != place),
        }
    }

    /// Returns the result for a process.
    fn end(&mut self, process: Tid, possible: u32) -> Result<Translated, Insufficient> {
        let release = self.trace.origin.release.clone().ok_or(Insufficient::NoRelease)?;
        if self.trace.origin.lost > 0 {
            return Err(Insufficient::Lost(self.trace.origin.lost));
        }
        let place = self.of_process.get(&process).copied();
        let begun = &mut self.begun[place.ok_or(Insufficient::BeganBefore(process))?];
        if let Some(failed) = &begun.failed {
            return Err(failed.clone());
        }
        let (steps, slacks) = begun.translation.take_steps().ok_or(Insufficient::NoIds(process))?;
        let allowed = begun.allowed.unwrap_or(possible).min(possible);
        let recording = Recording { release, possible, allowed, steps };
        recording.check().map_err(|(time, expected)| {
            Insufficient::Inconsistent(begun.start.time.saturating_add(time), expected)
        })?;
        Ok((recording, slacks))
    }
}

fn note(places: &mut Vec<BegunIndex>, place: BegunIndex) {
    if !places.contains(&place) {
        places.push(place);
    }
}

/// The threads that an event is about.
fn threads(what: What) -> [Option<Tid>; 2] {
    match what {
        What::Switch { prev, next, .. } => [Some(prev), Some(next)],
        What::Fork { parent, child, .. } => [Some(parent), Some(child)],
        What::Id { thread, .. }
        | What::Tick { thread }
        | What::Exec { thread, .. }
        | What::Exit { thread }
        | What::Wakeup { thread, .. }
        | What::Migrate { thread, .. }
        | What::Affinity { thread, .. } => [Some(thread), None],
        What::Member { .. } | What::Name { .. } => [None, None],
    }
}

/// The places where processes start their last programs.
fn last_starts(events: &[Event], wanted: &HashSet<Tid>) -> HashMap<usize, Tid> {
    let mut last: HashMap<Tid, usize> = HashMap::new();
    for (place, event) in events.iter().enumerate() {
        match event.what {
            What::Exec { thread, .. } if wanted.contains(&thread) => {
                last.insert(thread, place);
            }
            _ => {}
        }
    }
    last.into_iter().map(|(process, place)| (place, process)).collect()
}

/// The places where threads are created that share the memory only until they replace their
/// programs.
fn guests(events: &[Event]) -> HashSet<usize> {
    let (mut guests, mut replacing) = (HashSet::new(), HashSet::new());
    for (place, event) in events.iter().enumerate().rev() {
        match event.what {
            What::Exec { thread, .. } => drop(replacing.insert(thread)),
            What::Fork { child, shares, .. }
                if replacing.remove(&child) && shares == Shares::Memory =>
            {
                guests.insert(place);
            }
            _ => {}
        }
    }
    guests
}

/// Number of CPUs that each thread may use, by its own affinity or that of the nearest ancestor for
/// which it is known.
#[derive(Default)]
struct Allowed(HashMap<Tid, u32>);

impl Allowed {
    fn take(&mut self, event: &Event, trace: &Trace) {
        match event.what {
            What::Affinity { thread, cpus } => {
                self.0.extend(cpu_list::count(trace.texts.get(cpus)).map(|count| (thread, count)));
            }
            What::Fork { parent, child, .. } => match self.get(parent) {
                Some(count) => drop(self.0.insert(child, count)),
                None => drop(self.0.remove(&child)),
            },
            _ => {}
        }
    }

    fn get(&self, thread: Tid) -> Option<u32> {
        self.0.get(&thread).copied()
    }
}

#[cfg(test)]
mod tests {
    use percid_sim::random::Random;

    use super::*;
    use crate::event::State;
    use crate::trace::Origin;

    const PROCESSES: [Tid; 3] = [5, 6, 7];

    /// Any events of a few threads, most of them the ones that matter.
    fn anything(random: &mut Random) -> What {
        let mut below = |end: u64| random.below(end) as u32;
        let (a, b, cpu) = (4 + below(6), 4 + below(6), below(3));
        match below(12) {
            0 => What::Exec { thread: a, old: a },
            1 => What::Exit { thread: a },
            2 => What::Tick { thread: a },
            3 => What::Fork { parent: a, child: b, shares: Shares::Process },
            4 => What::Fork { parent: a, child: b, shares: Shares::Memory },
            5 => What::Migrate { thread: a, from: cpu, to: below(3) },
            6 => What::Wakeup { thread: a, target: cpu, stage: crate::event::Stage::Woken },
            7 | 8 => What::Id { thread: a, node: 0, id: cpu },
            _ => What::Switch { prev: a, state: State(1), next: b },
        }
    }

    /// Returns the result of a process's translation that gets every event of the trace.
    fn told_everything(trace: &Trace, process: Tid) -> Option<Vec<percid_sim::conformance::Step>> {
        let wanted = HashSet::from([process]);
        let (start, _) = last_starts(&trace.events, &wanted).into_iter().next()?;
        let guests = guests(&trace.events);
        let changes_only = reporting::tells_changes_only(&trace.events);
        let mut translation = Translation::new(trace, trace.events[start], process, changes_only);
        for (place, event) in trace.events.iter().enumerate().skip(start + 1) {
            translation.take(event, guests.contains(&place)).ok()?;
        }
        translation.take_steps().map(|(steps, _)| steps)
    }

    #[test]
    fn each_process_is_told_all_that_concerns_it() {
        let mut compared = 0;
        for seed in 0..20_000 {
            let mut random = Random::new(seed);
            let event = |nr: u64| {
                let cpu = random.below(3) as Cpu;
                Event { time: nr * 9_000_000, cpu, what: anything(&mut random) }
            };
            let events = (0..60).map(event).collect();
            let trace = Trace { events, origin: Origin::default(), ..Trace::default() };
            let wanted = PROCESSES.into_iter().collect();
            let dispatcher = Dispatcher::new(&trace, &wanted, &RunControl::default());
            let mut dispatcher = dispatcher.expect("not stopped");
            for process in PROCESSES {
                let place = dispatcher.of_process.get(&process).copied();
                let steps = place.and_then(|place| {
                    dispatcher.begun[place].translation.take_steps().map(|(steps, _)| steps)
                });
                compared += steps.as_ref().map_or(0, Vec::len);
                assert_eq!(steps, told_everything(&trace, process), "seed {seed}, {process}");
            }
        }
        assert!(compared > 100_000, "{compared} steps");
    }

    #[test]
    fn a_stopped_one_has_nothing() {
        let events = vec![Event { time: 0, cpu: 0, what: What::Exec { thread: 5, old: 5 } }];
        let trace = Trace { events, origin: Origin::default(), ..Trace::default() };
        let progress = RunControl::default();
        assert_eq!(translate_all(&trace, &[5], &progress).len(), 1);
        progress.stop.store(true, Relaxed);
        assert!(translate_all(&trace, &[5], &progress).is_empty());
    }
}
