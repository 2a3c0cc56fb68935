//! Recordings of some threads only.
//!
//! Where the kernel was told to report a command's threads and no others, a switch shows if one of
//! them begins or ends a turn. What a CPU does between two of these turns is not in the recording:
//! neither that it idles, nor what else it runs, nor for how long. The threads that stand on the
//! other side of such a switch are seen for that moment only.

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
    /// Those of a trace.
    pub(crate) fn of(trace: &Trace) -> Followed {
        let is_filtered = trace.origin.coverage.filtered;
        Followed { threads: is_filtered.then(|| gaps::known(&trace.events)) }
    }

    /// `true` if this is one of them.
    pub(crate) fn has(&self, thread: Tid) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(&thread))
    }

    /// What an event says of the threads that are followed. Others, and the idle thread, are not
    /// known in its place; `None` if nothing remains.
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

/// `true` if events look like those of some threads: each switch is from or to a thread of which more
/// is told, and CPUs go on with other threads than those to which they had switched.
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
    fn others_are_not_known() {
        let member = What::Member { thread: 7, process: 7 };
        let wakeup = What::Wakeup { thread: 20, target: 0, stage: crate::event::Stage::Woken };
        let events = events(&[member, switch(7, 20), wakeup, switch(IDLE, 7), switch(20, 30)]);
        let mut trace = Trace { events, ..Trace::default() };
        let seen = |trace: &Trace| -> Vec<What> {
            let followed = Followed::of(trace);
            let seen = trace.events.iter().filter_map(|event| followed.seen(event));
            seen.map(|event| event.what).collect()
        };
        assert_eq!(seen(&trace).len(), 5, "all of it if all was recorded");
        trace.origin.coverage.filtered = true;
        let came = What::Switch { prev: UNKNOWN, state: State::RUNNABLE, next: 7 };
        assert_eq!(seen(&trace), [member, switch(7, UNKNOWN), came]);
    }
}
