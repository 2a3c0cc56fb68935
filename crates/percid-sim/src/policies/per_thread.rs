//! Thread numbers as IDs: the lowest that no living thread has, as registries for `thread_local!`
//! assign them. An ID moves between CPUs with its thread.

use super::impossible::Impossible;
use super::policy::{Id, Policy, PolicySpec, Process, Thread, Work};
use crate::topology::{Cpu, Topology};

pub(super) const SPEC: PolicySpec = PolicySpec {
    name: "per-thread",
    about: "a number for each living thread: it moves with the thread",
    create: &|_: &Topology| Box::new(PerThread::default()),
};

#[derive(Default)]
struct PerThread {
    /// The thread that has each ID.
    owners: Vec<Option<Thread>>,
    /// The ID of each thread.
    ids: Vec<Option<Id>>,
    work: Work,
}

impl Policy for PerThread {
    fn exit(&mut self, _: &Process<'_>, thread: Thread, _: Cpu) {
        if let Some(id) = self.ids.get_mut(thread as usize).and_then(Option::take) {
            self.owners[id as usize] = None;
        }
    }

    fn exec(&mut self, _: &Process<'_>, _: Cpu, _: Thread) -> Result<(), Impossible> {
        self.owners.clear();
        self.ids.clear();
        Ok(())
    }

    fn id(&mut self, _: &Process<'_>, _: Cpu, thread: Thread) -> Result<Id, Impossible> {
        let thread_index = thread as usize;
        if self.ids.len() <= thread_index {
            self.ids.resize(thread_index + 1, None);
        }
        let id = *self.ids[thread_index].get_or_insert_with(|| {
            self.work.slow_paths += 1;
            let free = self.owners.iter().position(Option::is_none).unwrap_or(self.owners.len());
            self.owners.resize(self.owners.len().max(free + 1), None);
            self.owners[free] = Some(thread);
            free as Id
        });
        Ok(id)
    }

    fn work(&self) -> Work {
        self.work
    }
}
