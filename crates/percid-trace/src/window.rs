//! A part of a recording, from one time to another.
//!
//! The part that is cut out is a separate trace. It begins with the state at that time: the names
//! of the living threads, their processes, and the CPUs that they may use.

use std::collections::{HashMap, HashSet};

use crate::counters::Counted;
use crate::event::{Event, IDLE, Tid, UNKNOWN, What};
use crate::interner::Text;
use crate::numa;
use crate::subject;
use crate::threads::Threads;
use crate::trace::Trace;

/// A span of time, in nanoseconds since the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Start of the span.
    pub from: u64,
    /// End of the span. Events at this time are not in it.
    pub to: u64,
}

impl Default for Window {
    /// Returns a window that contains all of the recording.
    fn default() -> Window {
        Window { from: 0, to: u64::MAX }
    }
}

impl Window {
    /// Returns `true` if a time is in the window.
    pub fn contains(&self, time: u64) -> bool {
        (self.from..self.to).contains(&time)
    }

    /// Returns the length of the part of a span that is in the window, in nanoseconds.
    pub fn overlap(&self, since: u64, until: u64) -> u64 {
        until.min(self.to).saturating_sub(since.max(self.from))
    }

    /// Returns the part of a trace that is in the window.
    pub fn cut(&self, trace: &Trace) -> Trace {
        let begin = trace.events.first().map_or(0, |event| event.time);
        let from = begin.saturating_add(self.from);
        let to = begin.saturating_add(self.to);
        let first = trace.events.partition_point(|event| event.time < from);
        let last = trace.events.partition_point(|event| event.time < to).max(first);
        let (before, rest) = trace.events.split_at(first);
        let (within, after) = rest.split_at(last - first);
        let mut events = known(before, within, after, from);
        events.extend_from_slice(within);
        let is_look = |what: &numa::What| {
            matches!(what, numa::What::Process { .. } | numa::What::Region { .. })
        };
        let in_time =
            |event: &&numa::Event| event.time < to && (event.time >= from || is_look(&event.what));
        let numa = trace.numa.iter().filter(in_time).copied().collect();
        let ends = |counted: &&Counted| (from..to).contains(&counted.time);
        let counted = trace.counted.iter().filter(ends).copied().collect();
        let mut origin = trace.origin.clone();
        let was_seen =
            |cpu: &u32| before.iter().any(|event| event.cpu == *cpu && event.was_recorded());
        origin.late_cpus.retain(|cpu| !was_seen(cpu));
        if !origin.subject.is_empty() && !before.is_empty() {
            origin.subject = subject::after(&origin.subject, before);
        }
        Trace { origin, events, numa, counted, texts: trace.texts.clone() }
    }
}

/// Returns what is known about the threads that live when the window begins, as events of that
/// time.
fn known(before: &[Event], within: &[Event], after: &[Event], time: u64) -> Vec<Event> {
    if before.is_empty() {
        return Vec::new();
    }
    let mut told = Told::default();
    told.tell_living(before);
    let is_member = |event: &Event| matches!(event.what, What::Member { .. });
    match [before, within, after].iter().any(|part| part.iter().any(is_member)) {
        true => told.tell_later_members(after),
        false => told.tell_strangers(within),
    }
    told.events.into_iter().map(|what| Event { time, cpu: 0, what }).collect()
}

/// The events at the beginning of a window, which describe the living threads.
#[derive(Default)]
struct Told {
    events: Vec<What>,
    /// The threads whose process is listed, or shown by their creation.
    listed: HashSet<Tid>,
}

impl Told {
    fn tell_living(&mut self, before: &[Event]) {
        let mut threads = Threads::default();
        let mut allowed: HashMap<Tid, Text> = HashMap::new();
        for event in before {
            threads.take(&event.what);
            match event.what {
                What::Affinity { thread, cpus } => drop(allowed.insert(thread, cpus)),
                What::Fork { child, .. } => drop(allowed.remove(&child)),
                _ => {}
            }
        }
        let mut living: Vec<Tid> = threads.living().collect();
        living.sort_unstable();
        for tid in living {
            let Some(thread) = threads.find(tid).map(|number| threads.get(number)) else {
                continue;
            };
            self.events.extend(thread.name.map(|name| What::Name { thread: tid, name }));
            if let Some(process) = thread.process {
                self.tell_member(tid, process);
            }
            let cpus = allowed.get(&tid);
            self.events.extend(cpus.map(|&cpus| What::Affinity { thread: tid, cpus }));
        }
    }

    fn tell_member(&mut self, thread: Tid, process: Tid) {
        if thread != IDLE && thread != UNKNOWN && self.listed.insert(thread) {
            self.events.push(What::Member { thread, process });
        }
    }

    /// Adds the members of processes that the trace lists only after the window.
    fn tell_later_members(&mut self, after: &[Event]) {
        for event in after {
            match event.what {
                What::Member { thread, process } => self.tell_member(thread, process),
                What::Fork { child, .. } => drop(self.listed.insert(child)),
                _ => {}
            }
        }
    }

    /// Adds a process for each thread that is not listed, if others are: it would be taken for a
    /// kernel thread. This is for traces that show processes only by their creation and list no
    /// members.
    fn tell_strangers(&mut self, within: &[Event]) {
        if self.listed.is_empty() {
            return;
        }
        for event in within {
            match event.what {
                What::Switch { prev, next, .. } => {
                    [prev, next].into_iter().for_each(|thread| self.tell_member(thread, thread));
                }
                What::Fork { child, .. } => drop(self.listed.insert(child)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Shares, State};

    fn trace() -> Trace {
        let mut trace = Trace::default();
        let name = trace.texts.intern(b"worker");
        let cpus = trace.texts.intern(b"0-1");
        let switch = |prev, next| What::Switch { prev, state: State::SLEEPING, next };
        let all = [
            (100, What::Member { thread: 7, process: 7 }),
            (110, What::Fork { parent: 7, child: 8, shares: Shares::Process }),
            (110, What::Name { thread: 8, name }),
            (120, What::Affinity { thread: 8, cpus }),
            (130, switch(7, 8)),
            (140, switch(8, 7)),
            (150, What::Member { thread: 9, process: 9 }),
        ];
        trace.events = all.iter().map(|&(time, what)| Event { time, cpu: 1, what }).collect();
        trace
    }

    #[test]
    fn a_window_has_its_events_and_who_was_there() {
        let trace = trace();
        let cut = Window { from: 35, to: 45 }.cut(&trace);
        let told: Vec<What> = cut.events.iter().map(|event| event.what).collect();
        let name = Text(0);
        let expected = [
            What::Member { thread: 7, process: 7 },
            What::Name { thread: 8, name },
            What::Member { thread: 8, process: 7 },
            What::Affinity { thread: 8, cpus: Text(1) },
            What::Member { thread: 9, process: 9 },
            trace.events[5].what,
        ];
        assert_eq!(told, expected);
        assert_eq!(cut.events[0].time, 135, "time begins with the window");
    }

    #[test]
    fn all_of_it_is_the_trace_itself_and_an_empty_window_has_no_switch() {
        let trace = trace();
        assert_eq!(Window::default().cut(&trace).events, trace.events);
        let none = Window { from: 1000, to: 2000 }.cut(&trace);
        assert!(!none.events.iter().any(|event| matches!(event.what, What::Switch { .. })));
        assert!(Window { from: 9, to: 3 }.cut(&Trace::default()).events.is_empty());
        let backwards = Window { from: 40, to: 10 }.cut(&trace);
        assert!(!backwards.events.iter().any(|event| event.time < 140));
    }

    #[test]
    fn a_window_is_about_the_processes_that_live() {
        let mut trace = trace();
        trace.origin.subject = vec![7];
        let process = What::Fork { parent: 8, child: 30, shares: Shares::Nothing };
        trace.events.insert(4, Event { time: 125, cpu: 1, what: process });
        assert_eq!(Window { from: 5, to: 45 }.cut(&trace).origin.subject, [7]);
        assert_eq!(Window { from: 35, to: 45 }.cut(&trace).origin.subject, [7, 30]);
        trace.origin.subject.clear();
        assert!(Window { from: 35, to: 45 }.cut(&trace).origin.subject.is_empty());
    }

    #[test]
    fn threads_that_are_gone_are_not_told_of() {
        let mut trace = trace();
        let dead = What::Switch { prev: 8, state: State::DEAD, next: IDLE };
        trace.events.push(Event { time: 160, cpu: 1, what: dead });
        trace.events.push(Event { time: 170, cpu: 1, what: What::Tick { thread: 7 } });
        let cut = Window { from: 65, to: 90 }.cut(&trace);
        let of_8 = |event: &&Event| matches!(event.what, What::Member { thread: 8, .. });
        assert_eq!(cut.events.iter().filter(of_8).count(), 0);
        let earlier = Window { from: 55, to: 90 }.cut(&trace);
        assert_eq!(earlier.events.iter().filter(of_8).count(), 1, "the control");
    }

    #[test]
    fn where_no_members_are_listed_those_who_were_not_created_are_by_themselves() {
        let mut trace = trace();
        trace.events.retain(|event| !matches!(event.what, What::Member { .. }));
        let members = |cut: Trace| {
            let member = |event: &Event| match event.what {
                What::Member { thread, process } => Some((thread, process)),
                _ => None,
            };
            cut.events.iter().filter_map(member).collect::<Vec<_>>()
        };
        assert_eq!(members(Window { from: 25, to: 35 }.cut(&trace)), [(8, 7), (7, 7)]);
        trace.events.retain(|event| !matches!(event.what, What::Fork { .. }));
        assert_eq!(members(Window { from: 25, to: 35 }.cut(&trace)), [], "nothing is known");
    }

    #[test]
    fn what_overlaps_is_what_is_in_it() {
        let window = Window { from: 10, to: 20 };
        let overlaps = [(0, 5), (0, 15), (12, 15), (15, 30), (25, 30), (15, 12)];
        let found = overlaps.map(|(since, until)| window.overlap(since, until));
        assert_eq!(found, [0, 5, 3, 5, 0, 0]);
    }
}
