//! The scheduler state at one time: the running and queued threads, and each thread's last CPU. The
//! [questions](crate::questions) need it for the time before a window.

use std::collections::{BTreeMap, HashMap};

use crate::event::{Cpu, Event, IDLE, Stage, State, Tid, UNKNOWN, What};

/// The scheduler state at one time. Its size depends on the living threads, not on the events.
#[derive(Debug, Default)]
pub(super) struct Situation {
    /// The thread that each CPU runs, and since when.
    cpus: BTreeMap<Cpu, (Tid, u64)>,
    threads: HashMap<Tid, Thread>,
    /// The first event of each kind of wake-up. The kinds that a recording contains decide when a
    /// wait begins.
    wakings: [Option<Event>; 2],
}

/// The known state of a thread.
#[derive(Debug, Default)]
struct Thread {
    /// The CPU that began to run it last, and the time.
    began: Option<(Cpu, u64)>,
    running: Option<Cpu>,
    /// If it waits for a CPU: the events that show that.
    ready: Vec<Event>,
}

impl Situation {
    /// Goes on with an event; `is_inferred` is whether it is a switch that was not recorded.
    pub(super) fn take(&mut self, event: &Event, is_inferred: bool) {
        match event.what {
            What::Switch { next, .. } if is_inferred => self.arrive(event, next),
            What::Switch { prev, state, next } => {
                self.leave(event, prev, state);
                self.arrive(event, next);
            }
            What::Wakeup { thread, stage, .. } => self.wake(event, thread, stage),
            What::Migrate { thread, .. } => self.migrate(event, thread),
            What::Fork { child, .. } => drop(self.threads.remove(&child)),
            What::Exec { thread, old } if thread != old => self.rename(old, thread),
            _ => {}
        }
    }

    /// Returns `true` if a switch of a CPU has been seen.
    pub(super) fn knows(&self, cpu: Cpu) -> bool {
        self.cpus.contains_key(&cpu)
    }

    /// Forgets a thread, but not that a CPU runs it.
    pub(super) fn forget(&mut self, thread: Tid) {
        self.threads.remove(&thread);
    }

    fn leave(&mut self, event: &Event, prev: Tid, state: State) {
        let was_current = self.cpus.get(&event.cpu).is_some_and(|&(who, _)| who == prev);
        if was_current {
            // A thread that `forget` removes below is a different one.
            self.cpus.remove(&event.cpu);
        }
        if state.is_dead() {
            return drop(self.threads.remove(&prev));
        }
        let Some(thread) = named(prev).map(|prev| self.threads.entry(prev).or_default()) else {
            return;
        };
        // It began to run elsewhere first: events of one moment are in the order of their CPUs.
        if thread.running.is_some_and(|cpu| cpu != event.cpu) {
            return;
        }
        thread.running = None;
        thread.ready.clear();
        if state.is_runnable() {
            let what = What::Switch { prev, state, next: UNKNOWN };
            thread.ready.push(Event { what, ..*event });
        }
    }

    fn arrive(&mut self, event: &Event, next: Tid) {
        let Event { time, cpu, .. } = *event;
        let before = self.cpus.insert(cpu, (next, time));
        // The thread that ran there, by the trace, has left at a time that is not known.
        if let Some(thread) = before.and_then(|(before, _)| self.threads.get_mut(&before)) {
            thread.running = thread.running.filter(|&running| running != cpu);
        }
        if let Some(next) = named(next) {
            let thread = self.threads.entry(next).or_default();
            thread.began = Some((cpu, time));
            thread.running = Some(cpu);
            thread.ready.clear();
        }
    }

    fn wake(&mut self, event: &Event, thread: Tid, stage: Stage) {
        self.wakings[usize::from(stage == Stage::Waking)].get_or_insert(*event);
        let Some(thread) = named(thread).map(|tid| self.threads.entry(tid).or_default()) else {
            return;
        };
        if thread.running.is_some() {
            return;
        }
        let has = |waking: bool| {
            thread.ready.iter().any(|ready| match ready.what {
                What::Wakeup { stage, .. } => (stage == Stage::Waking) == waking,
                _ => false,
            })
        };
        let goes_on = stage != Stage::Waking && has(true) && !has(false);
        if !goes_on {
            thread.ready.clear();
        }
        thread.ready.push(*event);
    }

    fn migrate(&mut self, event: &Event, thread: Tid) {
        let Some(thread) = self.threads.get_mut(&thread).filter(|thread| !thread.ready.is_empty())
        else {
            return;
        };
        thread.ready.retain(|ready| !matches!(ready.what, What::Migrate { .. }));
        thread.ready.push(*event);
    }

    /// A thread has replaced its program, and has the number of its process from now on.
    fn rename(&mut self, old: Tid, new: Tid) {
        let thread = self.threads.remove(&old).unwrap_or_default();
        self.threads.insert(new, thread);
        self.cpus.values_mut().filter(|(who, _)| *who == old).for_each(|(who, _)| *who = new);
    }

    /// Returns events that describe the state, in the order of a trace and with the times at which
    /// it began.
    pub(super) fn tell(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for waking in self.wakings.iter().flatten() {
            if let What::Wakeup { target, stage, .. } = waking.what {
                // The event has no waking thread: only its kind matters.
                let what = What::Wakeup { thread: IDLE, target, stage };
                events.push(Event { what, ..*waking });
            }
        }
        let mut threads: Vec<(&Tid, &Thread)> = self.threads.iter().collect();
        threads.sort_unstable_by_key(|(tid, _)| **tid);
        for (&tid, thread) in threads {
            if let Some((cpu, time)) = thread.began {
                if self.cpus.get(&cpu) != Some(&(tid, time)) {
                    let switch = |prev, next| What::Switch { prev, state: State::SLEEPING, next };
                    let turn = [switch(UNKNOWN, tid), switch(tid, UNKNOWN)];
                    events.extend(turn.map(|what| Event { time, cpu, what }));
                }
            }
            events.extend_from_slice(&thread.ready);
        }
        for (&cpu, &(next, time)) in &self.cpus {
            let what = What::Switch { prev: UNKNOWN, state: State::SLEEPING, next };
            events.push(Event { time, cpu, what });
        }
        events.sort_by_key(|event| (event.time, event.cpu));
        events
    }
}

/// Returns the thread with this number, unless the number represents many threads or none.
fn named(tid: Tid) -> Option<Tid> {
    (tid != IDLE && tid != UNKNOWN).then_some(tid)
}
