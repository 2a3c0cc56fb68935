//! CPU numbers as IDs, as programs without concurrency IDs use them: always local, never dense.

use super::impossible::Impossible;
use super::policy::{Id, Policy, PolicySpec, Process, Thread, Work};
use crate::topology::Cpu;

pub(super) const SPEC: PolicySpec = PolicySpec {
    name: "per-cpu",
    about: "the number of the CPU: local, and as many as the machine has",
    create: &|_| Box::new(PerCpu),
};

struct PerCpu;

impl Policy for PerCpu {
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
