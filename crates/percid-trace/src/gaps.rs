//! Switches that a trace lacks, and that show by what happens afterwards.
//!
//! Kernels have been seen (6.18 as a guest of a hypervisor) that do not trace most of the switches
//! away from the idle thread, and do not count them as lost either. Then a thread does something on
//! a CPU where, by the trace, another one runs.

use std::collections::{HashMap, HashSet};

use crate::event::{Cpu, Event, IDLE, State, Tid, UNKNOWN, What};
use crate::trace::Trace;

/// Adds the switches without which the events of a CPU do not fit together. Each is placed right
/// before the first event that shows it. So the thread may have run for a while already: with
/// [`What::Id`] for a few microseconds.
///
/// If a trace is of some processes only, gaps between switches of other threads belong to it, and
/// are left. Returns how many switches were added, and counts them in the trace's [`Coverage`].
///
/// [`Coverage`]: crate::trace::Coverage
pub fn close(trace: &mut Trace) -> usize {
    let added = missing(&trace.events);
    insert(&mut trace.events, &added);
    trace.origin.coverage.inferred += added.len() as u64;
    added.len()
}

/// The switches that are missing, each with the place of the event that shows it.
pub(crate) fn missing(events: &[Event]) -> Vec<(usize, Event)> {
    let known = known(events);
    let mut finder = Finder::new(&known);
    let places = events.iter().enumerate();
    places.filter_map(|(place, event)| Some((place, finder.missing_before(event)?))).collect()
}

/// Finds the switches that are missing, event by event.
pub(crate) struct Finder<'a> {
    known: &'a HashSet<Tid>,
    course: Course,
}

impl Finder<'_> {
    /// Makes a finder for a trace with these [known](learn) threads.
    pub(crate) fn new(known: &HashSet<Tid>) -> Finder<'_> {
        Finder { known, course: Course::default() }
    }

    /// The switch that is missing before the next event.
    pub(crate) fn missing_before(&mut self, event: &Event) -> Option<Event> {
        self.course.missing_before(event, self.known)
    }
}

/// The state by which missing switches are detected.
#[derive(Debug, Default)]
pub(crate) struct Course {
    running: HashMap<Cpu, Tid>,
    /// The threads that cannot have run on a CPU since before the trace began.
    seen: HashSet<Tid>,
}

impl Course {
    /// The switch that is missing before the next event, if these threads are [known](learn).
    pub(crate) fn missing_before(&mut self, event: &Event, known: &HashSet<Tid>) -> Option<Event> {
        if let What::Fork { child, .. } = event.what {
            self.seen.insert(child);
        }
        let current = current(event)?;
        let next = if let What::Switch { next, .. } = event.what { next } else { current };
        let came = self.running.insert(event.cpu, next);
        // At the beginning, the thread that runs on a CPU may have run there before.
        let was_there = came.is_none() && !self.seen.contains(&current);
        let prev = if was_there { current } else { came.unwrap_or(UNKNOWN) };
        self.seen.extend([current, next]);
        let belongs = known.contains(&prev) || known.contains(&current);
        let what = What::Switch { prev, state: State::RUNNABLE, next: current };
        (prev != current && belongs).then_some(Event { what, ..*event })
    }
}

/// The thread that ran where an event happened.
pub(crate) fn current(event: &Event) -> Option<Tid> {
    match event.what {
        What::Switch { prev, .. } => Some(prev),
        What::Id { thread, .. }
        | What::Tick { thread }
        | What::Exit { thread }
        | What::Exec { thread, .. } => Some(thread),
        _ => None,
    }
}

/// Returns the threads of which the trace contains more than that they were switched to and woken.
pub(crate) fn known(events: &[Event]) -> HashSet<Tid> {
    let mut known = HashSet::new();
    events.iter().for_each(|event| learn(&mut known, event));
    known
}

/// Adds the thread for which an event contains more than that.
pub(crate) fn learn(known: &mut HashSet<Tid>, event: &Event) {
    let thread = match event.what {
        What::Member { thread, .. } => Some(thread),
        What::Fork { child, .. } => Some(child),
        What::Switch { .. } => None,
        _ => current(event),
    };
    known.extend(thread.filter(|&thread| thread != IDLE));
}

/// Inserts events, each before the one at its place; the places must not decrease. The events
/// after them are moved once, from the end on.
fn insert(events: &mut Vec<Event>, added: &[(usize, Event)]) {
    let Some(&(_, any)) = added.first() else { return };
    let mut from = events.len();
    events.reserve_exact(added.len());
    events.resize(from + added.len(), any);
    let mut to = events.len();
    for &(place, event) in added.iter().rev() {
        let behind = from - place;
        events.copy_within(place..from, to - behind);
        to -= behind + 1;
        events[to] = event;
        from = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Shares;

    fn trace(events: &[(u64, What)]) -> Trace {
        let events = events.iter().map(|&(time, what)| Event { time, cpu: 1, what }).collect();
        Trace { events, ..Trace::default() }
    }

    fn switch(prev: Tid, next: Tid) -> What {
        What::Switch { prev, state: State::RUNNABLE, next }
    }

    #[test]
    fn a_thread_that_does_something_runs() {
        let id = What::Id { thread: 7, node: 0, id: 0 };
        let mut lacking = trace(&[(1, switch(7, IDLE)), (5, id), (9, switch(7, IDLE))]);
        assert_eq!(close(&mut lacking), 1);
        let whole =
            trace(&[(1, switch(7, IDLE)), (5, switch(IDLE, 7)), (5, id), (9, switch(7, IDLE))]);
        assert_eq!(lacking.events, whole.events);
        assert_eq!(close(&mut lacking), 0, "nothing is missing any more");
    }

    #[test]
    fn a_thread_that_runs_at_the_beginning_was_there_and_one_that_is_new_was_not() {
        let member = What::Member { thread: 7, process: 7 };
        let mut old = trace(&[(0, member), (5, switch(7, IDLE))]);
        assert_eq!(close(&mut old), 0);
        let fork = What::Fork { parent: 6, child: 7, shares: Shares::Process };
        let mut new = trace(&[(0, fork), (5, switch(7, IDLE))]);
        assert_eq!(close(&mut new), 1);
        assert_eq!(new.events[1].what, switch(UNKNOWN, 7));
    }

    #[test]
    fn gaps_between_threads_of_others_are_left() {
        let member = What::Member { thread: 7, process: 7 };
        let mut trace = trace(&[(0, member), (1, switch(7, 20)), (5, switch(30, 7))]);
        assert_eq!(close(&mut trace), 0);
    }

    #[test]
    fn a_switch_away_may_be_missing_too() {
        let member = What::Member { thread: 7, process: 7 };
        let mut trace = trace(&[(0, member), (1, switch(20, 7)), (5, switch(30, 20))]);
        assert_eq!(close(&mut trace), 1);
        assert_eq!(trace.events[2].what, switch(7, 30));
    }
}
