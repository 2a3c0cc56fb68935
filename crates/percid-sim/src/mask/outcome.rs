//! The results of a simulation.

use serde::Serialize;

use super::line::Grant;
use super::line::Source;
use super::parameters::Parameters;
use super::policy::Cycles;

/// Minimum latency of a sampled load, in cycles: the usual threshold of `perf mem` and `perf c2c`.
const SAMPLE_THRESHOLD: Cycles = 30;

/// The result of one simulation. Latencies are in cycles and cover the switches' accesses to the
/// mask. They are `None` if there was no access of the kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The policy's name.
    pub policy: String,
    /// Number of CPUs that ran the program.
    pub cpus: u32,
    /// Measured simulated time, in seconds.
    pub seconds: f64,
    /// Number of turns that ended in that time.
    pub turns: u64,
    /// Number of switches to another thread, or to the same one after the CPU was idle or in a
    /// kernel thread.
    pub switches: u64,
    /// Number of these switches to an address space whose page tables were not loaded.
    pub switches_across: u64,
    /// Number of loads of page tables.
    pub reloads: u64,
    /// Mean latency of the accesses that missed the last-level cache: the value that is compared.
    pub miss_latency: Option<f64>,
    /// Mean latency of the accesses that found the line modified by another core.
    pub modified_latency: Option<f64>,
    /// Mean latency of the accesses that took 30 cycles or more.
    pub slow_latency: Option<f64>,
    /// Mean latency of all accesses.
    pub latency: Option<f64>,
    /// Mean latency of the accesses in switches to another address space.
    pub across_latency: Option<f64>,
    /// The scheduler's share of the program's CPU time, from 0 to 1.
    pub scheduler_share: f64,
    /// Work done per cycle, in CPUs that run beside a busy sibling.
    pub throughput: f64,
    /// Share of the CPUs' time that was idle or in kernel threads.
    pub away_share: f64,
    /// Number of transfers of a mask's line per second: fetches from a core that had modified it,
    /// and modifications that invalidated copies of other cores.
    pub transfers_per_second: f64,
    /// Share of time in which a mask's line was in transit from one owner to the next, summed over
    /// the masks.
    pub line_busy: f64,
    /// Average number of CPUs that were waiting for a mask's line or being served.
    pub waiting_cpus: f64,
    /// Number of the switches' accesses for each place where they found the line.
    pub sources: Vec<(Source, u64)>,
    /// Number of flushes of translations.
    pub flushes: u64,
    /// Number of interrupts that flushes sent.
    pub interrupts: u64,
    /// Number of these interrupts to CPUs that did not run the process.
    pub needless_interrupts: u64,
    /// Number of bits that were cleared.
    pub cleared: u64,
}

/// Sum and count of latencies.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: Cycles,
    count: u64,
}

impl Mean {
    fn add(&mut self, latency: Cycles) {
        self.sum += latency;
        self.count += 1;
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

const SOURCES: [Source; 7] = [
    Source::Core,
    Source::Cache,
    Source::ModifiedInCache,
    Source::Socket,
    Source::ModifiedInSocket,
    Source::Machine,
    Source::ModifiedInMachine,
];

/// The sums and counts of a simulation.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Start of the counted time.
    pub(super) since: Cycles,
    pub(super) turns: u64,
    pub(super) switches: u64,
    pub(super) switches_across: u64,
    pub(super) reloads: u64,
    /// CPU time in the scheduler, including accesses to the mask.
    pub(super) scheduler: Cycles,
    /// CPU time in the program, and in the scheduler on its behalf.
    pub(super) present: Cycles,
    pub(super) work: f64,
    pub(super) flushes: u64,
    pub(super) interrupts: u64,
    pub(super) needless_interrupts: u64,
    pub(super) cleared: u64,
    waiting: Cycles,
    occupied: Cycles,
    transfers: u64,
    miss: Mean,
    modified: Mean,
    slow: Mean,
    all: Mean,
    across: Mean,
    sources: [u64; SOURCES.len()],
}

impl Counters {
    pub(super) fn since(now: Cycles) -> Counters {
        Counters { since: now, ..Counters::default() }
    }

    /// Counts an access to a line.
    pub(super) fn access(&mut self, grant: &Grant, requested: Cycles) {
        self.waiting += grant.done - requested;
        self.occupied += grant.occupied;
        let moves = grant.occupied > 0 && grant.source != Source::Core;
        self.transfers += u64::from(moves);
    }

    /// Counts an access of a switch; `across` if it leads to another address space.
    pub(super) fn sample(&mut self, grant: &Grant, requested: Cycles, across: bool) {
        let latency = grant.done - requested;
        self.all.add(latency);
        if across {
            self.across.add(latency);
        }
        if latency >= SAMPLE_THRESHOLD {
            self.slow.add(latency);
        }
        if grant.source.is_miss() {
            self.miss.add(latency);
        }
        if grant.source.is_modified() {
            self.modified.add(latency);
        }
        self.sources[grant.source as usize] += 1;
    }

    pub(super) fn outcome(&self, parameters: &Parameters, policy: &str, now: Cycles) -> Outcome {
        let cycles = (now - self.since) as f64;
        let seconds = cycles / (parameters.clock_ghz * 1e9);
        let cpus = parameters.topology.cpus();
        Outcome {
            policy: policy.to_owned(),
            cpus,
            seconds,
            turns: self.turns,
            switches: self.switches,
            switches_across: self.switches_across,
            reloads: self.reloads,
            miss_latency: self.miss.value(),
            modified_latency: self.modified.value(),
            slow_latency: self.slow.value(),
            latency: self.all.value(),
            across_latency: self.across.value(),
            scheduler_share: self.scheduler as f64 / self.present.max(1) as f64,
            away_share: 1.0 - self.present as f64 / (cycles * f64::from(cpus)),
            throughput: self.work / cycles,
            transfers_per_second: self.transfers as f64 / seconds,
            line_busy: self.occupied as f64 / cycles,
            waiting_cpus: self.waiting as f64 / cycles,
            sources: SOURCES.into_iter().zip(self.sources).collect(),
            flushes: self.flushes,
            interrupts: self.interrupts,
            needless_interrupts: self.needless_interrupts,
            cleared: self.cleared,
        }
    }
}
