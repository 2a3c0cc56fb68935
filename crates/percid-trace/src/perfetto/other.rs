//! The thread that replaces all threads which were not recorded.
//!
//! If only some processes were recorded, a CPU switches to another thread, and its next event comes
//! when it switches back, perhaps from a third thread. Perfetto assumes that a thread runs until it
//! is switched away from, so each of these would run to the end of the trace.

use std::collections::{HashMap, HashSet};

use crate::event::{Cpu, Event, IDLE, Tid, UNKNOWN, What};
use crate::gaps;

/// Its number, which no kernel gives: those end at 2^22.
pub(super) const OTHER: Tid = (1 << 22) + 1;

/// Name of the thread.
pub(super) const NAME: &str = "other";

/// The places of the switches after which it is not known what ran.
pub(super) fn begins(events: &[Event]) -> HashSet<usize> {
    let mut begins = HashSet::new();
    let mut last: HashMap<Cpu, (usize, Tid)> = HashMap::new();
    for (place, event) in events.iter().enumerate() {
        let What::Switch { prev, next, .. } = event.what else { continue };
        let before = last.insert(event.cpu, (place, next));
        let differs =
            |&(_, came): &(usize, Tid)| came != prev && came != UNKNOWN && prev != UNKNOWN;
        begins.extend(before.filter(differs).map(|(place, _)| place));
    }
    if !begins.is_empty() {
        let known = gaps::known(events);
        let is_other = |&(_, thread): &(usize, Tid)| thread != IDLE && !known.contains(&thread);
        begins.extend(last.into_values().filter(is_other).map(|(place, _)| place));
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::State;

    fn begins_of(switches: &[(Cpu, Tid, Tid)]) -> Vec<usize> {
        let member = What::Member { thread: 7, process: 7 };
        let mut events = vec![Event { time: 0, cpu: 0, what: member }];
        events.extend(switches.iter().zip(1..).map(|(&(cpu, prev, next), time)| {
            let state = State::RUNNABLE;
            Event { time, cpu, what: What::Switch { prev, state, next } }
        }));
        let mut begins: Vec<usize> = begins(&events).into_iter().collect();
        begins.sort_unstable();
        begins
    }

    #[test]
    fn other_threads_run_from_a_switch_until_one_that_does_not_fit() {
        assert_eq!(begins_of(&[(0, 7, 20), (1, 9, 7), (0, 30, 7), (0, 7, 40)]), [1, 4]);
        assert_eq!(begins_of(&[(0, 7, 20), (0, 30, 7), (0, 7, IDLE)]), [1], "idle until the end");
    }

    #[test]
    fn a_schedule_without_gaps_has_none() {
        assert_eq!(begins_of(&[(0, 7, 20), (0, 20, 30), (0, 30, 7), (1, IDLE, 9)]), [0; 0]);
        assert_eq!(begins_of(&[(0, 7, UNKNOWN), (0, 20, 7), (0, UNKNOWN, 8)]), [3; 0]);
    }
}
