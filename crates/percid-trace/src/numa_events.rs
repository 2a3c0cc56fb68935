//! Conversion of the tracepoints and probes of NUMA balancing to its events.

use std::collections::HashMap;

use crate::event::{Cpu, Tid};
use crate::numa::{Event, Tracepoint, What};

/// Collects events. The reports of one probe at the beginning of a function and of another at its
/// end become one event.
#[derive(Debug, Default)]
pub(crate) struct NumaEvents {
    events: Vec<Event>,
    /// The thread that last had a fault on each CPU, with time and address. A hint fault is one
    /// whose page was armed, which is known only later.
    faults: HashMap<Cpu, Fault>,
    /// Return values of calls, and their times, for [`NumaEvents::finish`].
    returned: Vec<(u64, Tid, Returned)>,
}

#[derive(Debug, Clone, Copy)]
struct Fault {
    thread: Tid,
    time: u64,
    address: u64,
}

/// A call that is noted at its beginning returned.
#[derive(Debug, Clone, Copy)]
enum Returned {
    /// Memory was armed: so many pages that had not been.
    Armed(u64),
    /// A pass is over.
    Passed,
}

impl NumaEvents {
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn tracepoint(&mut self, time: u64, cpu: Cpu, current: Tid, tracepoint: Tracepoint) {
        let (thread, what) = match tracepoint {
            Tracepoint::SkipVma { offset, start, end, reason } => {
                (current, What::Skip { offset, start, end, reason })
            }
            Tracepoint::MoveNuma { pid, place } => (pid, What::Move(place)),
            Tracepoint::StickNuma { pid, place } => (pid, What::Stick(place)),
            Tracepoint::SwapNuma { pid, place, other } => (pid, What::Swap(place, other)),
            Tracepoint::MigrateStart { reason } => (current, What::MigrateStart { reason }),
            Tracepoint::MigratePages { succeeded, failed, reason } => {
                (current, What::Migrated { moved: succeeded, failed, reason })
            }
            Tracepoint::Pass { ticks } => (current, What::Pass { ticks, took: None }),
            Tracepoint::Arm { start, end } => (current, What::Arm { start, end, changed: None }),
            Tracepoint::Armed { changed } => {
                return self.returned.push((time, current, Returned::Armed(changed)));
            }
            Tracepoint::Passed => {
                return self.returned.push((time, current, Returned::Passed));
            }
            Tracepoint::Fault { address } => {
                self.faults.insert(cpu, Fault { thread: current, time, address });
                return;
            }
            Tracepoint::Hint { node } => match self.faults.remove(&cpu) {
                Some(fault) if fault.thread == current => {
                    let took = time.checked_sub(fault.time);
                    (current, What::Hint { address: fault.address, took, node })
                }
                // It went to another CPU in between, so the user of each page is not known.
                _ => return,
            },
        };
        self.events.push(Event { time, cpu, thread, what });
    }

    /// The events in the order of a trace.
    pub(crate) fn finish(mut self) -> Vec<Event> {
        self.settle();
        self.events
    }

    /// Hands out the events before a time, in the order of a trace. A call that has not returned, and
    /// what follows it, waits for a while.
    pub(crate) fn take_before(&mut self, until: u64) -> Vec<Event> {
        let waits = self.settle().unwrap_or(u64::MAX).max(until.saturating_sub(PATIENCE));
        let until = until.min(waits);
        let ready = self.events.partition_point(|event| event.time < until);
        self.returned.retain(|&(time, ..)| time >= until);
        self.events.drain(..ready).collect()
    }

    /// Sorts the events, and finds what calls returned. Tells when the first one began that has not
    /// returned.
    fn settle(&mut self) -> Option<u64> {
        let NumaEvents { events, returned, .. } = self;
        events.sort_by_key(|event| (event.time, event.cpu));
        returned.sort_by_key(|&(time, ..)| time);
        let mut returned = returned.iter().copied().peekable();
        // For each thread, the places of its calls that have not returned.
        let (mut arming, mut passing) = (HashMap::<Tid, usize>::new(), HashMap::new());
        for place in 0..=events.len() {
            let now = events.get(place).map_or(u64::MAX, |event| event.time);
            while let Some((time, thread, how)) = returned.next_if(|&(time, ..)| time < now) {
                let calls =
                    if matches!(how, Returned::Passed) { &mut passing } else { &mut arming };
                if let Some(called) = calls.remove(&thread) {
                    events[called].returns(time, how);
                }
            }
            match events.get(place) {
                Some(Event { thread, what: What::Arm { .. }, .. }) => arming.insert(*thread, place),
                Some(Event { thread, what: What::Pass { .. }, .. }) => {
                    passing.insert(*thread, place)
                }
                _ => None,
            };
        }
        let first = arming.into_values().chain(passing.into_values()).min();
        first.map(|place| events[place].time)
    }
}

/// Longest time to wait for the return of a call, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

impl Event {
    fn returns(&mut self, now: u64, how: Returned) {
        match (&mut self.what, how) {
            (What::Arm { changed, .. }, Returned::Armed(pages)) => *changed = Some(pages),
            (What::Pass { took, .. }, Returned::Passed) => *took = now.checked_sub(self.time),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(seen: &[(u64, Cpu, Tid, Tracepoint)]) -> Vec<Event> {
        let mut collected = NumaEvents::default();
        for &(time, cpu, current, tracepoint) in seen {
            collected.tracepoint(time, cpu, current, tracepoint);
        }
        collected.finish()
    }

    #[test]
    fn a_fault_on_an_armed_page_is_a_hint_and_another_is_nothing() {
        let seen = [
            (1, 0, 7, Tracepoint::Fault { address: 4096 }),
            (2, 0, 7, Tracepoint::Fault { address: 8192 }),
            (3, 0, 7, Tracepoint::Hint { node: Some(1) }),
            (4, 0, 7, Tracepoint::Hint { node: Some(1) }),
            (5, 1, 8, Tracepoint::Fault { address: 12288 }),
            (6, 1, 9, Tracepoint::Hint { node: Some(1) }),
        ];
        let what = What::Hint { address: 8192, took: Some(1), node: Some(1) };
        assert_eq!(events(&seen), [Event { time: 3, cpu: 0, thread: 7, what }]);
    }

    /// The buffers of CPUs are read one after the other.
    #[test]
    fn what_a_call_returned_is_found_on_whatever_cpu_it_returned() {
        let arm = |start| Tracepoint::Arm { start, end: start + 1 };
        let seen = [
            (5, 0, 7, Tracepoint::Armed { changed: 50 }),
            (6, 0, 7, arm(2)),
            (1, 1, 7, arm(1)),
            (2, 1, 9, arm(3)),
            (3, 1, 9, Tracepoint::Armed { changed: 30 }),
        ];
        let changed: Vec<(u64, Option<u64>)> = events(&seen)
            .into_iter()
            .filter_map(|event| match event.what {
                What::Arm { start, changed, .. } => Some((start, changed)),
                _ => None,
            })
            .collect();
        assert_eq!(changed, [(1, Some(50)), (3, Some(30)), (2, None)]);
    }

    /// The events handed out during the recording are the same as at its end.
    #[test]
    fn a_call_is_waited_for_until_it_returns_or_for_a_second() {
        let pass = |ticks| Tracepoint::Pass { ticks };
        let mut collected = NumaEvents::default();
        collected.tracepoint(10, 0, 7, pass(1));
        collected.tracepoint(20, 0, 8, Tracepoint::Arm { start: 1, end: 2 });
        assert_eq!(collected.take_before(100), [], "neither has returned");
        collected.tracepoint(30, 0, 8, Tracepoint::Armed { changed: 5 });
        assert_eq!(collected.take_before(100), [], "what waits comes first");
        collected.tracepoint(40, 1, 7, Tracepoint::Passed);
        let what: Vec<What> = collected.take_before(100).iter().map(|event| event.what).collect();
        let expected = [
            What::Pass { ticks: 1, took: Some(30) },
            What::Arm { start: 1, end: 2, changed: Some(5) },
        ];
        assert_eq!(what, expected);
        collected.tracepoint(200, 0, 9, pass(2));
        assert_eq!(collected.take_before(PATIENCE).len(), 0);
        assert_eq!(collected.take_before(2 * PATIENCE).len(), 1, "it never returns");
    }

    /// Calls that arm memory in between return for themselves; a pass without an end is not known.
    #[test]
    fn a_pass_takes_until_it_returns() {
        let seen = [
            (1, 0, 7, Tracepoint::Pass { ticks: 5 }),
            (2, 0, 7, Tracepoint::Arm { start: 1, end: 2 }),
            (9, 0, 7, Tracepoint::Passed),
            (4, 1, 7, Tracepoint::Armed { changed: 3 }),
            (5, 1, 8, Tracepoint::Pass { ticks: 6 }),
            (6, 1, 9, Tracepoint::Passed),
        ];
        let what: Vec<What> = events(&seen).into_iter().map(|event| event.what).collect();
        assert_eq!(
            what,
            [
                What::Pass { ticks: 5, took: Some(8) },
                What::Arm { start: 1, end: 2, changed: Some(3) },
                What::Pass { ticks: 6, took: None },
            ]
        );
    }
}
