//! Comparison of policies: each runs with the same machine, workload and seeds.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;
use serde::Serialize;

use crate::contract::Violation;
use crate::engine::{
    Expense, Gauge, Outcome, PartOutcome, Quiet, Scheduling, Share, Simulation, Span, Throttling,
    Usage,
};
use crate::file::Error;
use crate::machine::Machine;
use crate::policies::{PolicySpec, Work};
use crate::run_control::RunControl;
use crate::workload::{Program, Workload};

/// The number of runs that programs permit in one comparison or sweep: more would take days, and
/// their results much memory. [`Comparison::simulate`] does not check it.
///
/// ```
/// assert!(percid_sim::comparison::MAX_RUNS >= 1_000_000);
/// ```
pub const MAX_RUNS: u64 = 10_000_000;

/// The reason why a comparison has no rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The workload's numbers are inconsistent.
    Invalid(Error),
    /// A policy broke its contract.
    Violation(Violation),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Invalid(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Invalid(error) => error.fmt(f),
            Failure::Violation(violation) => violation.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// A comparison to simulate.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The workload, with all parameters set except the swept ones.
    pub workload: &'a Workload,
    /// Parameters of the workload, or numbers of the machine, that take several values. Every
    /// combination is simulated.
    pub sweeps: &'a [(String, Vec<f64>)],
    /// The policies.
    pub policies: &'a [&'static PolicySpec],
    /// Number of runs of each policy and combination, with consecutive seeds.
    pub seeds: u64,
    /// The first seed.
    pub seed: u64,
    /// Maximum number of spans (uses of an ID by a CPU) recorded in each first run.
    pub spans: usize,
}

/// The results of one policy with one combination of parameters.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The swept parameters.
    pub parameters: BTreeMap<String, f64>,
    /// The policy's name.
    pub policy: &'static str,
    /// Number of runs that this row summarizes.
    pub runs: u64,
    /// Mean cost of a timed burst, including the lookup of its ID, in nanoseconds; `None` if there
    /// was no burst.
    pub ns_per_burst: Option<f64>,
    /// `ns_per_burst` of the run in which it was lowest.
    pub ns_per_burst_min: Option<f64>,
    /// `ns_per_burst` of the run in which it was highest.
    pub ns_per_burst_max: Option<f64>,
    /// Share of bursts and of cost for each class.
    pub shares: Vec<Share>,
    /// Number of timed bursts in all runs.
    pub bursts: u64,
    /// Number of distinct IDs that a process used, in the run with the most.
    pub ids_distinct: u32,
    /// One more than the largest ID used: the length of an array indexed by IDs.
    pub ids_bound: u32,
    /// Memory that bursts touched, in bytes, in the run with the most.
    pub memory: u64,
    /// Work of the policy, summed over all runs.
    pub work: Work,
    /// Events of the scheduler, summed over all runs.
    pub scheduling: Scheduling,
    /// Use of CPU time, summed over all runs.
    pub expense: Expense,
    /// Effects of CPU quotas, summed over all runs.
    pub throttling: Throttling,
    /// Share of the run time that policies cost; `None` if nothing ran.
    pub policy_share: Option<f64>,
    /// The same results per program, if the workload's file lists programs; empty if it describes
    /// one program.
    pub programs: Vec<ProgramRow>,
    /// Number of CPUs and IDs in use at a time. If the workload sends wakes astray, only that time
    /// counts. `None` if it was too short.
    pub in_use: Option<InUse>,
    /// IDs after wakes stopped going astray, in the worst of the runs; `None` if they always or
    /// never went astray.
    pub quiet: Option<Quiet>,
    /// Simulated time of all runs, in nanoseconds.
    pub elapsed_ns: u64,
    /// The recorded spans of the first run, at most [`Comparison::spans`].
    #[serde(skip)]
    pub spans: Vec<Span>,
}

/// The results of one program in a [`Row`].
#[derive(Debug, Clone, Serialize)]
pub struct ProgramRow {
    /// The program's name.
    pub name: String,
    /// Mean cost of a timed burst, including the lookup of its ID, in nanoseconds; `None` if there
    /// was no burst.
    pub ns_per_burst: Option<f64>,
    /// `ns_per_burst` of the run in which it was lowest.
    pub ns_per_burst_min: Option<f64>,
    /// `ns_per_burst` of the run in which it was highest.
    pub ns_per_burst_max: Option<f64>,
    /// Share of bursts and of cost for each class.
    pub shares: Vec<Share>,
    /// Number of timed bursts in all runs.
    pub bursts: u64,
    /// Number of distinct IDs that one of the program's processes used, in the run with the most.
    pub ids_distinct: u32,
    /// One more than the largest ID used.
    pub ids_bound: u32,
    /// Memory that the program's bursts touched, in bytes, in the run with the most.
    pub memory: u64,
    /// Work of the policy for the program's processes, summed over all runs.
    pub work: Work,
    /// Use of the program's CPU time, summed over all runs.
    pub expense: Expense,
    /// Effects of CPU quotas on the program's processes, summed over all runs.
    pub throttling: Throttling,
    /// Share of the run time that policies cost; `None` if nothing ran.
    pub policy_share: Option<f64>,
}

/// Number of CPUs and IDs in use at a time; see [`Usage`].
#[derive(Debug, Clone, Copy, Serialize)]
pub struct InUse {
    /// Number of CPUs that ran something.
    pub running: Level,
    /// Number of CPUs that ran something within the last 100 ms.
    pub visited: Level,
    /// One more than the largest ID that the first process used within the last 100 ms.
    pub ids: Level,
}

/// A value that is sampled in the course of a run.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Level {
    /// Mean of all samples.
    pub mean: f64,
    /// Largest sample.
    pub most: u32,
}

impl InUse {
    fn from_usage(usage: &Usage) -> Option<InUse> {
        let level = |gauge: Gauge| Level {
            mean: gauge.sum as f64 / usage.samples as f64,
            most: gauge.most,
        };
        let Usage { samples, running, visited, ids } = *usage;
        (samples > 0).then(|| InUse {
            running: level(running),
            visited: level(visited),
            ids: level(ids),
        })
    }
}

/// Sets a parameter of the workload or, if the workload has none of this name, a number of the
/// machine.
///
/// # Errors
///
/// Returns the known names if `name` is unknown, or the expected values if the value is not
/// allowed.
pub fn set(
    machine: &mut Machine,
    workload: &mut Workload,
    name: &str,
    value: f64,
) -> Result<(), Error> {
    let Err(unknown) = workload.set(name, value) else { return Ok(()) };
    if !machine.has(name) {
        let numbers = machine.names().join(", ");
        return Err(Error::of_file(format!("{unknown}; numbers of the machine are {numbers}")));
    }
    machine.set(name, value)
}

/// One run of one combination with one policy.
struct SingleRun<'a> {
    combination: &'a Combination,
    policy: &'static PolicySpec,
    run: u64,
}

/// A combination of parameters, with its machine and program.
struct Combination {
    parameters: BTreeMap<String, f64>,
    machine: Machine,
    program: Program,
    /// `true` if the results include each program.
    has_programs: bool,
    /// Approximate number of events of one run.
    events: u64,
}

impl Comparison<'_> {
    /// Returns the number of runs.
    pub fn runs(&self) -> u64 {
        let combinations: u64 = self.sweeps.iter().map(|(_, values)| values.len() as u64).product();
        combinations * self.policies.len() as u64 * self.seeds
    }

    /// Returns the approximate number of events of all runs together: the final value of
    /// `RunControl::done`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`simulate`](Comparison::simulate).
    pub fn expected_events(&self) -> Result<u64, Error> {
        let each = self.combinations()?.into_iter().map(|one| one.events).sum::<u64>();
        Ok(each * self.policies.len() as u64 * self.seeds)
    }

    /// Simulates all runs on all CPUs of this machine. The rows do not depend on the number of
    /// CPUs.
    ///
    /// # Errors
    ///
    /// Returns an error if the workload's numbers are inconsistent for one of the combinations, or
    /// if a policy breaks its contract: of several violations, that of the first row.
    pub fn simulate(&self, progress: &RunControl) -> Result<Vec<Row>, Failure> {
        let combinations = self.combinations()?;
        let policies = self.policies;
        let cases: Vec<(&Combination, &'static PolicySpec)> = combinations
            .iter()
            .flat_map(|one| policies.iter().map(move |&policy| (one, policy)))
            .collect();
        let rows =
            cases.par_iter().map(|&(combination, policy)| self.row(combination, policy, progress));
        let rows: Vec<Result<Row, Failure>> = rows.collect();
        rows.into_iter().collect()
    }

    /// Simulates all runs on all CPUs of this machine, and returns a row with its seed for each run
    /// instead of their sums. The rows are ordered by combination, policy and seed. Runs that were
    /// not over when `progress` stopped are left out.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`simulate`](Comparison::simulate).
    pub fn each_run(&self, progress: &RunControl) -> Result<Vec<(u64, Row)>, Failure> {
        let combinations = self.combinations()?;
        let rows = self.single_runs(&combinations).into_par_iter();
        let rows: Vec<Result<Option<(u64, Row)>, Failure>> =
            rows.map(|run| self.one(run, progress)).collect();
        rows.into_iter().filter_map(Result::transpose).collect()
    }

    /// Simulates like [`each_run`](Comparison::each_run), but on the calling thread alone.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`simulate`](Comparison::simulate).
    pub fn each_run_in_turn(&self, progress: &RunControl) -> Result<Vec<(u64, Row)>, Failure> {
        let combinations = self.combinations()?;
        let rows = self.single_runs(&combinations).into_iter();
        rows.filter_map(|run| self.one(run, progress).transpose()).collect()
    }

    fn single_runs<'a>(&self, combinations: &'a [Combination]) -> Vec<SingleRun<'a>> {
        let policies = combinations
            .iter()
            .flat_map(|one| self.policies.iter().map(move |&policy| (one, policy)));
        policies
            .flat_map(|(combination, policy)| {
                (0..self.seeds).map(move |run| SingleRun { combination, policy, run })
            })
            .collect()
    }

    fn one(
        &self,
        single: SingleRun<'_>,
        progress: &RunControl,
    ) -> Result<Option<(u64, Row)>, Failure> {
        let SingleRun { combination, policy, run } = single;
        let outcome = self.outcome(combination, policy, run, progress)?;
        let row = |outcome| summary(combination, policy.name, vec![outcome]);
        Ok(outcome.map(|outcome| (self.seed.wrapping_add(run), row(outcome))))
    }

    fn combinations(&self) -> Result<Vec<Combination>, Error> {
        type Choice = (Machine, Workload, BTreeMap<String, f64>);
        let mut all = vec![(self.machine.clone(), self.workload.clone(), BTreeMap::new())];
        for (name, values) in self.sweeps {
            let with = |choice: &Choice, value: f64| {
                let (mut machine, mut workload, mut parameters) = choice.clone();
                set(&mut machine, &mut workload, name, value)?;
                parameters.insert(name.clone(), value);
                Ok((machine, workload, parameters))
            };
            let combined =
                all.iter().flat_map(|one| values.iter().map(move |&value| with(one, value)));
            all = combined.collect::<Result<_, Error>>()?;
        }
        let combination = |(machine, workload, parameters): Choice| {
            let program = workload.program(&machine)?;
            let events = program.expected_events(&machine);
            let has_programs = workload.has_programs();
            Ok(Combination { parameters, machine, program, has_programs, events })
        };
        all.into_iter().map(combination).collect()
    }

    fn row(
        &self,
        combination: &Combination,
        policy: &'static PolicySpec,
        progress: &RunControl,
    ) -> Result<Row, Failure> {
        let runs: Vec<Result<Option<Outcome>, Failure>> = (0..self.seeds)
            .into_par_iter()
            .map(|run| self.outcome(combination, policy, run, progress))
            .collect();
        let runs: Result<Vec<Outcome>, Failure> =
            runs.into_iter().filter_map(Result::transpose).collect();
        Ok(summary(combination, policy.name, runs?))
    }

    /// Simulates one run. Returns `None` if it was stopped, because a partial run must not count as
    /// a whole one.
    fn outcome(
        &self,
        combination: &Combination,
        policy: &'static PolicySpec,
        run: u64,
        progress: &RunControl,
    ) -> Result<Option<Outcome>, Failure> {
        let is_stopped = || progress.stop.load(Relaxed);
        if is_stopped() {
            return Ok(None);
        }
        let seed = self.seed.wrapping_add(run);
        let spans = if run == 0 { self.spans } else { 0 };
        let Combination { machine, program, events, .. } = combination;
        let simulation = Simulation::new(machine, program, policy, seed);
        let simulation = simulation.record_spans(spans).record_usage();
        let outcome = simulation.run_watched(progress, *events).map_err(Failure::Violation)?;
        Ok((!is_stopped()).then_some(outcome))
    }
}

fn some(ns: f64) -> Option<f64> {
    ns.is_finite().then_some(ns)
}

fn summary(combination: &Combination, policy: &'static str, mut runs: Vec<Outcome>) -> Row {
    let mut all = Outcome::default();
    runs.iter().for_each(|run| all.add(run));
    let each = || runs.iter().filter_map(|run| some(run.ns_per_burst()));
    let programs = if combination.has_programs {
        let parts = combination.program.parts.iter().zip(&all.parts).enumerate();
        parts.map(|(at, (part, sum))| program_row(&part.name, sum, at, &runs)).collect()
    } else {
        Vec::new()
    };
    Row {
        programs,
        parameters: combination.parameters.clone(),
        policy,
        runs: runs.len() as u64,
        ns_per_burst: some(all.ns_per_burst()),
        ns_per_burst_min: each().min_by(f64::total_cmp),
        ns_per_burst_max: each().max_by(f64::total_cmp),
        shares: if all.bursts() > 0 { all.shares() } else { Vec::new() },
        bursts: all.bursts(),
        ids_distinct: all.ids_distinct,
        ids_bound: all.ids_bound,
        memory: all.memory,
        work: all.work,
        scheduling: all.scheduling,
        expense: all.expense,
        throttling: all.throttling,
        policy_share: some(all.expense.share()),
        in_use: InUse::from_usage(&all.usage),
        quiet: all.quiet,
        elapsed_ns: all.elapsed,
        spans: runs.first_mut().map(|run| std::mem::take(&mut run.spans)).unwrap_or_default(),
    }
}

/// Returns the row of the program at index `at`; `sum` is its outcome over all runs.
fn program_row(name: &str, sum: &PartOutcome, at: usize, runs: &[Outcome]) -> ProgramRow {
    let each = || runs.iter().filter_map(|run| some(run.parts[at].ns_per_burst()));
    ProgramRow {
        name: name.to_owned(),
        ns_per_burst: some(sum.ns_per_burst()),
        ns_per_burst_min: each().min_by(f64::total_cmp),
        ns_per_burst_max: each().max_by(f64::total_cmp),
        shares: if sum.bursts() > 0 { sum.shares() } else { Vec::new() },
        bursts: sum.bursts(),
        ids_distinct: sum.ids_distinct,
        ids_bound: sum.ids_bound,
        memory: sum.memory,
        work: sum.work,
        expense: sum.expense,
        throttling: sum.throttling,
        policy_share: some(sum.expense.share()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies;

    fn compare(threads: usize) -> Vec<Row> {
        let machine = Machine::preset("cascade-lake").expect("a preset");
        let mut workload = Workload::preset("container").expect("a preset");
        workload.set("duration_ms", 200.0).expect("a parameter");
        let named = |name| policies::find(name).expect("a policy");
        let comparison = Comparison {
            machine: &machine,
            workload: &workload,
            sweeps: &[
                ("allowed".to_owned(), vec![4.0, 8.0]),
                ("stay_ms".to_owned(), vec![5.0, 10.0]),
            ],
            policies: &[named("per-cpu"), named("percid-table-strict")],
            seeds: 3,
            seed: 1,
            spans: 10,
        };
        assert_eq!(comparison.runs(), 24);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let progress = RunControl::default();
        let rows = pool.install(|| comparison.simulate(&progress)).expect("a valid workload");
        let expected = comparison.expected_events().expect("a valid workload");
        assert_eq!(progress.done.load(Relaxed), expected);
        rows
    }

    #[test]
    fn rows_do_not_depend_on_the_number_of_threads() {
        let (one, three) = (compare(1), compare(3));
        assert_eq!(one.len(), 8);
        for (a, b) in one.iter().zip(&three) {
            assert_eq!(
                (&a.parameters, a.policy, a.ns_per_burst),
                (&b.parameters, b.policy, b.ns_per_burst)
            );
            assert_eq!(a.spans, b.spans);
        }
    }

    #[test]
    fn dense_ids_are_fewer_than_the_cpus_that_a_container_sees() {
        let rows = compare(2);
        for pair in rows.chunks(2) {
            let [cpus, table] = pair else { unreachable!("two policies") };
            assert_eq!((cpus.policy, table.policy), ("per-cpu", "percid-table-strict"));
            assert!(table.ids_distinct <= 16, "{table:?}");
            assert!(table.ids_distinct < cpus.ids_distinct, "{cpus:?}");
        }
    }

    #[test]
    fn numbers_of_the_machine_can_be_swept_too() {
        let machine = Machine::preset("cascade-lake").expect("a preset");
        let mut workload = Workload::preset("container").expect("a preset");
        workload.set("duration_ms", 200.0).expect("a parameter");
        let comparison = Comparison {
            machine: &machine,
            workload: &workload,
            sweeps: &[("slow_path_ns".to_owned(), vec![0.0, 10_000.0])],
            policies: &[policies::find("percid-table-strict").expect("a policy")],
            seeds: 2,
            seed: 1,
            spans: 0,
        };
        let rows = comparison.simulate(&RunControl::default()).expect("a valid workload");
        let work: Vec<u64> = rows.iter().map(|row| row.expense.work_ns).collect();
        let more = 10_000 * rows[1].work.slow_paths;
        assert!(more > 0 && work[1] >= more && work[0] < more, "{work:?}");
        let [cheap, dear] = [&rows[0], &rows[1]].map(|row| row.ns_per_burst.expect("bursts"));
        assert!(dear > cheap, "finding the ID is part of the time: {cheap} {dear}");
    }

    #[test]
    fn programs_have_rows_of_their_own_and_one_program_has_none() {
        let machine = Machine::preset("cascade-lake").expect("a preset");
        let rows = |name: &str| {
            let mut workload = Workload::preset(name).expect("a preset");
            workload.set("duration_ms", 50.0).expect("a parameter");
            let comparison = Comparison {
                machine: &machine,
                workload: &workload,
                sweeps: &[],
                policies: &[policies::find("per-cpu").expect("a policy")],
                seeds: 3,
                seed: 1,
                spans: 0,
            };
            comparison.simulate(&RunControl::default()).expect("a valid workload")
        };
        let row = &rows("neighbours")[0];
        let names: Vec<&str> = row.programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["server", "batch"]);
        let bursts: u64 = row.programs.iter().map(|program| program.bursts).sum();
        assert_eq!(bursts, row.bursts);
        let server = &row.programs[0];
        let [min, mean, max] =
            [server.ns_per_burst_min, server.ns_per_burst, server.ns_per_burst_max];
        assert!(min < mean && mean < max, "{server:?}");
        assert!(rows("container")[0].programs.is_empty());
    }

    #[test]
    fn a_parameter_that_the_workload_lacks_is_an_error() {
        let machine = Machine::preset("cascade-lake").expect("a preset");
        let workload = Workload::preset("container").expect("a preset");
        let comparison = Comparison {
            machine: &machine,
            workload: &workload,
            sweeps: &[("colour".to_owned(), vec![1.0])],
            policies: &[],
            seeds: 1,
            seed: 1,
            spans: 0,
        };
        assert!(comparison.simulate(&RunControl::default()).is_err());
    }
}
