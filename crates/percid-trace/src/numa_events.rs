//! From the tracepoints and probes of NUMA balancing to its events.

use std::collections::HashMap;

use crate::event::{Cpu, Tid};
use crate::numa::{Event, Tracepoint, What};

/// Collects events. What one probe says at the beginning of a function and another at its end
/// becomes one event.
#[derive(Debug, Default)]
pub(crate) struct NumaEvents {
    events: Vec<Event>,
    /// For each CPU, the thread that had a fault there last, and where. A hint fault is one whose
    /// page was armed, which shows only later.
    faults: HashMap<Cpu, (Tid, u64)>,
    /// What calls returned, for [`NumaEvents::finish`].
    returned: Vec<(u64, Tid, u64)>,
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
            Tracepoint::Pass { ticks } => (current, What::Pass { ticks }),
            Tracepoint::Arm { start, end } => (current, What::Arm { start, end, changed: None }),
            Tracepoint::Armed { changed } => {
                return self.returned.push((time, current, changed));
            }
            Tracepoint::Fault { address } => {
                self.faults.insert(cpu, (current, address));
                return;
            }
            Tracepoint::Hint => match self.faults.remove(&cpu) {
                Some((thread, address)) if thread == current => (current, What::Hint { address }),
                // It went to another CPU in between; who used which page is not known then.
                _ => return,
            },
        };
        self.events.push(Event { time, cpu, thread, what });
    }

    /// The events in the order of a trace.
    pub(crate) fn finish(self) -> Vec<Event> {
        let NumaEvents { mut events, mut returned, .. } = self;
        events.sort_by_key(|event| (event.time, event.cpu));
        returned.sort_by_key(|&(time, ..)| time);
        let mut returned = returned.into_iter().peekable();
        // For each thread, the place of its call that has not returned.
        let mut open: HashMap<Tid, usize> = HashMap::new();
        for place in 0..=events.len() {
            let now = events.get(place).map_or(u64::MAX, |event| event.time);
            while let Some((_, thread, changed)) = returned.next_if(|&(time, ..)| time < now) {
                let called = open.remove(&thread).map(|place| &mut events[place].what);
                if let Some(What::Arm { changed: known, .. }) = called {
                    *known = Some(changed);
                }
            }
            if let Some(Event { thread, what: What::Arm { .. }, .. }) = events.get(place) {
                open.insert(*thread, place);
            }
        }
        events
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
            (3, 0, 7, Tracepoint::Hint),
            (4, 0, 7, Tracepoint::Hint),
            (5, 1, 8, Tracepoint::Fault { address: 12288 }),
            (6, 1, 9, Tracepoint::Hint),
        ];
        let what = What::Hint { address: 8192 };
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
}
