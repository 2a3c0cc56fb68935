//! Linux 6.3: one set of IDs for the process, without a record of earlier owners.

use super::bitmap::Bitmap;
use super::impossible::Impossible;
use super::policy::{Id, Policy, PolicySpec, Process, Thread, Work};
use super::threads::Threads;
use crate::topology::Cpu;

pub(super) const SPEC: PolicySpec = PolicySpec {
    name: "linux-6.3",
    about: "Linux 6.3: the first free ID at every switch between processes",
    create: &|topology| Box::new(Linux63::new(topology.cpus())),
};

#[derive(Debug, Default)]
struct ThreadNote {
    /// The ID that the thread holds while it runs.
    held: Option<Id>,
    /// `true` if the thread takes no further ID; it may be switched to until its last steps are
    /// done.
    exited: bool,
}

struct Linux63 {
    taken: Bitmap,
    cpus: u32,
    threads: Threads<ThreadNote>,
    work: Work,
}

impl Linux63 {
    fn new(cpus: u32) -> Linux63 {
        Linux63 {
            taken: Bitmap::new(cpus),
            cpus,
            threads: Threads::default(),
            work: Work::default(),
        }
    }

    fn obtain(&mut self) -> Result<Id, Impossible> {
        self.work.slow_paths += 1;
        let first = self.taken.take_first_below(self.cpus);
        first.ok_or(Impossible("more threads run than there are CPUs"))
    }
}

impl Policy for Linux63 {
    fn switch(
        &mut self,
        _: &Process<'_>,
        _: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
    ) -> Result<(), Impossible> {
        let released = prev.and_then(|prev| self.threads.get_mut(prev).held.take());
        let next = next.filter(|&next| !self.threads.get_mut(next).exited);
        let id = match (released, next) {
            // A switch between two threads of the process passes the ID on, without the lock.
            (Some(id), Some(_)) => Some(id),
            (Some(id), None) => {
                self.taken.free(id);
                None
            }
            (None, Some(_)) => Some(self.obtain()?),
            (None, None) => None,
        };
        if let Some(next) = next {
            self.threads.get_mut(next).held = id;
        }
        Ok(())
    }

    fn exit(&mut self, _: &Process<'_>, thread: Thread, _: Cpu) {
        let note = ThreadNote { held: None, exited: true };
        if let Some(id) = std::mem::replace(self.threads.get_mut(thread), note).held {
            self.taken.free(id);
        }
    }

    fn exec(&mut self, _: &Process<'_>, _: Cpu, thread: Thread) -> Result<(), Impossible> {
        self.taken.clear();
        self.threads.clear();
        self.threads.get_mut(thread).held = Some(self.obtain()?);
        Ok(())
    }

    fn id(&mut self, _: &Process<'_>, _: Cpu, thread: Thread) -> Result<Id, Impossible> {
        if let Some(id) = self.threads.get_mut(thread).held {
            return Ok(id);
        }
        let id = self.obtain()?;
        self.threads.get_mut(thread).held = Some(id);
        Ok(id)
    }

    fn work(&self) -> Work {
        self.work
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::Scenario;
    use super::*;

    #[test]
    fn a_switch_inside_the_process_hands_the_id_over() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(2);
        assert_eq!((s.run(0, 0), s.run(3, 1)), (0, 1));
        let before = s.work().slow_paths;
        assert_eq!(s.run(3, 2), 1);
        assert_eq!(s.work().slow_paths, before);
    }

    #[test]
    fn r1_is_missing_so_a_cpu_that_comes_back_gets_whatever_is_free() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(1);
        assert_eq!((s.run(0, 0), s.run(1, 1)), (0, 1));
        s.idle(0);
        s.idle(1);
        assert_eq!((s.run(1, 1), s.run(0, 0)), (0, 1), "the other way round");
    }

    #[test]
    fn r10_exit_gives_the_id_back_and_exec_begins_at_zero() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(1);
        assert_eq!((s.run(0, 0), s.run(1, 1)), (0, 1));
        s.exit(0);
        assert_eq!(s.run(1, 1), 1);
        s.exec(1);
        assert_eq!(s.id(1), 0);
    }
}
