//! The end of a run whose policy breaks its contract.

use super::index::ProcessIndex;
use super::simulation::Simulation;
use crate::contract::{Breach, Violation};
use crate::policies::{Id, Impossible, Policy, Process, Thread, Work};
use crate::topology::Cpu;

/// A policy that replaces one that has failed, for the rest of the event.
struct Failed;

impl Policy for Failed {
    fn exec(&mut self, _: &Process<'_>, _: Cpu, _: Thread) -> Result<(), Impossible> {
        Ok(())
    }

    fn id(&mut self, _: &Process<'_>, cpu: Cpu, _: Thread) -> Result<Id, Impossible> {
        Ok(cpu)
    }

    fn work(&self) -> Work {
        Work::default()
    }
}

impl Simulation<'_> {
    /// Ends the run after this event, because a policy broke a rule. The first violation counts.
    #[cold]
    pub(super) fn violated(&mut self, cpu: Cpu, thread: Thread, breach: Breach) {
        let (policy, at) = (self.policy.name, self.now);
        self.violation.get_or_insert(Violation { policy, at, cpu, thread, breach });
    }

    /// Ends the run after this event, because a policy cannot continue. It is not called again.
    #[cold]
    pub(super) fn policy_failed(
        &mut self,
        process: ProcessIndex,
        cpu: Cpu,
        thread: Thread,
        impossible: Impossible,
    ) {
        let policy = std::mem::replace(&mut self.processes[process].policy, Box::new(Failed));
        let why = policy.failure().unwrap_or_else(|| impossible.to_string());
        let why = format!("{why}, for thread {thread} on CPU {cpu}");
        self.violated(cpu, thread, Breach::Failed { why });
    }

    /// Ends the run if a policy has failed in a method that returns no error.
    pub(super) fn expect_no_failure(&mut self, process: ProcessIndex) {
        if let Some(why) = self.processes[process].policy.failure() {
            self.violated(0, 0, Breach::Failed { why });
        }
    }
}
