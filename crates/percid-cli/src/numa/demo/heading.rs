//! The lines before the first run, which describe the runs.

use std::fmt;

use super::kernel;
use super::plan::Plan;
use crate::numa::figures::mebibytes;
use crate::numa::nodes::KernelBalancing;

pub(super) struct Heading<'a> {
    pub(super) plan: &'a Plan,
    pub(super) kernel: KernelBalancing,
}

impl fmt::Display for Heading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plan, settings) = (self.plan, &self.plan.settings);
        writeln!(
            f,
            "NUMA01_THREADLOCAL, scaled: {} threads, {} MiB first written on node {}",
            plan.places.len(),
            mebibytes(plan.bytes() as u64),
            plan.first_node
        )?;
        writeln!(
            f,
            "pairs of runs, without balancing and with it, in turns: {}; {} s a run",
            plan.pairs,
            plan.length.as_secs_f64()
        )?;
        writeln!(
            f,
            "rules {}, access {}; scan delay {} ms, scan size {} MiB, period {} to {} ms",
            plan.rules.name(),
            plan.access,
            settings.scan_delay.as_secs_f64() * 1e3,
            mebibytes(settings.scan_size),
            settings.period_min.as_secs_f64() * 1e3,
            settings.period_max.as_secs_f64() * 1e3
        )?;
        writeln!(f, "{}", kernel::explained(self.kernel, plan.has_nodes()))?;
        if !plan.has_nodes() {
            writeln!(
                f,
                "one node has memory: there is nothing to gain; nothing is armed, and nothing moves"
            )?;
        }
        Ok(())
    }
}
