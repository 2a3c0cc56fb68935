//! Estimate of the number of events to simulate. It allows progress reports for several runs of
//! unequal length.

use super::program::{Group, GroupIndex, Op, Program};
use crate::machine::Machine;
use crate::time::{Ns, SECOND};

/// The cost of one pass through some operations.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Pass {
    /// Time for which the thread needs a CPU, in nanoseconds.
    busy: f64,
    /// Time for which the thread sleeps, in nanoseconds.
    asleep: f64,
    /// Number of events to simulate.
    events: f64,
    /// `true` if it is repeated until the end of the simulation.
    is_endless: bool,
}

impl Pass {
    fn add(&mut self, other: Pass, times: f64) {
        self.busy += times * other.busy;
        self.asleep += times * other.asleep;
        self.events += times * other.events;
    }

    fn ns(&self) -> f64 {
        self.busy + self.asleep
    }
}

/// Approximate cost of a burst on near memory: it is short relative to the time between bursts.
const BURST_NS: f64 = 300.0;

/// Depth up to which children of children are counted.
const GENERATIONS: u32 = 3;

impl Program {
    /// Returns the approximate number of events of a simulation on a machine, at least 1. It is
    /// correct within a factor of two if threads do not wait for each other. The time per event
    /// also depends on the policy.
    pub fn expected_events(&self, machine: &Machine) -> u64 {
        let mut passes: Vec<(f64, Pass)> = Vec::new();
        for part in &self.parts {
            let of_part = self.groups[part.groups.clone()].iter().map(|group| {
                let threads = f64::from(group.count * part.processes);
                (threads, self.pass_of(group, GENERATIONS))
            });
            passes.extend(of_part);
        }
        let events = match self.duration {
            Some(duration) => self.events_within(duration, &passes, machine),
            None => passes.iter().map(|(threads, pass)| threads * pass.events).sum(),
        };
        events.clamp(1.0, 1e15) as u64
    }

    fn events_within(&self, duration: Ns, passes: &[(f64, Pass)], machine: &Machine) -> f64 {
        let repeats = |pass: &Pass, group: &Group| {
            pass.is_endless || matches!(group.ops.last(), Some(Op::Respawn))
        };
        let duration = duration as f64;
        let (mut demand, mut events) = (0.0, 0.0);
        for ((threads, pass), group) in passes.iter().zip(&self.groups) {
            let ns = pass.ns().max(1.0);
            let times = if repeats(pass, group) { duration / ns } else { (duration / ns).min(1.0) };
            demand += threads * times * pass.busy / duration.max(1.0);
            events += threads * times * pass.events;
        }
        let cpus = self.cpus.len() as f64;
        // Threads that wait for a CPU do everything later.
        let slowed = (cpus / demand).min(1.0);
        let ticks = demand.min(cpus) * duration * machine.kernel.hz.value / SECOND as f64;
        events * slowed + ticks
    }

    fn pass_of(&self, group: &Group, generations: u32) -> Pass {
        self.pass(&group.ops, &mut 0, 0, generations)
    }

    /// Returns one pass through the operations from index `at` to the end of their loop.
    fn pass(&self, ops: &[Op], at: &mut usize, depth: u32, generations: u32) -> Pass {
        let mut all = Pass::default();
        while let Some(op) = ops.get(*at) {
            *at += 1;
            match *op {
                Op::Repeat { times, past, depth: inner } => {
                    let body = self.pass(ops, at, inner + 1, generations);
                    *at = past as usize;
                    if times == u32::MAX || body.is_endless {
                        return Pass { is_endless: true, ..body };
                    }
                    all.add(body, f64::from(times));
                }
                Op::Again { depth: inner, .. } if inner < depth => return all,
                op => all.add(self.of_one(op, generations), 1.0),
            }
        }
        all
    }

    fn of_one(&self, op: Op, generations: u32) -> Pass {
        let (busy, asleep, events) = match op {
            Op::Run { time, .. } => (time.mean() as f64, 0.0, 0.5),
            Op::Burst { times, .. } => (f64::from(times) * BURST_NS, 0.0, 1.0),
            // A sleep has two events: the wake-up, and the CPU's next operation.
            Op::Sleep(spread) => (0.0, spread.mean() as f64, 2.0),
            Op::Turn { after, jitter } => (0.0, (after + jitter / 2) as f64, 2.0),
            Op::Timer { after, jitter, .. } => (0.0, (after + jitter / 2) as f64, 2.0),
            Op::Barrier | Op::SpinBarrier | Op::Wait | Op::Respawn => (0.0, 0.0, 2.0),
            Op::Fork { group } => return self.child(group, generations),
            Op::EndTurn | Op::Exec | Op::Repeat { .. } | Op::Again { .. } => (0.0, 0.0, 0.0),
        };
        Pass { busy, asleep, events, is_endless: false }
    }

    /// Returns the events that a child adds to its parent's pass.
    fn child(&self, group: GroupIndex, generations: u32) -> Pass {
        if generations == 0 {
            return Pass::default();
        }
        let child = self.pass_of(self.group(group), generations - 1);
        Pass { events: child.events + 2.0, ..Pass::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use crate::engine::Simulation;
    use crate::machine::Machine;
    use crate::policies;
    use std::sync::atomic::AtomicBool;

    /// Returns the estimated and the simulated number of events. Scheduler events are a large part
    /// of all.
    fn estimated_and_simulated(workload: &str, set: &[(&str, f64)]) -> (f64, f64) {
        let machine = Machine::preset("epyc-9654").expect("a preset");
        let mut workload = Workload::preset(workload).expect("a preset");
        for (name, value) in set {
            workload.set(name, *value).expect("a parameter");
        }
        let program = workload.program(&machine).expect("a program");
        let policy = policies::find("per-cpu").expect("a policy");
        let found = Simulation::new(&machine, &program, policy, 1)
            .run(&AtomicBool::new(false))
            .expect("the policy keeps its contract");
        let simulated = found.bursts() + found.scheduling.wakes + found.scheduling.ticks;
        (program.expected_events(&machine) as f64, simulated as f64)
    }

    #[test]
    fn runs_of_very_unequal_length_are_told_apart() {
        let cases: [(&str, &[(&str, f64)]); 8] = [
            ("thread-pool", &[("threads", 16.0), ("duration_ms", 200.0)]),
            ("thread-pool", &[("threads", 800.0), ("duration_ms", 100.0)]),
            ("oversubscribed", &[("threads_per_cpu", 1.0), ("duration_ms", 100.0)]),
            ("oversubscribed", &[("threads_per_cpu", 8.0), ("duration_ms", 100.0)]),
            ("container", &[("duration_ms", 500.0)]),
            ("churn", &[("duration_ms", 200.0)]),
            ("fork-exec", &[("duration_ms", 100.0)]),
            ("intermittent", &[("delay_ms", 1.0), ("l3s", 6.0)]),
        ];
        let (mut least, mut most) = (f64::MAX, 0.0f64);
        for (workload, set) in cases {
            let (estimated, simulated) = estimated_and_simulated(workload, set);
            let ratio = estimated / simulated;
            assert!((0.4..2.5).contains(&ratio), "{workload} {set:?}: {estimated} {simulated}");
            (least, most) = (least.min(simulated), most.max(simulated));
        }
        assert!(most > 50.0 * least, "they were of unequal length: {least} to {most}");
    }
}
