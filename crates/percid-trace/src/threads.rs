//! The threads of a trace so far: names and processes. Threads that had the same number, one after
//! the other, are distinguished.

use std::collections::{HashMap, HashSet};

use crate::event::{Event, IDLE, KTHREADD, Shares, Tid, UNKNOWN, What};
use crate::interner::Text;

/// A thread, numbered from 0 in the order in which they are met. Numbers of the kernel are used again
/// for other threads; these are not.
pub type ThreadNumber = u32;

/// The known properties of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's number.
    pub tid: Tid,
    /// The process, if the trace contains it.
    pub process: Option<Tid>,
    /// The last name.
    pub name: Option<Text>,
    /// `true` if the trace shows how it was created.
    pub is_new: bool,
}

impl Thread {
    /// The process, or the thread by itself if none is known.
    pub fn process_or_self(&self) -> Tid {
        self.process.unwrap_or(self.tid)
    }
}

/// All threads so far.
#[derive(Debug, Clone, Default)]
pub struct Threads {
    all: Vec<Thread>,
    living: HashMap<Tid, ThreadNumber>,
}

impl Threads {
    /// Returns the threads that existed before the first of these events, if the events list them
    /// at any time.
    pub fn there_before(events: &[Event]) -> Threads {
        let mut threads = Threads::default();
        let mut born = HashSet::new();
        for event in events {
            match event.what {
                What::Fork { child, .. } => drop(born.insert(child)),
                What::Member { thread, .. } if !born.contains(&thread) => threads.take(&event.what),
                _ => {}
            }
        }
        threads
    }

    /// Takes in an event. Threads are met where they are named, made or switched to.
    pub fn take(&mut self, what: &What) {
        match *what {
            What::Name { thread, name } => {
                self.change(thread, |thread| thread.name = Some(name));
            }
            What::Member { thread, process } => {
                self.change(thread, |thread| thread.process = thread.process.or(Some(process)));
            }
            What::Fork { parent, child, shares } => self.fork(parent, child, shares),
            What::Exec { thread, old } => self.exec(thread, old),
            What::Switch { prev, state, next } => {
                self.meet(next);
                self.meet(prev);
                if state.is_dead() {
                    self.living.remove(&prev);
                }
            }
            _ => {}
        }
    }

    /// The living thread with a number, which may be new. The idle threads and those that are not
    /// known have none.
    #[inline]
    pub fn meet(&mut self, tid: Tid) -> Option<ThreadNumber> {
        if tid == IDLE || tid == UNKNOWN {
            return None;
        }
        let all = &mut self.all;
        Some(*self.living.entry(tid).or_insert_with(|| {
            all.push(Thread { tid, process: None, name: None, is_new: false });
            all.len() as ThreadNumber - 1
        }))
    }

    /// The living thread with this number of the kernel, if it has been met.
    pub fn find(&self, tid: Tid) -> Option<ThreadNumber> {
        self.living.get(&tid).copied()
    }

    /// Returns the known properties of a thread; none for a thread that has not been met.
    pub fn get(&self, thread: ThreadNumber) -> Thread {
        let nobody = Thread { tid: UNKNOWN, process: None, name: None, is_new: false };
        self.all.get(thread as usize).copied().unwrap_or(nobody)
    }

    /// Returns the number of threads met so far.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns `true` if none has been met.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The kernel's numbers of those that live.
    pub fn living(&self) -> impl Iterator<Item = Tid> + '_ {
        self.living.keys().copied()
    }

    fn change(&mut self, tid: Tid, change: impl FnOnce(&mut Thread)) {
        let number = self.meet(tid);
        if let Some(thread) = number.and_then(|number| self.all.get_mut(number as usize)) {
            change(thread);
        }
    }

    fn fork(&mut self, parent: Tid, child: Tid, shares: Shares) {
        let parent = self.meet(parent).map(|number| self.get(number));
        self.living.remove(&child);
        let process = match shares {
            _ if parent.is_some_and(|parent| parent.tid == KTHREADD) => None,
            Shares::Process => parent.map(|parent| parent.process_or_self()),
            Shares::Nothing | Shares::Memory => Some(child),
            Shares::Unknown => None,
        };
        let name = parent.and_then(|parent| parent.name);
        self.change(child, |thread| *thread = Thread { process, name, is_new: true, ..*thread });
    }

    /// The thread goes on under the number of its process.
    fn exec(&mut self, thread: Tid, old: Tid) {
        let Some(number) = self.meet(old) else { return };
        if old != thread && self.find(thread) != Some(number) {
            self.living.remove(&old);
            self.living.insert(thread, number);
        }
        self.change(thread, |known| (known.tid, known.process) = (thread, Some(thread)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::State;

    fn after(events: &[What]) -> Threads {
        let mut threads = Threads::default();
        events.iter().for_each(|what| threads.take(what));
        threads
    }

    fn process(threads: &Threads, tid: Tid) -> Option<Tid> {
        threads.find(tid).and_then(|number| threads.get(number).process)
    }

    #[test]
    fn threads_belong_to_the_process_of_their_creator_and_processes_to_themselves() {
        let fork = |parent, child, shares| What::Fork { parent, child, shares };
        let threads = after(&[
            What::Member { thread: 7, process: 5 },
            fork(7, 8, Shares::Process),
            fork(7, 9, Shares::Nothing),
            fork(7, 10, Shares::Unknown),
            fork(KTHREADD, 11, Shares::Memory),
        ]);
        let found = [8, 9, 10, 11, 7].map(|tid| process(&threads, tid));
        assert_eq!(found, [Some(5), Some(9), None, None, Some(5)]);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_thread() {
        let dead = What::Switch { prev: 7, state: State::DEAD, next: IDLE };
        let mut threads = after(&[What::Member { thread: 7, process: 5 }]);
        let first = threads.find(7);
        threads.take(&dead);
        assert_eq!(threads.find(7), None);
        assert_ne!(threads.meet(7), first);
        let fork = What::Fork { parent: 1, child: 7, shares: Shares::Nothing };
        let second = threads.find(7);
        threads.take(&fork);
        assert_ne!(threads.find(7), second, "also if its end was not seen");
        assert_eq!((threads.meet(IDLE), threads.meet(UNKNOWN)), (None, None));
    }

    #[test]
    fn a_thread_that_begins_a_program_takes_over_the_number_of_its_process() {
        let mut threads = after(&[
            What::Member { thread: 5, process: 5 },
            What::Member { thread: 7, process: 5 },
        ]);
        let number = threads.find(7);
        threads.take(&What::Exec { thread: 5, old: 7 });
        assert_eq!((threads.find(5), threads.find(7)), (number, None));
        assert_eq!(process(&threads, 5), Some(5));
    }
}
