//! The execution of a whole schedule.

use super::driver::Driver;
use super::schedule::{Schedule, Step};
use super::violation::Violation;
use crate::policies::PolicySpec;

/// The executed steps of a schedule, and the violation that ended it.
#[derive(Debug, Clone)]
pub(super) struct Execution {
    pub(super) steps: Vec<Step>,
    pub(super) violation: Option<Violation>,
}

/// Executes a schedule with a new process.
pub(super) fn execute(entry: &PolicySpec, schedule: &Schedule) -> Execution {
    let mut driver = Driver::new(entry, &schedule.topology, schedule);
    let mut steps = Vec::with_capacity(schedule.steps.len());
    for &step in &schedule.steps {
        let stepped = driver.step(step);
        if !matches!(stepped, Ok(false)) {
            steps.push(step);
        }
        if let Err(violation) = stepped {
            return Execution { steps, violation: Some(violation) };
        }
    }
    Execution { steps, violation: driver.failure() }
}
