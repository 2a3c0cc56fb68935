//! Plan of the intermittent benchmark, and an estimate of its duration.

use std::time::Duration;

use super::index::Index;
use super::selection::Selection;
use crate::cli::IntermittentArguments;
use percid::machine::Cpu;
use percid_command::exit::{Failure, complain};

/// The measurements to make.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) delays_ms: Vec<u64>,
    pub(super) bursts: u64,
    pub(super) warmup: u64,
    pub(super) repetitions: u64,
    pub(super) prefault: bool,
    pub(super) seed: u64,
    pub(super) selection: Selection,
    pub(super) indices: Vec<Index>,
    /// Numbers of processes that compete for each CPU.
    pub(super) overcommit: Vec<u64>,
    /// Sizes of the memory that each of these processes touches, in KiB.
    pub(super) other_kib: Vec<u64>,
}

impl Plan {
    /// Returns the plan of the published benchmark on all allowed CPUs, with all indices side by
    /// side.
    fn published(machine: &[Cpu]) -> Result<Self, Failure> {
        Ok(Plan {
            delays_ms: vec![10, 200],
            bursts: 5,
            warmup: 20_000,
            repetitions: 1,
            prefault: false,
            seed: 1,
            selection: Selection::new(None, machine)?,
            indices: Index::ALL.to_vec(),
            overcommit: vec![0],
            other_kib: vec![0],
        })
    }

    pub(crate) fn asked(
        arguments: &IntermittentArguments,
        machine: &[Cpu],
    ) -> Result<Self, Failure> {
        Ok(Plan {
            delays_ms: arguments.delay_ms.clone(),
            bursts: arguments.bursts,
            warmup: arguments.warmup,
            repetitions: arguments.repetitions(),
            prefault: arguments.prefault,
            seed: arguments.seed,
            selection: Selection::new(arguments.cpus.as_ref(), machine)?,
            indices: Index::asked(&arguments.index),
            overcommit: arguments.overcommit.clone(),
            other_kib: arguments.other_memory.clone(),
        })
    }

    /// Returns the part of the published benchmark that fits into `budget`: fewer bursts first,
    /// then fewer CPUs, then no long delay. Two CPUs with the short delay are kept whatever the
    /// budget.
    pub(crate) fn fitting(budget: Duration, machine: &[Cpu]) -> Result<Self, Failure> {
        let mut plan = Plan::published(machine)?;
        while plan.expected() > budget && plan.bursts > 3 {
            plan.bursts -= 1;
        }
        while plan.expected() > budget && plan.selection.cpus.len() > 2 {
            plan.selection.cpus.pop();
        }
        while plan.expected() > budget && plan.delays_ms.len() > 1 {
            let left_out = plan.delays_ms.pop().unwrap_or_default();
            complain(format_args!(
                "no time for the intermittent benchmark with a delay of {left_out} ms"
            ));
        }
        Ok(plan)
    }

    /// Returns the numbers of competing processes, each with the memory that they touch, in KiB.
    /// Each number is combined with all sizes, except 0, which touches nothing.
    pub(super) fn competing(&self) -> Vec<(u64, Option<u64>)> {
        let of_number = |&others: &u64| -> Vec<(u64, Option<u64>)> {
            match others {
                0 => vec![(0, None)],
                _ => self.other_kib.iter().map(|&kib| (others, Some(kib))).collect(),
            }
        };
        self.overcommit.iter().flat_map(of_number).collect()
    }

    /// Returns the approximate duration of the measurement.
    pub(crate) fn expected(&self) -> Duration {
        self.expected_of_repetition() * self.repetitions as u32
    }

    fn expected_of_repetition(&self) -> Duration {
        const WARMUP_BURST: Duration = Duration::from_nanos(350);
        let warmup = WARMUP_BURST.as_secs_f64() * (self.warmup * self.indices.len() as u64) as f64;
        let pauses: f64 =
            self.delays_ms.iter().map(|&delay| self.bursts as f64 * delay as f64 / 1e3).sum();
        // During the warm-up a thread shares its CPU with the competitors.
        let competing = self.competing();
        let shares: u64 = competing.iter().map(|(others, _)| others + 1).sum();
        let warmups = warmup * self.delays_ms.len() as f64 * shares as f64;
        let per_thread = pauses * competing.len() as f64 + warmups;
        Duration::from_secs_f64(self.selection.cpus.len() as f64 * per_thread)
    }
}
