//! Linux 6.19 and later (commit 653fda7ae73d and its successors): an ID belongs to a thread, or to
//! a CPU if there are many threads. There are no scans and time stamps, and migrations have no
//! effect.
//!
//! In the kernel, a change of the mode takes a while, in which both kinds of owners exist. Here it
//! is one step. So no slot has an ID in the mode of threads, and no thread owns one in the mode of
//! CPUs. The only exceptions are the IDs of threads that ran while the mode changed. Such an ID
//! gets its new owner when the kernel switches away from the thread.

use super::bitmap::Bitmap;
use super::impossible::Impossible;
use super::policy::{Id, Policy, PolicySpec, Process, Thread, Work};
use super::threads::Threads;
use crate::topology::Cpu;

pub(super) const SPEC: PolicySpec = PolicySpec {
    name: "linux-6.19",
    about: "Linux 6.19 and later: an ID per thread, or per CPU if there are many threads",
    create: &|topology| Box::new(Linux619::new(topology.cpus())),
};

/// The owners of IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// An ID moves with its thread.
    PerTask,
    /// The running thread uses its CPU's ID. The mode ends if there are fewer users than the
    /// threshold.
    PerCpu { threshold: u32 },
}

/// The ID that a thread itself has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Holding {
    /// None: the thread uses the ID of its CPU, or does not run.
    #[default]
    None,
    /// Its own ID.
    Own(Id),
    /// An ID that it used while the mode changed.
    Transit(Id),
}

#[derive(Debug, Default)]
struct ThreadNote {
    holding: Holding,
    exited: bool,
}

struct Linux619 {
    mode: Mode,
    taken: Bitmap,
    /// Maximum number of IDs; 0 until the first event of the process.
    max_cids: u32,
    /// Number of allowed CPUs at the last update.
    nr_cpus_allowed: u32,
    /// Own ID of each CPU.
    slots: Vec<Option<Id>>,
    threads: Threads<ThreadNote>,
    work: Work,
}

impl Linux619 {
    fn new(cpus: u32) -> Linux619 {
        Linux619 {
            mode: Mode::PerTask,
            taken: Bitmap::new(cpus),
            max_cids: 0,
            nr_cpus_allowed: 0,
            slots: vec![None; cpus as usize],
            threads: Threads::default(),
            work: Work::default(),
        }
    }

    fn possible(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Updates the mode after the number of threads or of allowed CPUs has changed. The threshold
    /// stays as it was when the mode changed: if there are fewer threads than CPUs, it would
    /// decrease with them.
    fn update(&mut self, process: &Process<'_>) {
        let opt = process.nr_cpus_allowed.min(process.users);
        self.max_cids = (opt + opt / 4).min(self.possible());
        self.nr_cpus_allowed = process.nr_cpus_allowed;
        match self.mode {
            Mode::PerTask if process.users > self.max_cids => self.give_to_cpus(process, opt),
            Mode::PerCpu { threshold } if process.users < threshold => self.give_to_tasks(process),
            Mode::PerTask | Mode::PerCpu { .. } => {}
        }
    }

    fn threshold(&self, opt: u32) -> u32 {
        (opt - opt / 4).min(self.possible() / 2).max(1)
    }

    fn give_to_cpus(&mut self, process: &Process<'_>, opt: u32) {
        self.mode = Mode::PerCpu { threshold: self.threshold(opt) };
        for thread in process.running.iter().flatten() {
            let note = self.threads.get_mut(*thread);
            if let Holding::Own(id) = note.holding {
                note.holding = Holding::Transit(id);
            }
        }
        for note in self.threads.iter_mut() {
            if let Holding::Own(id) = note.holding {
                note.holding = Holding::None;
                self.taken.free(id);
            }
        }
    }

    fn give_to_tasks(&mut self, process: &Process<'_>) {
        self.mode = Mode::PerTask;
        for (slot, running) in self.slots.iter_mut().zip(process.running) {
            let Some(id) = slot.take() else { continue };
            match running.map(|thread| self.threads.get_mut(thread)) {
                Some(note) if !note.exited && note.holding == Holding::None => {
                    note.holding = Holding::Transit(id);
                }
                _ => self.taken.free(id),
            }
        }
    }

    /// Gives an ID in transit to its owner in the new mode, or frees it if it is not below the
    /// bound.
    fn schedule_out(&mut self, cpu: usize, thread: Thread) {
        let note = self.threads.get_mut(thread);
        let Holding::Transit(id) = note.holding else { return };
        note.holding = Holding::None;
        match self.mode {
            Mode::PerTask if id < self.max_cids => note.holding = Holding::Own(id),
            Mode::PerCpu { .. } if id < self.max_cids && self.slots[cpu].is_none() => {
                self.slots[cpu] = Some(id);
            }
            Mode::PerTask | Mode::PerCpu { .. } => self.taken.free(id),
        }
    }

    fn schedule_in(
        &mut self,
        process: &Process<'_>,
        cpu: usize,
        thread: Thread,
    ) -> Result<Id, Impossible> {
        if self.max_cids == 0 {
            self.update(process);
        }
        match self.mode {
            Mode::PerTask => {
                let own = match self.threads.get_mut(thread).holding {
                    Holding::Own(id) | Holding::Transit(id) => Some(id),
                    Holding::None => None,
                };
                let id = self.obtain_or_converge(own)?;
                self.threads.get_mut(thread).holding = Holding::Own(id);
                Ok(id)
            }
            Mode::PerCpu { .. } => {
                let id = self.obtain_or_converge(self.slots[cpu])?;
                self.slots[cpu] = Some(id);
                Ok(id)
            }
        }
    }

    /// Returns the owned ID, or a free one below the bound if the owned one is not.
    fn obtain_or_converge(&mut self, owned: Option<Id>) -> Result<Id, Impossible> {
        match owned {
            Some(id) if id < self.max_cids => Ok(id),
            Some(id) => Ok(self.converge(id)),
            None => self.obtain(),
        }
    }

    fn converge(&mut self, id: Id) -> Id {
        self.work.slow_paths += 1;
        let Some(lower) = self.taken.take_first_below(self.max_cids) else { return id };
        self.taken.free(id);
        lower
    }

    fn obtain(&mut self) -> Result<Id, Impossible> {
        self.work.slow_paths += 1;
        let dense = self.taken.take_first_below(self.max_cids);
        let any = dense.or_else(|| self.taken.take_first_below(self.possible()));
        any.ok_or(Impossible("more IDs are owned than there are CPUs"))
    }
}

impl Policy for Linux619 {
    fn switch(
        &mut self,
        process: &Process<'_>,
        cpu: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
    ) -> Result<(), Impossible> {
        if let Some(prev) = prev {
            self.schedule_out(cpu as usize, prev);
        }
        // An ended thread that was preempted in its last steps is switched to again, and takes no
        // ID.
        if let Some(next) = next.filter(|&next| !self.threads.get_mut(next).exited) {
            self.schedule_in(process, cpu as usize, next)?;
        }
        Ok(())
    }

    fn spawn(&mut self, process: &Process<'_>, _: Thread) {
        self.update(process);
    }

    fn exit(&mut self, process: &Process<'_>, thread: Thread, _: Cpu) {
        let note = self.threads.get_mut(thread);
        note.exited = true;
        if let Holding::Own(id) | Holding::Transit(id) = std::mem::take(&mut note.holding) {
            self.taken.free(id);
        }
        self.update(process);
    }

    /// Updates the threshold and the mode if the number of allowed CPUs has changed. A thread that
    /// moves within the process's CPUs changes nothing.
    fn affinity(&mut self, process: &Process<'_>, _: Thread) {
        if process.nr_cpus_allowed == self.nr_cpus_allowed {
            return;
        }
        if let Mode::PerCpu { .. } = self.mode {
            let threshold = self.threshold(process.nr_cpus_allowed.min(process.users));
            self.mode = Mode::PerCpu { threshold };
        }
        self.update(process);
    }

    fn exec(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<(), Impossible> {
        *self = Linux619 { work: self.work, ..Linux619::new(self.possible()) };
        self.schedule_in(process, cpu as usize, thread).map(drop)
    }

    fn id(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<Id, Impossible> {
        match (self.threads.get_mut(thread).holding, self.slots[cpu as usize]) {
            (Holding::Own(id) | Holding::Transit(id), _) | (Holding::None, Some(id)) => Ok(id),
            (Holding::None, None) => self.schedule_in(process, cpu as usize, thread),
        }
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
    fn in_the_mode_of_threads_the_id_travels() {
        let mut s = Scenario::new(&SPEC, 8);
        s.spawn(2);
        assert_eq!((s.run(0, 0), s.run(1, 1)), (0, 1));
        s.idle(1);
        assert_eq!(s.run(5, 1), 1);
        assert_eq!(s.run(1, 2), 2, "no CPU keeps anything");
    }

    #[test]
    fn many_threads_make_the_ids_belong_to_the_cpus_and_few_give_them_back() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(3);
        assert_eq!((s.run(2, 0), s.run(1, 3)), (0, 1));
        // opt = 4, max_cids = min(4 + 1, 4): with a fifth thread, the mode changes.
        s.spawn(1);
        assert_eq!((s.id(2), s.id(1)), (0, 1), "running threads keep theirs");
        assert_eq!((s.run(2, 4), s.run(1, 1)), (0, 1), "and leave them to their CPUs");
        s.idle(2);
        assert_eq!(s.run(2, 2), 0);
        assert_eq!(s.run(0, 0), 2, "a CPU without one gets the first free one");
        // threshold = max(min(4 - 1, 4 / 2), 1) = 2: the mode changes with one thread left.
        s.exit(1);
        s.exit(0);
        s.run(0, 3);
        s.exit(0);
        s.run(0, 4);
        assert_eq!(s.id(0), 2);
        s.exit(0);
        assert_eq!(s.run(3, 2), 0, "thread 2 took the ID of CPU 2 along");
    }

    #[test]
    fn ids_may_be_a_quarter_above_the_bound_and_converge_afterwards() {
        let mut s = Scenario::new(&SPEC, 16);
        s.spawn(7);
        for thread in 0..8 {
            assert_eq!(s.run(thread, thread), thread);
        }
        (0..5).for_each(|cpu| s.exit(cpu));
        // Three threads: max_cids = 3, and 0 to 4 are free.
        assert_eq!(s.id(7), 7);
        s.idle(7);
        assert_eq!(s.run(7, 7), 0);
    }
}
