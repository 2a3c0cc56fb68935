//! Reduction of a schedule that breaks a contract.
//!
//! Each pass tries smaller schedules and keeps those that break the same rule: without some of the
//! steps, on a smaller machine, with smaller numbers, and with less time.

use super::execution::{Execution, execute};
use super::schedule::{Schedule, Step};
use super::violation::Violation;
use crate::policies::PolicySpec;

/// A schedule that breaks a rule, while it is reduced.
struct Reduction<'a> {
    entry: &'a PolicySpec,
    schedule: Schedule,
    violation: Violation,
}

/// Returns a schedule that no single change makes smaller, and its violation; `None` if the
/// schedule breaks no rule.
pub(super) fn shrink(entry: &PolicySpec, schedule: Schedule) -> Option<(Schedule, Violation)> {
    let violation = execute(entry, &schedule).violation?;
    let mut reduction = Reduction { entry, schedule, violation };
    loop {
        let before = reduction.schedule.clone();
        reduction.drop_steps();
        reduction.drop_spawns();
        reduction.reduce_machine();
        reduction.reduce_numbers();
        reduction.reduce_times();
        if reduction.schedule == before {
            return Some((reduction.schedule, reduction.violation));
        }
    }
}

impl Reduction<'_> {
    /// Replaces the schedule if the candidate breaks the same rule. Returns `true` if it does.
    fn accept(&mut self, candidate: Schedule) -> bool {
        let Execution { steps, violation } = execute(self.entry, &candidate);
        let Some(violation) = violation.filter(|new| new.breach.is_like(&self.violation.breach))
        else {
            return false;
        };
        self.schedule = Schedule { steps, ..candidate };
        self.violation = violation;
        true
    }

    fn accept_steps(&mut self, steps: Vec<Step>) -> bool {
        self.accept(Schedule { steps, ..self.schedule.clone() })
    }

    /// Drops runs of steps, first long ones.
    fn drop_steps(&mut self) {
        let mut length = self.schedule.steps.len();
        while length > 0 {
            let mut at = 0;
            while at < self.schedule.steps.len() {
                let mut steps = self.schedule.steps.clone();
                steps.drain(at..(at + length).min(steps.len()));
                if !self.accept_steps(steps) {
                    at += length;
                }
            }
            length /= 2;
        }
    }

    /// Drops the beginning of each thread, and gives its number to the next one.
    fn drop_spawns(&mut self) {
        let mut number = 1;
        while let Some(at) = nth_spawn(&self.schedule.steps, number) {
            let mut steps = self.schedule.steps.clone();
            steps.remove(at);
            let lowered = |thread: u32| if thread > number { thread - 1 } else { thread };
            let steps = steps.into_iter().map(|step| with_thread(step, lowered)).collect();
            if !self.accept_steps(steps) {
                number += 1;
            }
        }
    }

    /// Tries machines with one cache, from one CPU on.
    fn reduce_machine(&mut self) {
        for cpus in 1..=self.schedule.topology.cpus() {
            let topology = Schedule::flat(cpus);
            if topology == self.schedule.topology {
                return;
            }
            let allowed = self.schedule.allowed.min(cpus);
            if self.accept(Schedule { topology, allowed, ..self.schedule.clone() }) {
                return;
            }
        }
    }

    /// Exchanges CPUs and threads with smaller numbers.
    fn reduce_numbers(&mut self) {
        for larger in 1..self.schedule.topology.cpus() {
            for smaller in 0..larger {
                let swapped = |cpu| swap(cpu, smaller, larger);
                let steps = self.schedule.steps.iter().map(|&step| with_cpu(step, swapped));
                let steps: Vec<Step> = steps.collect();
                if numbers(&steps) < numbers(&self.schedule.steps) && self.accept_steps(steps) {
                    break;
                }
            }
        }
        let threads = 1 + self.schedule.steps.iter().filter(|&&step| step == Step::Spawn).count();
        for larger in 1..threads as u32 {
            for smaller in 0..larger {
                let swapped = |thread| swap(thread, smaller, larger);
                let steps = self.schedule.steps.iter().map(|&step| with_thread(step, swapped));
                let steps: Vec<Step> = steps.collect();
                if numbers(&steps) < numbers(&self.schedule.steps) && self.accept_steps(steps) {
                    break;
                }
            }
        }
    }

    /// Halves the times.
    fn reduce_times(&mut self) {
        for at in 0..self.schedule.steps.len() {
            while let Some(&Step::Advance { us }) = self.schedule.steps.get(at) {
                let mut steps = self.schedule.steps.clone();
                steps[at] = Step::Advance { us: us / 2 };
                if us == 0 || !self.accept_steps(steps) {
                    break;
                }
            }
        }
    }
}

fn nth_spawn(steps: &[Step], number: u32) -> Option<usize> {
    let spawns = steps.iter().enumerate().filter(|(_, step)| **step == Step::Spawn);
    spawns.map(|(at, _)| at).nth(number as usize - 1)
}

fn swap(number: u32, one: u32, other: u32) -> u32 {
    match number {
        n if n == one => other,
        n if n == other => one,
        n => n,
    }
}

fn with_thread(step: Step, new: impl Fn(u32) -> u32) -> Step {
    match step {
        Step::Run { thread, cpu } => Step::Run { thread: new(thread), cpu },
        Step::Confine { thread, cpus } => Step::Confine { thread: new(thread), cpus },
        step => step,
    }
}

fn with_cpu(step: Step, new: impl Fn(u32) -> u32) -> Step {
    match step {
        Step::Run { thread, cpu } => Step::Run { thread, cpu: new(cpu) },
        Step::Idle { cpu } => Step::Idle { cpu: new(cpu) },
        Step::Use { cpu } => Step::Use { cpu: new(cpu) },
        Step::Tick { cpu } => Step::Tick { cpu: new(cpu) },
        Step::Exit { cpu } => Step::Exit { cpu: new(cpu) },
        Step::Exec { cpu } => Step::Exec { cpu: new(cpu) },
        step @ (Step::Spawn | Step::Advance { .. } | Step::Confine { .. }) => step,
    }
}

/// Returns the numbers of CPUs and threads, the first steps weighing most.
fn numbers(steps: &[Step]) -> Vec<(u32, u32)> {
    let of = |step: &Step| match *step {
        Step::Run { thread, cpu } => Some((thread, cpu)),
        Step::Confine { thread, .. } => Some((thread, 0)),
        Step::Idle { cpu }
        | Step::Use { cpu }
        | Step::Tick { cpu }
        | Step::Exit { cpu }
        | Step::Exec { cpu } => Some((0, cpu)),
        Step::Spawn | Step::Advance { .. } => None,
    };
    steps.iter().filter_map(of).collect()
}
