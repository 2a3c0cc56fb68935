//! Comparison of mask policies: each runs with the same machine, workload and seeds.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;
use serde::Serialize;

use super::outcome::Outcome;
use super::parameters::{Parameters, set};
use super::policy::MaskPolicy;
use super::simulation::simulate;
use super::workload::Workload;
use crate::file::Error;
use crate::machine::Machine;
use crate::run_control::RunControl;

/// A comparison to simulate.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The workload, with all numbers set except the swept ones.
    pub workload: &'a Workload,
    /// Numbers of machine or workload that take several values. Every combination is simulated.
    pub sweeps: &'a [(String, Vec<f64>)],
    /// The policies.
    pub policies: &'a [MaskPolicy],
    /// Number of runs of each policy and combination, with consecutive seeds.
    pub seeds: u64,
    /// The first seed.
    pub seed: u64,
}

/// The results of one policy with one combination of numbers: means over the runs, unless a field
/// states otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MaskPolicyRow {
    /// The swept numbers.
    pub parameters: BTreeMap<String, f64>,
    /// The policy.
    pub policy: MaskPolicy,
    /// Number of runs.
    pub runs: u64,
    /// Number of CPUs.
    pub cpus: u32,
    /// Work done per unit of time, in CPUs that run beside a busy sibling.
    pub throughput: f64,
    /// Throughput of the run in which it was lowest.
    pub throughput_min: f64,
    /// Throughput of the run in which it was highest.
    pub throughput_max: f64,
    /// Relative increase of the throughput over the first policy of the same combination: 0 is no
    /// gain. `None` for the first policy itself.
    pub gain: Option<f64>,
    /// The scheduler's share of the CPU time, without idle time and kernel threads.
    pub scheduler_share: f64,
    /// Share of the time of all CPUs that is idle or in kernel threads.
    pub away_share: f64,
    /// Latency of a switch's accesses to the mask, in cycles; `None` if there was no access.
    pub latency: Option<f64>,
    /// Latency of those accesses that missed the last-level cache.
    pub miss_latency: Option<f64>,
    /// Latency of the accesses in switches to another address space.
    pub across_latency: Option<f64>,
    /// Number of times per second that a mask's line moved, or that copies of other CPUs were
    /// invalidated.
    pub transfers_per_second: f64,
    /// Number of CPUs that were waiting for a mask's line at a time.
    pub waiting_cpus: f64,
    /// Number of threads' turns, summed over all runs.
    pub turns: u64,
    /// Number of switches, summed over all runs.
    pub switches: u64,
    /// Number of these switches that led to another address space.
    pub switches_across: u64,
    /// Number of loads of page tables, summed over all runs.
    pub reloads: u64,
    /// Number of flushes, summed over all runs.
    pub flushes: u64,
    /// Number of interrupts that the flushes sent.
    pub interrupts: u64,
    /// Number of these interrupts to CPUs that did not run the process.
    pub needless_interrupts: u64,
    /// Number of bits that were cleared, summed over all runs.
    pub cleared: u64,
    /// Simulated time of all runs, in seconds.
    pub seconds: f64,
}

type Combination = (BTreeMap<String, f64>, Parameters);

impl Comparison<'_> {
    /// Returns the number of runs.
    pub fn runs(&self) -> u64 {
        let combinations: u64 = self.sweeps.iter().map(|(_, values)| values.len() as u64).product();
        combinations * self.policies.len() as u64 * self.seeds
    }

    /// Simulates all runs on all CPUs of this machine. The rows do not depend on the number of
    /// CPUs. Rows without any completed run when the simulation was stopped are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if a number is not allowed in one of the combinations.
    pub fn simulate(&self, progress: &RunControl) -> Result<Vec<MaskPolicyRow>, Error> {
        let combinations = self.combinations()?;
        let cases: Vec<(&Combination, MaskPolicy)> = combinations
            .iter()
            .flat_map(|one| self.policies.iter().map(move |&policy| (one, policy)))
            .collect();
        let rows = cases.par_iter().map(|&(combination, policy)| {
            let runs = self.outcomes(&combination.1, policy, progress);
            summary(combination.0.clone(), policy, &runs)
        });
        let mut rows: Vec<MaskPolicyRow> = rows.collect::<Vec<_>>().into_iter().flatten().collect();
        compare(&mut rows, self.policies.first().copied());
        Ok(rows)
    }

    fn combinations(&self) -> Result<Vec<Combination>, Error> {
        type Choice = (BTreeMap<String, f64>, Machine, Workload);
        let mut all = vec![(BTreeMap::new(), self.machine.clone(), self.workload.clone())];
        for (name, values) in self.sweeps {
            let with = |choice: &Choice, value: f64| {
                let (mut given, mut machine, mut workload) = choice.clone();
                set(&mut machine, &mut workload, name, value)?;
                given.insert(name.clone(), value);
                Ok((given, machine, workload))
            };
            let combined =
                all.iter().flat_map(|one| values.iter().map(move |&value| with(one, value)));
            all = combined.collect::<Result<_, Error>>()?;
        }
        let combination = |(given, machine, workload): Choice| {
            Ok((given, Parameters::from_machine(&machine, &workload)?))
        };
        all.into_iter().map(combination).collect()
    }

    fn outcomes(
        &self,
        parameters: &Parameters,
        policy: MaskPolicy,
        progress: &RunControl,
    ) -> Vec<Outcome> {
        let run = |run| {
            let seed = self.seed.wrapping_add(run);
            let outcome = simulate(parameters, &policy, seed, &progress.stop)
                .expect("the policies of Linux keep their contract")?;
            progress.done.fetch_add(1, Relaxed);
            Some(outcome)
        };
        (0..self.seeds).into_par_iter().filter_map(run).collect()
    }
}

/// Sets the gains over the first policy.
fn compare(rows: &mut [MaskPolicyRow], first: Option<MaskPolicy>) {
    for rows in rows.chunk_by_mut(|one, other| one.parameters == other.parameters) {
        let Some((base, others)) = rows.split_first_mut() else { continue };
        if Some(base.policy) == first && base.throughput > 0.0 {
            others
                .iter_mut()
                .for_each(|row| row.gain = Some(row.throughput / base.throughput - 1.0));
        }
    }
}

fn summary(
    parameters: BTreeMap<String, f64>,
    policy: MaskPolicy,
    runs: &[Outcome],
) -> Option<MaskPolicyRow> {
    let mean =
        |figure: fn(&Outcome) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    // Averages over the runs that have the value: a run without such an access has no latency.
    let of_some = |figure: fn(&Outcome) -> Option<f64>| {
        let some: Vec<f64> = runs.iter().filter_map(figure).collect();
        (!some.is_empty()).then(|| some.iter().sum::<f64>() / some.len() as f64)
    };
    let sum = |count: fn(&Outcome) -> u64| runs.iter().map(count).sum();
    let throughput = || runs.iter().map(|run| run.throughput);
    Some(MaskPolicyRow {
        parameters,
        policy,
        runs: runs.len() as u64,
        cpus: runs.first()?.cpus,
        throughput: mean(|run| run.throughput),
        throughput_min: throughput().min_by(f64::total_cmp)?,
        throughput_max: throughput().max_by(f64::total_cmp)?,
        gain: None,
        scheduler_share: mean(|run| run.scheduler_share),
        away_share: mean(|run| run.away_share),
        latency: of_some(|run| run.latency),
        miss_latency: of_some(|run| run.miss_latency),
        across_latency: of_some(|run| run.across_latency),
        transfers_per_second: mean(|run| run.transfers_per_second),
        waiting_cpus: mean(|run| run.waiting_cpus),
        turns: sum(|run| run.turns),
        switches: sum(|run| run.switches),
        switches_across: sum(|run| run.switches_across),
        reloads: sum(|run| run.reloads),
        flushes: sum(|run| run.flushes),
        interrupts: sum(|run| run.interrupts),
        needless_interrupts: sum(|run| run.needless_interrupts),
        cleared: sum(|run| run.cleared),
        seconds: runs.iter().map(|run| run.seconds).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare_on(threads: usize, stop: bool) -> Vec<MaskPolicyRow> {
        let machine = Machine::preset("cascade-lake").expect("a preset");
        let mut workload = Workload::preset("flushing-server").expect("a preset");
        workload.set("turns_per_cpu", 20.0).expect("a number");
        let comparison = Comparison {
            machine: &machine,
            workload: &workload,
            sweeps: &[
                ("threads".to_owned(), vec![20.0, 100.0]),
                ("other_socket_ns".to_owned(), vec![100.0, 300.0]),
            ],
            policies: &MaskPolicy::ALL,
            seeds: 2,
            seed: 1,
        };
        assert_eq!(comparison.runs(), 40);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let progress = RunControl::default();
        progress.stop.store(stop, Relaxed);
        let rows = pool.install(|| comparison.simulate(&progress)).expect("numbers that can be");
        assert_eq!(progress.done.load(Relaxed), if stop { 0 } else { 40 });
        rows
    }

    #[test]
    fn rows_are_all_combinations_and_do_not_depend_on_the_number_of_threads() {
        let rows = compare_on(1, false);
        assert_eq!(rows, compare_on(3, false));
        assert_eq!(rows.len(), 20);
        for rows in rows.chunks(MaskPolicy::ALL.len()) {
            assert_eq!(rows.iter().filter(|row| row.gain.is_none()).count(), 1);
            assert!(rows.iter().all(|row| row.runs == 2 && row.parameters == rows[0].parameters));
        }
    }

    #[test]
    fn what_is_stopped_before_a_run_was_over_has_no_rows() {
        assert_eq!(compare_on(2, true), []);
    }

    #[test]
    fn numbers_that_cannot_be_are_errors() {
        let (machine, workload) = super::super::parameters::published();
        let fault = |name: &str, values: Vec<f64>| {
            let comparison = Comparison {
                machine: &machine,
                workload: &workload,
                sweeps: &[(name.to_owned(), values)],
                policies: &[MaskPolicy::SetAlways],
                seeds: 1,
                seed: 1,
            };
            comparison.simulate(&RunControl::default()).expect_err("a fault").to_string()
        };
        assert!(fault("cpus", vec![1.0, 121.0]).contains("at most 120"));
        assert!(fault("colour", vec![1.0]).contains("found colour"));
        assert!(fault("processes", vec![1.0, 4097.0]).contains("from 1 to 4096"));
    }
}
