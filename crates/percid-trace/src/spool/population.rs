//! The living threads, updated from events that are not stored.

use std::collections::{BTreeMap, HashSet};

use crate::event::{Event, Shares, Tid, What};
use crate::interner::Interner;
use crate::trace::Trace;

/// The CPU of what did not happen on any.
const FIRST_CPU: u32 = 0;

/// The threads that there are at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct Population {
    threads: BTreeMap<Tid, Thread>,
    time: u64,
}

/// The known properties of a thread.
#[derive(Debug, Clone, Default)]
struct Thread {
    process: Option<Tid>,
    name: Option<Box<str>>,
    cpus: Option<Box<str>>,
}

impl Population {
    /// Goes on with an event.
    pub(super) fn take(&mut self, event: &Event, texts: &Interner) {
        self.time = self.time.max(event.time);
        let text = |text| Some(texts.get(text).into());
        match event.what {
            What::Fork { parent, child, shares } => self.fork(parent, child, shares),
            What::Exec { thread, old } => {
                let before = self.threads.remove(&old).unwrap_or_default();
                self.threads.insert(thread, Thread { process: Some(thread), ..before });
            }
            What::Switch { prev, state, .. } if state.is_dead() => {
                self.threads.remove(&prev);
            }
            What::Member { thread, process } => self.thread(thread).process = Some(process),
            What::Name { thread, name } => self.thread(thread).name = text(name),
            What::Affinity { thread, cpus } => self.thread(thread).cpus = text(cpus),
            _ => {}
        }
    }

    /// Returns the number of threads.
    pub(super) fn len(&self) -> usize {
        self.threads.len()
    }

    /// The process of a thread, or its own number if none is known.
    pub(super) fn process_of(&self, thread: Tid) -> Tid {
        self.threads.get(&thread).and_then(|found| found.process).unwrap_or(thread)
    }

    /// The processes that there are.
    pub(super) fn processes(&self) -> HashSet<Tid> {
        self.threads.keys().map(|&thread| self.process_of(thread)).collect()
    }

    /// Forgets all others.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(Tid) -> bool) {
        self.threads.retain(|&thread, _| is_kept(thread));
    }

    fn thread(&mut self, thread: Tid) -> &mut Thread {
        self.threads.entry(thread).or_default()
    }

    fn fork(&mut self, parent: Tid, child: Tid, shares: Shares) {
        let parent = self.threads.get(&parent).cloned().unwrap_or_default();
        let process = match shares {
            Shares::Process => parent.process,
            Shares::Nothing | Shares::Memory => Some(child),
            Shares::Unknown => None,
        };
        self.threads.insert(child, Thread { process, ..parent });
    }

    /// Adds what says so to a trace, at the time of the last event.
    pub(super) fn tell(&self, trace: &mut Trace) {
        let Trace { events, texts, .. } = trace;
        let mut add = |what| events.push(Event { time: self.time, cpu: FIRST_CPU, what });
        for (&thread, Thread { process, name, cpus }) in &self.threads {
            if let Some(process) = *process {
                add(What::Member { thread, process });
            }
            if let Some(name) = name {
                add(What::Name { thread, name: texts.intern(name.as_bytes()) });
            }
            if let Some(cpus) = cpus {
                add(What::Affinity { thread, cpus: texts.intern(cpus.as_bytes()) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::State;

    #[test]
    fn who_lives_is_told_and_who_has_died_is_not() {
        let mut texts = Interner::default();
        let (name, cpus) = (texts.intern(b"server"), texts.intern(b"0-3"));
        let dead = |prev| What::Switch { prev, state: State::DEAD, next: 0 };
        let all = [
            What::Member { thread: 7, process: 7 },
            What::Name { thread: 7, name },
            What::Affinity { thread: 7, cpus },
            What::Fork { parent: 7, child: 8, shares: Shares::Process },
            What::Fork { parent: 7, child: 9, shares: Shares::Nothing },
            What::Fork { parent: 9, child: 10, shares: Shares::Process },
            dead(9),
            What::Exec { thread: 9, old: 10 },
            What::Fork { parent: 8, child: 11, shares: Shares::Process },
            dead(11),
        ];
        let mut population = Population::default();
        for (time, what) in (1..).zip(all) {
            population.take(&Event { time, cpu: 1, what }, &texts);
        }
        let mut trace = Trace::default();
        population.tell(&mut trace);
        let members: Vec<(Tid, Tid)> = trace
            .events
            .iter()
            .filter_map(|event| match event.what {
                What::Member { thread, process } => Some((thread, process)),
                _ => None,
            })
            .collect();
        assert_eq!(members, [(7, 7), (8, 7), (9, 9)]);
        assert_eq!(trace.events.len(), 9, "each has the name and the CPUs of its parent");
        assert!(trace.events.iter().all(|event| event.time == 10));
    }
}
