//! Recordings of some threads only.
//!
//! If the kernel was told to report a command's threads and no others, it reports a switch if one
//! of them begins or ends a turn. The recording does not contain what a CPU does between two of
//! these turns: neither that it idles, nor what else it runs, nor for how long. The threads on the
//! other side of such a switch are known for that moment only.

use std::collections::{HashMap, HashSet};

use crate::event::{Cpu, Event, IDLE, State, Tid, UNKNOWN, What};
use crate::gaps;
use crate::trace::Trace;

/// The threads that a recording follows.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// `None`: all of them.
    threads: Option<HashSet<Tid>>,
}

impl Followed {
    /// Returns the threads that a trace follows.
    pub(crate) fn from_trace(trace: &Trace) -> Followed {
        let is_filtered = trace.origin.coverage.filtered;
        Followed { threads: is_filtered.then(|| followed(&trace.events)) }
    }

    /// `true` if this is one of them.
    pub(crate) fn has(&self, thread: Tid) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(&thread))
    }

    /// Returns the part of an event that concerns the threads that are followed. Others, and the
    /// idle thread, become unknown; `None` if nothing remains.
    pub(crate) fn seen(&self, event: &Event) -> Option<Event> {
        let seen = |thread| if self.has(thread) { thread } else { UNKNOWN };
        let what = match event.what {
            What::Switch { prev, state, next } => {
                let state = if self.has(prev) { state } else { State::RUNNABLE };
                let (prev, next) = (seen(prev), seen(next));
                (prev != UNKNOWN || next != UNKNOWN).then_some(What::Switch { prev, state, next })
            }
            What::Wakeup { thread, .. } | What::Migrate { thread, .. } => {
                self.has(thread).then_some(event.what)
            }
            what => Some(what),
        }?;
        Some(Event { what, ..*event })
    }
}

/// Returns `true` if events look like those of some threads: each switch is from or to a thread
/// with further events, and CPUs go on with other threads than those to which they had switched.
#[cfg_attr(not(feature = "files"), allow(dead_code, reason = "only files are of unknown origin"))]
pub(crate) fn shows(events: &[Event]) -> bool {
    let known = gaps::known(events);
    let mut running: HashMap<Cpu, Tid> = HashMap::new();
    let mut breaks = 0u64;
    for event in events {
        let What::Switch { prev, next, .. } = event.what else { continue };
        if !known.contains(&prev) && !known.contains(&next) {
            return false;
        }
        let before = running.insert(event.cpu, next);
        let is_foreign = |thread| thread == IDLE || !known.contains(&thread);
        breaks += u64::from(before.is_some_and(|before| before != prev && is_foreign(before)));
    }
    breaks > 0
}

/// Returns the threads that a recording of some threads follows: those for which it contains more
/// than that they ran. If it lists no members, these are not all: a thread may have run and nothing
/// else.
fn followed(events: &[Event]) -> HashSet<Tid> {
    let known = gaps::known(events);
    if events.iter().any(|event| matches!(event.what, What::Member { .. })) {
        return known;
    }
    by_breaks(events).unwrap_or(known)
}

/// Minimum number of breaks: fewer may have other causes.
#[cfg_attr(not(feature = "files"), allow(dead_code, reason = "only files are of unknown origin"))]
const FEW: u64 = 8;

/// `true` if switches show, without anything else, that only those of some threads were recorded.
#[cfg_attr(not(feature = "files"), allow(dead_code, reason = "only files are of unknown origin"))]
pub(crate) fn shows_by_breaks(events: &[Event]) -> bool {
    by_breaks(events).is_some()
}

/// Returns the threads that a recording follows, by its breaks: places where a CPU goes on with
/// another thread than that to which it had switched. The threads before and after such a place are
/// not followed, or the switches between them would be recorded. If then all switches have a thread
/// on one side that is at no break, these are followed. In a recording of all threads that lost
/// some events, or whose kernel does not report switches from idle, threads at breaks switch to
/// each other.
fn by_breaks(events: &[Event]) -> Option<HashSet<Tid>> {
    let mut running: HashMap<Cpu, Tid> = HashMap::new();
    let mut foreign = HashSet::from([IDLE, UNKNOWN]);
    let mut breaks = 0;
    let switches = || {
        events.iter().filter_map(|event| match event.what {
            What::Switch { prev, next, .. } => Some((event.cpu, prev, next)),
            _ => None,
        })
    };
    for (cpu, prev, next) in switches() {
        if let Some(before) = running.insert(cpu, next).filter(|&before| before != prev) {
            breaks += 1;
            foreign.extend([before, prev]);
        }
    }
    let mut followed = HashSet::new();
    for (_, prev, next) in switches() {
        if foreign.contains(&prev) && foreign.contains(&next) {
            return None;
        }
        followed.extend([prev, next].into_iter().filter(|thread| !foreign.contains(thread)));
    }
    (breaks >= FEW).then_some(followed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(whats: &[What]) -> Vec<Event> {
        let event = |(time, &what)| Event { time, cpu: 0, what };
        (0..).zip(whats).map(event).collect()
    }

    fn switch(prev: Tid, next: Tid) -> What {
        What::Switch { prev, state: State::SLEEPING, next }
    }

    #[test]
    fn a_recording_of_some_threads_shows_by_its_switches() {
        let member = What::Member { thread: 7, process: 7 };
        assert!(shows(&events(&[member, switch(7, 20), switch(30, 7)])));
        assert!(!shows(&events(&[member, switch(7, 20), switch(20, 7)])), "nothing is missing");
        assert!(!shows(&events(&[member, switch(7, 20), switch(20, 30), switch(40, 7)])));
    }

    #[test]
    fn breaks_show_who_is_followed() {
        // 7 and 8 are followed; what else runs is there when one of them comes or goes.
        let seen = [switch(7, 20), switch(21, 8), switch(8, 7), switch(7, IDLE), switch(22, 7)];
        let filtered = events(&seen.repeat(4));
        assert_eq!(by_breaks(&filtered), Some(HashSet::from([7, 8])));
        assert!(shows_by_breaks(&filtered) && !shows_by_breaks(&filtered[..10]), "few breaks");
        // All of them, with what happened in between, with some of it lost, and without what no kernel tells.
        let all = [
            switch(7, 20),
            switch(20, 21),
            switch(21, 8),
            switch(8, 7),
            switch(7, IDLE),
            switch(IDLE, 22),
            switch(22, 7),
        ];
        assert!(!shows_by_breaks(&events(&all.repeat(9))), "no breaks");
        let lost: Vec<What> = all.repeat(99).into_iter().step_by(3).collect();
        assert!(!shows_by_breaks(&events(&lost)));
        let not_from_idle = [switch(7, IDLE), switch(8, IDLE), switch(7, 8), switch(8, IDLE)];
        assert!(!shows_by_breaks(&events(&not_from_idle.repeat(9))));
    }

    #[test]
    fn others_are_not_known() {
        let member = What::Member { thread: 7, process: 7 };
        let wakeup = What::Wakeup { thread: 20, target: 0, stage: crate::event::Stage::Woken };
        let events = events(&[member, switch(7, 20), wakeup, switch(IDLE, 7), switch(20, 30)]);
        let mut trace = Trace { events, ..Trace::default() };
        let seen = |trace: &Trace| -> Vec<What> {
            let followed = Followed::from_trace(trace);
            let seen = trace.events.iter().filter_map(|event| followed.seen(event));
            seen.map(|event| event.what).collect()
        };
        assert_eq!(seen(&trace).len(), 5, "all of it if all was recorded");
        trace.origin.coverage.filtered = true;
        let came = What::Switch { prev: UNKNOWN, state: State::RUNNABLE, next: 7 };
        assert_eq!(seen(&trace), [member, switch(7, UNKNOWN), came]);
    }
}
