//! The processes that a recording is about, if it contains all others too.
//!
//! A recording of a command's threads only cannot show which threads delayed them, nor whether a
//! CPU idled. So all threads are recorded, and [`Origin::subject`](crate::trace::Origin::subject)
//! contains the processes that the recording was about when it began. The processes that these
//! create belong to them too.

use std::collections::HashSet;

use crate::event::{Event, Shares, Tid, What};
use crate::threads::Threads;
use crate::trace::Trace;

/// The processes of a subject that live at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subject {
    processes: HashSet<Tid>,
}

impl Subject {
    /// These, and nothing of what they have created.
    pub(crate) fn new(processes: &[Tid]) -> Subject {
        Subject { processes: processes.iter().copied().collect() }
    }

    /// Goes on with an event. A number may be that of another process later, which a stranger has created.
    pub(crate) fn take(&mut self, event: &Event, process_of: impl Fn(Tid) -> Tid) {
        let What::Fork { parent, child, shares } = event.what else { return };
        if shares == Shares::Process || self.processes.is_empty() {
            return;
        }
        match self.processes.contains(&process_of(parent)) {
            true => self.processes.insert(child),
            false => self.processes.remove(&child),
        };
    }

    /// Those of them that still live, sorted; if none does, all that it had.
    pub(crate) fn still_living(&self, living: &HashSet<Tid>) -> Vec<Tid> {
        let still: Vec<Tid> = self.processes.intersection(living).copied().collect();
        let mut processes = match still.is_empty() {
            true => self.processes.iter().copied().collect(),
            false => still,
        };
        processes.sort_unstable();
        processes
    }
}

/// Returns the numbers of all processes that a trace is about, sorted; nothing if it is about all.
///
/// If the kernel has reused a number for an unrelated process, that process is included too.
pub fn processes(trace: &Trace) -> Vec<Tid> {
    let mut subject = Subject::new(&trace.origin.subject);
    let mut all = subject.processes.clone();
    if all.is_empty() {
        return Vec::new();
    }
    let mut threads = Threads::there_before(&trace.events);
    for event in &trace.events {
        subject.take(event, |thread| process_of(&threads, thread));
        threads.take(&event.what);
        if let What::Fork { child, .. } = event.what {
            all.extend(subject.processes.get(&child));
        }
    }
    let mut all: Vec<Tid> = all.into_iter().collect();
    all.sort_unstable();
    all
}

/// Returns the processes that a trace is about when these events are over, sorted.
pub(crate) fn after(processes: &[Tid], events: &[Event]) -> Vec<Tid> {
    let mut subject = Subject::new(processes);
    let mut threads = Threads::there_before(events);
    for event in events {
        subject.take(event, |thread| process_of(&threads, thread));
        threads.take(&event.what);
    }
    let living = threads.living().map(|thread| process_of(&threads, thread)).collect();
    subject.still_living(&living)
}

fn process_of(threads: &Threads, thread: Tid) -> Tid {
    threads.find(thread).map_or(thread, |found| threads.get(found).process_or_self())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{IDLE, State};
    use crate::trace::Origin;

    fn fork(parent: Tid, child: Tid, shares: Shares) -> What {
        What::Fork { parent, child, shares }
    }

    fn trace(whats: &[What]) -> Trace {
        let event = |(time, &what)| Event { time, cpu: 0, what };
        let events = (0..).zip(whats).map(event).collect();
        let origin = Origin { subject: vec![7], ..Origin::default() };
        Trace { origin, events, ..Trace::default() }
    }

    #[test]
    fn who_comes_of_it_belongs_to_it_and_nobody_else() {
        let member = |thread, process| What::Member { thread, process };
        let mut trace = trace(&[
            member(7, 7),
            member(8, 7),
            member(20, 20),
            fork(8, 9, Shares::Process),
            fork(9, 10, Shares::Nothing),
            fork(10, 11, Shares::Memory),
            fork(20, 21, Shares::Nothing),
            What::Switch { prev: 10, state: State::DEAD, next: IDLE },
            fork(20, 10, Shares::Nothing),
            fork(10, 22, Shares::Nothing),
        ]);
        assert_eq!(processes(&trace), [7, 10, 11], "10 was one of them for a time");
        assert_eq!(after(&[7], &trace.events[..7]), [7, 10, 11]);
        assert_eq!(after(&[7], &trace.events[..8]), [7, 11], "10 has died");
        assert_eq!(after(&[7], &trace.events), [7, 11], "10 is somebody else");
        let dead = |prev| What::Switch { prev, state: State::DEAD, next: IDLE };
        let ends = [member(7, 7), dead(7)].map(|what| Event { time: 0, cpu: 0, what });
        assert_eq!(after(&[7], &ends), [7], "nothing would stand for all of the trace");
        trace.origin.subject.clear();
        assert_eq!(processes(&trace), [], "it is about everything");
    }
}
