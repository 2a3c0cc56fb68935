//! Converts the threads' entries to a recording that the simulator's policies can replay.
//!
//! The threads know when they run and when they are about to sleep; a pinned thread runs nowhere
//! else. Events that they cannot detect are left out: other processes, whose turns change nothing
//! for this one, and the ticks that found each thread running.

use std::collections::BTreeMap;

use percid_sim::conformance::{Event, Recording, Step};
use percid_sim::{Ns, US};

/// An entry of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JournalEntry {
    /// Time since the beginning.
    pub(super) time: Ns,
    pub(super) thread: u32,
    pub(super) note: Note,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    /// It runs on this CPU: it has just started, or woken up.
    Runs(u32),
    /// It is about to sleep.
    Sleeps,
    /// It is about to start this thread.
    Starts(u32),
    /// It has moved to this CPU, the only one that it may use after that.
    Moved(u32),
    /// It has been on its CPU for so long that at least one tick must have found it.
    Ticked,
    /// It has this ID.
    Id(u32),
    /// It is about to end.
    Ends,
}

/// Returns the recording of a process whose first thread began on `cpu`.
pub(super) fn recording(
    release: String,
    (possible, allowed): (u32, u32),
    cpu: u32,
    mut entries: Vec<JournalEntry>,
) -> Recording {
    entries.sort_by_key(|entry| entry.time);
    let mut steps = Steps {
        steps: vec![Step { time: 0, event: Event::Exec(cpu, 0) }],
        on: BTreeMap::from([(0, cpu)]),
        current: BTreeMap::from([(cpu, 0)]),
    };
    entries.into_iter().for_each(|entry| steps.take(entry));
    Recording { release, possible, allowed, steps: steps.steps }
}

struct Steps {
    steps: Vec<Step>,
    /// The CPU on which each thread runs, or ran last.
    on: BTreeMap<u32, u32>,
    /// The thread that runs on each CPU.
    current: BTreeMap<u32, u32>,
}

impl Steps {
    fn take(&mut self, JournalEntry { time, thread, note }: JournalEntry) {
        // The text has microseconds: a recording that is read back must equal the written one.
        let time = time / US * US;
        if let Note::Runs(cpu) = note {
            self.on.insert(thread, cpu);
        }
        let Some(&cpu) = self.on.get(&thread) else { return };
        // A thread that writes an entry is running.
        self.switch(time, cpu, Some(thread));
        match note {
            Note::Runs(_) => {}
            Note::Sleeps => self.switch(time, cpu, None),
            Note::Starts(child) => self.push(time, Event::Spawn(child, thread)),
            Note::Moved(to) => self.moved(time, thread, (cpu, to)),
            Note::Ticked => self.push(time, Event::Tick(cpu, thread, 0)),
            Note::Id(id) => self.push(time, Event::Id(thread, id)),
            Note::Ends => {
                self.push(time, Event::Exit(cpu, thread));
                self.switch(time, cpu, None);
                self.on.remove(&thread);
            }
        }
    }

    fn moved(&mut self, time: Ns, thread: u32, (from, to): (u32, u32)) {
        self.push(time, Event::Affinity(thread, 1));
        if from == to {
            return;
        }
        self.switch(time, from, None);
        self.push(time, Event::Migrate(thread, from, to));
        self.on.insert(thread, to);
        self.switch(time, to, Some(thread));
    }

    fn switch(&mut self, time: Ns, cpu: u32, next: Option<u32>) {
        let prev = match next {
            Some(next) => self.current.insert(cpu, next),
            None => self.current.remove(&cpu),
        };
        if prev != next {
            self.push(time, Event::Switch(cpu, prev, next));
        }
    }

    fn push(&mut self, time: Ns, event: Event) {
        self.steps.push(Step { time, event });
    }
}
