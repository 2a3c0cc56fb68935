//! Short-lived processes, grouped by program: in a build each compiler is a process, and a single
//! one deserves no separate finding.

use std::collections::HashMap;

use percid_trace::Trace;
use percid_trace::event::{Tid, What};
use percid_trace::interner::Text;
use percid_trace::threads::Threads;

/// Groups of processes that are reported as one.
#[derive(Debug, Default)]
pub(super) struct Programs {
    /// The first process of the group of each process. It represents the group.
    pub(super) first: HashMap<Tid, Tid>,
    sizes: HashMap<Tid, u64>,
}

impl Programs {
    /// Returns the groups of which two processes ended during the recording, with all others of
    /// their names that began or ended then.
    pub(super) fn from_trace(trace: &Trace) -> Programs {
        let mut ended: HashMap<Text, Vec<Tid>> = HashMap::new();
        let mut threads = Threads::there_before(&trace.events);
        for event in &trace.events {
            if let What::Switch { prev, state, .. } = event.what {
                let process = threads.find(prev).map(|number| threads.get(number));
                let process = process.filter(|it| state.is_dead() && it.process_or_self() == prev);
                if let Some(name) = process.and_then(|process| process.name) {
                    ended.entry(name).or_default().push(prev);
                }
            }
            threads.take(&event.what);
        }
        let living = threads.living().filter_map(|thread| threads.find(thread));
        for process in living.map(|number| threads.get(number)) {
            let name =
                process.name.filter(|_| process.is_new && process.process_or_self() == process.tid);
            if let Some(ended) = name.and_then(|name| ended.get_mut(&name)) {
                ended.push(process.tid);
            }
        }
        let mut programs = Programs::default();
        for mut processes in ended.into_values() {
            processes.sort_unstable();
            processes.dedup();
            programs.add(&processes);
        }
        programs
    }

    fn add(&mut self, processes: &[Tid]) {
        let [first, _, ..] = processes else { return };
        self.first.extend(processes.iter().map(|&process| (process, *first)));
        self.sizes.insert(*first, processes.len() as u64);
    }

    /// Returns the process that represents a process: usually itself.
    pub(super) fn first_of(&self, process: Tid) -> Tid {
        self.first.get(&process).copied().unwrap_or(process)
    }

    /// Returns the number of processes in the group of its first one.
    pub(super) fn size(&self, first: Tid) -> u64 {
        self.sizes.get(&first).copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percid_trace::event::{Event, IDLE, Shares, State};

    #[test]
    fn processes_that_end_are_one_with_others_of_their_name() {
        let mut trace = Trace::default();
        let [cc1, make] = [&b"cc1"[..], b"make"].map(|name| trace.texts.intern(name));
        let fork = |child| What::Fork { parent: 7, child, shares: Shares::Nothing };
        let dead = |prev| What::Switch { prev, state: State::DEAD, next: IDLE };
        let named = |thread, name| What::Name { thread, name };
        let all = [
            What::Member { thread: 7, process: 7 },
            named(7, make),
            fork(8),
            named(8, cc1),
            dead(8),
            fork(9),
            named(9, cc1),
            fork(10),
            named(10, cc1),
            dead(9),
            fork(11),
            dead(11),
        ];
        let event = |(time, what)| Event { time, cpu: 0, what };
        trace.events = (0..).zip(all).map(event).collect();
        let programs = Programs::from_trace(&trace);
        assert_eq!([8, 9, 10].map(|process| programs.first_of(process)), [8; 3]);
        assert_eq!(
            (programs.size(8), programs.first_of(7)),
            (3, 7),
            "10 goes on, and 7 is another one"
        );
    }
}
