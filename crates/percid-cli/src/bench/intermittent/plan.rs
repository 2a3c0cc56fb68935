//! What the intermittent benchmark measures, and about how long that takes.

use std::time::Duration;

use super::index::Index;
use crate::cli::IntermittentArguments;
use percid_command::exit::complain;

/// What to measure.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) delays_ms: Vec<u64>,
    pub(super) bursts: u64,
    pub(super) warmup: u64,
    pub(super) prefault: bool,
    pub(super) seed: u64,
    pub(super) cpus: Vec<u32>,
}

impl Plan {
    /// The published benchmark.
    fn published(cpus: &[u32]) -> Self {
        Plan {
            delays_ms: vec![10, 200],
            bursts: 5,
            warmup: 20_000,
            prefault: false,
            seed: 1,
            cpus: cpus.to_vec(),
        }
    }

    pub(crate) fn asked(arguments: &IntermittentArguments, cpus: &[u32]) -> Self {
        let wanted = arguments.cpus.map_or(cpus.len(), |wanted| wanted as usize);
        Plan {
            delays_ms: arguments.delay_ms.clone(),
            bursts: arguments.bursts,
            warmup: arguments.warmup,
            prefault: arguments.prefault,
            seed: arguments.seed,
            cpus: cpus.iter().copied().take(wanted).collect(),
        }
    }

    /// As much of the published benchmark as fits into `budget`: fewer bursts first, then fewer
    /// CPUs, then no long delay. Two CPUs with the short delay are kept whatever the budget.
    pub(crate) fn fitting(budget: Duration, cpus: &[u32]) -> Self {
        let mut plan = Plan::published(cpus);
        while plan.expected() > budget && plan.bursts > 3 {
            plan.bursts -= 1;
        }
        while plan.expected() > budget && plan.cpus.len() > 2 {
            plan.cpus.pop();
        }
        while plan.expected() > budget && plan.delays_ms.len() > 1 {
            let left_out = plan.delays_ms.pop().unwrap_or_default();
            complain(format_args!(
                "no time for the intermittent benchmark with a delay of {left_out} ms"
            ));
        }
        plan
    }

    /// About how long measuring takes.
    pub(crate) fn expected(&self) -> Duration {
        const WARMUP_BURST: Duration = Duration::from_nanos(350);
        let warmup = WARMUP_BURST.as_secs_f64() * (self.warmup * Index::ALL.len() as u64) as f64;
        let pauses: f64 =
            self.delays_ms.iter().map(|&delay| self.bursts as f64 * delay as f64 / 1e3).sum();
        Duration::from_secs_f64(
            self.cpus.len() as f64 * (pauses + warmup * self.delays_ms.len() as f64),
        )
    }
}
