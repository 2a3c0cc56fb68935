//! Comparison of rule sets of the NUMA scan: each runs with the same machine, workload and seeds.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use percid_rules::scan::{Order, Rules, Width};
use rayon::prelude::*;
use serde::Serialize;

use super::experiment::{deviation, mean};
use super::outcome::{Counts, Outcome, REASONS};
use super::run;
use super::setup::Setup;
use crate::file::Error;
use crate::run_control::RunControl;

/// A named rule set.
#[derive(Debug)]
pub struct RuleSet {
    /// The name, for the command line and for tables.
    pub name: &'static str,
    /// Description of the rules.
    pub about: &'static str,
    /// The rules.
    pub rules: Rules,
    /// `true` if memory moves to nodes without CPUs and back, by the constants of the setup.
    pub tiers: bool,
}

/// All rule sets that can be compared, the oldest first.
pub const RULE_SETS: [RuleSet; 6] = [
    RuleSet {
        name: "linux-6.6",
        about: "before the series: what the scanning thread does not use may never be scanned",
        rules: Rules::BASE,
        tiers: false,
    },
    RuleSet {
        name: "linux-6.7",
        about: "the series on selective scanning",
        rules: Rules::SELECTIVE,
        tiers: false,
    },
    RuleSet {
        name: "linux-6.12",
        about: "the series and the fixes that followed",
        rules: Rules::LINUX_6_12,
        tiers: false,
    },
    RuleSet {
        name: "wide",
        about: "linux-6.12 with sets of active threads of 128 bits; in no kernel",
        rules: Rules { width: Width::Bits128, ..Rules::LINUX_6_12 },
        tiers: false,
    },
    RuleSet {
        name: "by-activity",
        about: "linux-6.12 in the order by activity; in no kernel",
        rules: Rules { order: Order::Activity, ..Rules::LINUX_6_12 },
        tiers: false,
    },
    RuleSet {
        name: "tiers",
        about: "linux-6.12 with percid's memory tiers: unused memory goes to nodes without CPUs",
        rules: Rules::LINUX_6_12,
        tiers: true,
    },
];

/// Returns the rule set with this name.
pub fn rule_set(name: &str) -> Option<&'static RuleSet> {
    RULE_SETS.iter().find(|known| known.name == name)
}

/// A comparison to simulate.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The workload on its machine, with all numbers set except the swept ones.
    pub setup: &'a Setup,
    /// Numbers that take several values, see [`Setup::NAMES`]. Every combination is simulated.
    pub sweeps: &'a [(String, Vec<f64>)],
    /// The rule sets.
    pub rules: &'a [&'static RuleSet],
    /// Number of runs of each rule set and combination, with consecutive seeds.
    pub seeds: u64,
    /// The first seed.
    pub seed: u64,
}

/// The results of one rule set with one combination of numbers. Counts are means over the runs, and
/// include all processes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleSetRow {
    /// The swept numbers.
    pub parameters: BTreeMap<String, f64>,
    /// The name of the rule set.
    pub rules: &'static str,
    /// Number of runs over which the row is averaged.
    pub runs: u64,
    /// Time until the last process ended, in seconds: the mean over the runs.
    pub elapsed_s: f64,
    /// Shortest time of the runs, in seconds.
    pub elapsed_min_s: f64,
    /// Longest time of the runs, in seconds.
    pub elapsed_max_s: f64,
    /// Standard deviation of the runs' times, in seconds.
    pub elapsed_deviation_s: f64,
    /// Difference from the time with all memory local from the start, in seconds.
    pub lost_s: f64,
    /// Number of skipped regions by reason. `ignore_pid_inactive` counts regions that were scanned
    /// although the thread does not use them.
    pub reasons: BTreeMap<&'static str, f64>,
    /// Number of scan passes.
    pub passes: f64,
    /// Duration of all passes, in seconds.
    pub scan_s: f64,
    /// Number of armed page table entries of single pages.
    pub pte_updates: f64,
    /// Number of armed page table entries of huge pages.
    pub pmd_updates: f64,
    /// Number of hint faults.
    pub hint_faults: f64,
    /// Share of hint faults on the thread's own node; `None` if there were none.
    pub local_share: Option<f64>,
    /// Number of migrated pages; a huge page counts as 512.
    pub pages_migrated: f64,
    /// Number of these pages that went from a node without CPUs to one with CPUs.
    pub pages_promoted: f64,
    /// Number of these pages that went to a node without CPUs.
    pub pages_demoted: f64,
    /// Time until nine tenths of a process's pages had been armed, in seconds. This is the mean
    /// over the processes that got so far; `None` if none did.
    pub covered_after_s: Option<f64>,
    /// Progress of the first run, second by second: the mean over its processes of the local share
    /// of the memory that a round goes over.
    #[serde(skip)]
    pub course: Vec<f64>,
}

/// Values of the swept numbers, and the setup with them.
type Combination = (BTreeMap<String, f64>, Setup);

impl Comparison<'_> {
    /// Returns the number of runs.
    pub fn runs(&self) -> u64 {
        let combinations: u64 = self.sweeps.iter().map(|(_, values)| values.len() as u64).product();
        combinations * self.rules.len() as u64 * self.seeds
    }

    /// Simulates all runs on all CPUs of this machine. The rows do not depend on the number of
    /// CPUs.
    ///
    /// # Errors
    ///
    /// Returns an error if the numbers of one combination are inconsistent.
    pub fn simulate(&self, control: &RunControl) -> Result<Vec<RuleSetRow>, Error> {
        let combinations = self.combinations()?;
        let cases: Vec<_> = combinations
            .iter()
            .flat_map(|one| self.rules.iter().map(move |&rules| (one, rules)))
            .collect();
        let rows = cases
            .par_iter()
            .filter_map(|((parameters, setup), rules)| self.row(parameters, setup, rules, control));
        Ok(rows.collect())
    }

    fn combinations(&self) -> Result<Vec<Combination>, Error> {
        let mut all = vec![(BTreeMap::new(), self.setup.clone())];
        for (name, values) in self.sweeps {
            let mut next = Vec::new();
            for (parameters, setup) in &all {
                for &value in values {
                    let (mut parameters, mut setup) = (parameters.clone(), setup.clone());
                    setup.set(name, value)?;
                    parameters.insert(name.clone(), value);
                    next.push((parameters, setup));
                }
            }
            all = next;
        }
        all.iter().try_for_each(|(_, setup)| setup.check())?;
        Ok(all)
    }

    /// Returns the row of one combination and rule set; `None` if no run was over when the
    /// simulation was stopped.
    fn row(
        &self,
        parameters: &BTreeMap<String, f64>,
        setup: &Setup,
        rules: &RuleSet,
        control: &RunControl,
    ) -> Option<RuleSetRow> {
        let run = |number: u64| {
            let processes = self.once(setup, rules, number, control)?;
            control.done.fetch_add(1, Relaxed);
            Some(processes)
        };
        let runs: Vec<Vec<Outcome>> = (0..self.seeds).into_par_iter().filter_map(run).collect();
        (!runs.is_empty()).then(|| summary(parameters.clone(), setup, rules.name, &runs))
    }

    /// Simulates all processes of a run; returns `None` if it is stopped.
    fn once(
        &self,
        setup: &Setup,
        rules: &RuleSet,
        number: u64,
        control: &RunControl,
    ) -> Option<Vec<Outcome>> {
        let seed = self.seed.wrapping_add(number);
        let process = |process: u32| {
            let own = seed.wrapping_mul(1 << 16).wrapping_add(u64::from(process));
            let goes_on = !control.stop.load(Relaxed);
            goes_on.then(|| run::process(setup, &rules.rules, rules.tiers, process, own))
        };
        (0..setup.workload.processes).map(process).collect()
    }
}

fn summary(
    parameters: BTreeMap<String, f64>,
    setup: &Setup,
    rules: &'static str,
    runs: &[Vec<Outcome>],
) -> RuleSetRow {
    let mut counts = Counts::default();
    runs.iter().flatten().for_each(|process| counts.add(&process.counts));
    let last = |run: &Vec<Outcome>| run.iter().map(Outcome::elapsed_s).fold(0.0, f64::max);
    let times: Vec<f64> = runs.iter().map(last).collect();
    let per_run = |count: u64| count as f64 / runs.len() as f64;
    let faults = counts.hint_faults;
    let covered = runs.iter().flatten().filter_map(|process| process.covered_after(0.9));
    let covered: Vec<f64> = covered.map(|seconds| seconds as f64).collect();
    RuleSetRow {
        parameters,
        rules,
        runs: runs.len() as u64,
        elapsed_s: mean(&times),
        elapsed_min_s: times.iter().copied().fold(f64::INFINITY, f64::min),
        elapsed_max_s: times.iter().copied().fold(0.0, f64::max),
        elapsed_deviation_s: deviation(&times),
        lost_s: mean(&times) - setup.fastest_s(),
        reasons: REASONS
            .map(|reason| (reason.name(), per_run(counts.reasons[reason as usize])))
            .into(),
        passes: per_run(counts.passes),
        scan_s: per_run(counts.scan_ns) / 1e9,
        pte_updates: per_run(counts.pte_updates),
        pmd_updates: per_run(counts.pmd_updates),
        hint_faults: per_run(faults),
        local_share: (faults > 0).then(|| counts.hint_faults_local as f64 / faults as f64),
        pages_migrated: per_run(counts.pages_migrated),
        pages_promoted: per_run(counts.pages_promoted),
        pages_demoted: per_run(counts.pages_demoted),
        covered_after_s: (!covered.is_empty()).then(|| mean(&covered)),
        course: course(&runs[0]),
    }
}

fn course(processes: &[Outcome]) -> Vec<f64> {
    let longest = processes.iter().map(|process| process.seconds.len()).max().unwrap_or(0);
    let at = |second: usize| {
        let states = processes.iter().filter_map(|process| process.seconds.get(second));
        mean(&states.map(|state| state.local).collect::<Vec<f64>>())
    };
    (0..longest).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::numa::Workload;

    fn setup(preset: &str) -> Setup {
        let machine = Machine::preset("cascade-lake").expect("a preset");
        let mut setup = Setup::from_machine(&machine, Workload::preset(preset).expect("a preset"));
        setup.set("threads", 32.0).expect("a number");
        setup
    }

    fn rows(setup: &Setup, sweeps: &[(String, Vec<f64>)]) -> Vec<RuleSetRow> {
        let rules: Vec<&RuleSet> = RULE_SETS.iter().collect();
        let comparison = Comparison { setup, sweeps, rules: &rules, seeds: 2, seed: 1 };
        let control = RunControl::default();
        let rows = comparison.simulate(&control).expect("sensible numbers");
        assert_eq!(control.done.load(Relaxed), comparison.runs());
        rows
    }

    #[test]
    fn every_preset_runs_under_all_rules_and_loses_no_negative_time() {
        for preset in Workload::presets() {
            let rows = rows(&setup(preset), &[]);
            assert_eq!(rows.len(), RULE_SETS.len());
            for row in &rows {
                println!("{preset} {} {:.1} s, lost {:.1}", row.rules, row.elapsed_s, row.lost_s);
                assert!(row.lost_s >= -0.001 && row.passes > 0.0, "{preset}: {row:?}");
                assert!(!row.course.is_empty());
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_rows_and_sweeps_multiply() {
        let setup = setup("phases");
        let sweeps = [("remote_cost".to_owned(), vec![1.0, 3.0])];
        let all = rows(&setup, &sweeps);
        assert_eq!(all, rows(&setup, &sweeps));
        assert_eq!(all.len(), 2 * RULE_SETS.len());
        let (near, far) = all.split_at(RULE_SETS.len());
        assert!(near.iter().all(|row| row.lost_s.abs() < 0.001), "nothing is remote: {near:?}");
        assert!(far.iter().all(|row| row.lost_s > 0.5), "{far:?}");
    }

    #[test]
    fn what_must_stop_has_no_rows() {
        let control = RunControl::default();
        control.stop.store(true, Relaxed);
        let (setup, rules) = (setup("numa01"), [&RULE_SETS[0]]);
        let comparison =
            Comparison { setup: &setup, sweeps: &[], rules: &rules, seeds: 2, seed: 1 };
        assert_eq!(comparison.simulate(&control), Ok(Vec::new()));
    }
}
