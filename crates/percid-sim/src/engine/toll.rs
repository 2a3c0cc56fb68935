//! What the work of policies costs: the threads that do it, and those that it interrupts.

use super::Simulation;
use crate::Ns;
use crate::policies::Toll;
use crate::topology::Cpu;

impl Simulation<'_> {
    /// What the policy of a process did just now for the thread that runs on a CPU takes that thread so long.
    /// Whoever is interrupted by it goes on later.
    pub(super) fn collect(&mut self, process: u32, cpu: Cpu) -> Ns {
        let toll = self.processes[process as usize].policy.toll();
        if toll == Toll::default() {
            return 0;
        }
        if toll.slow_paths > 0 {
            self.note_slow_path(process);
        }
        let mut ns = self.prices.work(&toll, self.topology.cpus());
        if let Some(other) = toll.fenced {
            ns += self.fence(process, cpu, other..other + 1);
        }
        for _ in 0..toll.fenced_all {
            ns += self.fence(process, cpu, 0..self.topology.cpus());
        }
        self.outcome.expense.work_ns += ns;
        ns
    }

    /// Interrupts the threads of a process on these CPUs but the one that asks for it. Answers how long that takes it.
    fn fence(&mut self, process: u32, by: Cpu, cpus: std::ops::Range<Cpu>) -> Ns {
        let interrupt = self.prices.interrupt();
        let mut interrupted = 0;
        for cpu in cpus {
            let runs = self.processes[process as usize].running[cpu as usize].is_some();
            if runs && cpu != by {
                self.hold_up(cpu, interrupt);
                interrupted += 1;
            }
        }
        self.outcome.expense.interrupts += u64::from(interrupted);
        self.outcome.expense.interrupted_ns += Ns::from(interrupted) * interrupt;
        self.prices.fence(interrupted)
    }

    /// What a CPU does takes longer.
    fn hold_up(&mut self, cpu: Cpu, by: Ns) {
        let left = self.cpus[cpu as usize].ends.saturating_sub(self.now);
        self.occupy(cpu, left + by);
    }
}
