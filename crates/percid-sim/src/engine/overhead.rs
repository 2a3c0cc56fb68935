//! Charges threads for the work of policies, and for its interruptions.

use std::ops::Range;

use super::index::{FIRST_PROCESS, ProcessIndex};
use super::simulation::Simulation;
use crate::contract::holders::expect_work;
use crate::policies::Overhead;
use crate::time::Ns;
use crate::topology::Cpu;

impl Simulation<'_> {
    /// Charges the running thread of a CPU for the work that its process's policy just did. Returns
    /// the duration. Threads that the work interrupts continue later.
    #[inline]
    pub(super) fn charge(&mut self, process: ProcessIndex, cpu: Cpu) -> Ns {
        let overhead = self.processes[process].policy.take_overhead();
        if overhead == Overhead::default() { 0 } else { self.charge_for(process, cpu, &overhead) }
    }

    #[cold]
    fn charge_for(&mut self, process: ProcessIndex, cpu: Cpu, overhead: &Overhead) -> Ns {
        if overhead.slow_paths > 0 && process == FIRST_PROCESS {
            self.sampler.note_slow_path(self.now);
        }
        if let Err(breach) = expect_work(overhead, self.cpus.topology.cpus()) {
            let thread = self.cpus[cpu].runs.map_or(0, |thread| self.threads[thread].number);
            self.violated(cpu, thread, breach);
            return 0;
        }
        self.processes[process].fence(&mut self.holders, cpu, overhead);
        let part = self.processes[process].part;
        let mut ns = self.prices[part].work(overhead, self.cpus.topology.cpus());
        if let Some(other) = overhead.fenced {
            ns += self.fence(process, cpu, other..other + 1);
        }
        for _ in 0..overhead.fenced_all {
            ns += self.fence(process, cpu, self.cpus.all());
        }
        self.outcome.parts[part].expense.work_ns += ns;
        ns
    }

    /// Interrupts the threads of a process on these CPUs, except on the fencing CPU. Returns the
    /// duration of the fence.
    fn fence(&mut self, process: ProcessIndex, by: Cpu, cpus: Range<Cpu>) -> Ns {
        let part = self.processes[process].part;
        let interrupt = self.prices[part].interrupt();
        let mut interrupted = 0;
        for cpu in cpus {
            if cpu != by && self.processes[process].runs_on(cpu) {
                self.hold_up(cpu, interrupt);
                interrupted += 1;
            }
        }
        let expense = &mut self.outcome.parts[part].expense;
        expense.interrupts += u64::from(interrupted);
        expense.interrupted_ns += Ns::from(interrupted) * interrupt;
        self.prices[part].fence(interrupted)
    }

    /// Prolongs the operation of a CPU's thread.
    fn hold_up(&mut self, cpu: Cpu, by: Ns) {
        let left = self.cpus[cpu].ends.saturating_sub(self.now);
        self.occupy(cpu, left + by);
    }
}
