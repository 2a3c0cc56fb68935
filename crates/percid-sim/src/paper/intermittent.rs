//! The published intermittent benchmark, cell by cell: Linux commit 7e019dcc470f on 2 x EPYC 9654.

use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;
use serde::Serialize;

use crate::engine::{Outcome, Share, Simulation};
use crate::machine::{Machine, Parameter, Sourced};
use crate::policies;
use crate::published::{self, Intermittent};
use crate::run_control::RunControl;
use crate::workload::{Memory, Workload};

/// The policies of the table's columns.
pub const POLICIES: [&str; 3] = ["per-cpu", "linux-6.4", "linux-6.13"];

/// Simulated runs of a cell. What threads find depends on where the ticks fall, so there must be
/// many.
pub const RUNS: u64 = 100;

/// Simulated runs of a cell where an assumption is dropped, which changes more than chance does.
const RUNS_WITHOUT: u64 = 20;

/// The published table and the simulated one.
#[derive(Debug, Clone, Serialize)]
pub struct Paper {
    /// Each cell.
    pub rows: Vec<Cell>,
    /// The mean of the cells' absolute errors, as a share.
    pub mean_abs_error: f64,
    /// The largest of them.
    pub worst_abs_error: f64,
    /// How often the old IDs are slower than the new ones, row by row.
    pub speedups: Vec<Speedup>,
    /// What the simulation takes for granted, and what becomes of the table without it.
    pub assumptions: Vec<Assumption>,
    /// The numbers of the machine and the benchmark, with where they come from.
    pub parameters: Vec<Parameter>,
}

/// One cell of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The part of the machine, as the published table names it.
    pub config: String,
    /// Pause between two threads' turns, in milliseconds.
    pub delay_ms: u64,
    /// The policy that stands for the column.
    pub policy: &'static str,
    /// Nanoseconds per burst, simulated.
    pub model_ns: f64,
    /// Nanoseconds per burst, published.
    pub published_ns: f64,
    /// `model_ns / published_ns - 1`.
    pub error: f64,
    /// Nanoseconds per burst, simulated, if all memory had been written to beforehand: a
    /// prediction.
    pub pre_faulted_ns: f64,
    /// The share of bursts of each class.
    pub shares: Vec<Share>,
    /// Distinct IDs of the run that used most of them.
    pub ids_distinct: u32,
    /// Scans for expired IDs in a run, on the average.
    pub scans: f64,
}

/// How many times slower the cache-cold IDs are than the cache-local ones.
#[derive(Debug, Clone, Serialize)]
pub struct Speedup {
    /// The part of the machine.
    pub config: String,
    /// Pause between two turns, in milliseconds.
    pub delay_ms: u64,
    /// Simulated.
    pub model: f64,
    /// Published.
    pub published: f64,
}

/// What becomes of the table if one assumption is dropped.
#[derive(Debug, Clone, Serialize)]
pub struct Assumption {
    /// The assumption.
    pub name: &'static str,
    /// What is simulated in its place.
    pub instead: &'static str,
    /// The mean of the cells' absolute errors then.
    pub mean_abs_error: f64,
    /// The largest of them then.
    pub worst_abs_error: f64,
    /// The mean change of the cells of the cache-cold IDs, as a share of what they were.
    pub change_of_cold_cells: f64,
}

/// What one cell is made of: all parameters of its simulation.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The machine.
    pub machine: Machine,
    /// The workload, with its parameters set.
    pub workload: Workload,
}

impl Setting {
    /// The published machine and benchmark.
    pub fn published() -> Setting {
        let mut machine = Machine::preset("epyc-9654").expect("the published machine is a preset");
        let origin = "not charged: what the kernel does is part of the fitted numbers".to_owned();
        machine.costs.scan_cpu_ns = Sourced { value: 0.0, origin, fitted: false };
        let workload = Workload::preset("intermittent").expect("the benchmark is a preset");
        Setting { machine, workload }
    }

    /// The same in one row of the table.
    fn row(&self, row: &Intermittent) -> Setting {
        let mut setting = self.clone();
        let per_l3 = row.threads / row.l3s;
        let cores = per_l3.min(setting.machine.topology.cores_per_l3());
        let set = [
            ("delay_ms", row.delay_ms as f64),
            ("l3s", f64::from(row.l3s)),
            ("cores_per_l3", f64::from(cores)),
            ("threads_per_core", f64::from(per_l3 / cores)),
        ];
        for (name, value) in set {
            setting.set(name, value);
        }
        setting
    }

    fn set(&mut self, name: &str, value: f64) {
        self.workload.set(name, value).expect("a parameter of the benchmark");
    }

    /// What all runs of a cell found together; none if they were stopped.
    fn simulate(
        &self,
        policy: &str,
        runs: u64,
        seed: u64,
        progress: &RunControl,
    ) -> Option<Outcome> {
        let program = self.workload.program(&self.machine).expect("the benchmark fits the machine");
        let policy = policies::find(policy).expect("a policy of the table");
        let mut all = Outcome::default();
        for run in 0..runs {
            let one = Simulation::new(&self.machine, &program, policy, seed.wrapping_add(run));
            all.add(&one.run(&progress.stop));
            if progress.stop.load(Relaxed) {
                return None;
            }
            progress.done.fetch_add(1, Relaxed);
        }
        Some(all)
    }
}

/// The costs of all cells: for each row of the table one for each of [`POLICIES`].
pub fn table(setting: &Setting, runs: u64, seed: u64) -> Vec<Outcome> {
    watched_table(setting, runs, seed, &RunControl::default()).expect("nobody stops it")
}

/// The same, watched; none if it was stopped.
fn watched_table(
    setting: &Setting,
    runs: u64,
    seed: u64,
    progress: &RunControl,
) -> Option<Vec<Outcome>> {
    let rows = published::intermittent();
    let cells: Vec<(Setting, &str)> =
        rows.iter().flat_map(|row| POLICIES.map(|policy| (setting.row(row), policy))).collect();
    let cells = cells.par_iter();
    cells.map(|(setting, policy)| setting.simulate(policy, runs, seed, progress)).collect()
}

/// The published costs, in the order of [`table`].
pub fn published_ns() -> Vec<f64> {
    let rows = published::intermittent();
    rows.iter().flat_map(|row| [row.per_cpu_ns, row.mm_cid_ns, row.cache_local_ns]).collect()
}

/// The mean and the largest absolute error of simulated costs, as shares of the published ones.
pub fn errors(table: &[Outcome]) -> (f64, f64) {
    let errors = table.iter().zip(published_ns());
    let errors: Vec<f64> =
        errors.map(|(cell, published)| (cell.ns_per_burst() / published - 1.0).abs()).collect();
    (errors.iter().sum::<f64>() / errors.len() as f64, errors.iter().copied().fold(0.0, f64::max))
}

/// How many runs [`paper`] simulates: the table, the same with pre-faulted memory, and without each
/// assumption.
pub fn runs() -> u64 {
    let cells = published::intermittent().len() * POLICIES.len();
    cells as u64 * (2 * RUNS + DROPS.len() as u64 * RUNS_WITHOUT)
}

/// The whole table, with the prediction for pre-faulted memory and all assumptions. Uses all CPUs,
/// and takes some seconds. If it is stopped, it returns what was finished: nothing without the
/// table itself, else fewer assumptions.
pub fn paper(seed: u64, progress: &RunControl) -> Option<Paper> {
    let setting = Setting::published();
    let simulated = watched_table(&setting, RUNS, seed, progress)?;
    let mut pre_faulted = setting.clone();
    pre_faulted.workload.memory = Memory::PreFaulted;
    let pre_faulted = watched_table(&pre_faulted, RUNS, seed, progress)?;
    let rows = cells(&simulated, &pre_faulted);
    let (mean_abs_error, worst_abs_error) = errors(&simulated);
    Some(Paper {
        speedups: speedups(&rows),
        rows,
        mean_abs_error,
        worst_abs_error,
        assumptions: assumptions(&setting, &simulated, seed, progress),
        parameters: parameters(&setting),
    })
}

fn cells(simulated: &[Outcome], pre_faulted: &[Outcome]) -> Vec<Cell> {
    let published = published::intermittent();
    let costs = published_ns();
    let cell = |at: usize| {
        let (row, outcome) = (&published[at / POLICIES.len()], &simulated[at]);
        Cell {
            config: row.config.clone(),
            delay_ms: row.delay_ms,
            policy: POLICIES[at % POLICIES.len()],
            model_ns: outcome.ns_per_burst(),
            published_ns: costs[at],
            error: outcome.ns_per_burst() / costs[at] - 1.0,
            pre_faulted_ns: pre_faulted[at].ns_per_burst(),
            shares: outcome.shares(),
            ids_distinct: outcome.ids_distinct,
            scans: outcome.work.scans as f64 / RUNS as f64,
        }
    };
    (0..simulated.len()).map(cell).collect()
}

fn speedups(rows: &[Cell]) -> Vec<Speedup> {
    let speedup = |(row, cells): (&Intermittent, &[Cell])| Speedup {
        config: row.config.clone(),
        delay_ms: row.delay_ms,
        model: cells[1].model_ns / cells[2].model_ns,
        published: row.published_speedup,
    };
    published::intermittent().iter().zip(rows.chunks(POLICIES.len())).map(speedup).collect()
}

/// The numbers of the benchmark that its publication does not tell: name, where it comes from,
/// whether it is fitted.
const OF_THE_BENCHMARK: [(&str, &str, bool); 3] = [
    ("wake_us", "measured elsewhere as about 100 us; fitted to the published table", true),
    ("jitter_us", "assumption: timer slack and exits from deep idle states", false),
    ("setup_ms", "assumption: mapping the areas and creating the threads", false),
];

fn parameters(setting: &Setting) -> Vec<Parameter> {
    let machine = &setting.machine;
    let hz = [("hz", &machine.kernel.hz)];
    let of_the_machine = machine.costs.all().into_iter().chain(hz);
    let of_the_benchmark = OF_THE_BENCHMARK.iter().map(|&(name, origin, fitted)| Parameter {
        name,
        value: setting.workload.parameters[name],
        origin: origin.to_owned(),
        fitted,
    });
    of_the_machine.map(Parameter::from).chain(of_the_benchmark).collect()
}

/// A way to simulate without one assumption.
struct Drop {
    name: &'static str,
    instead: &'static str,
    change: fn(&mut Setting),
}

const DROPS: [Drop; 9] = [
    Drop {
        name: "the first visit to an area costs page faults",
        instead: "it costs as much as what this core touched last",
        change: |setting| {
            setting.machine.costs.first_touch_us.value = 0.0;
            setting.machine.costs.first_touch_cooling_us.value = 0.0;
            setting.machine.costs.first_touch_hot_us.value = 0.0;
        },
    },
    Drop {
        name: "lines come from other caches",
        instead: "they cost as much as this core's own",
        change: |setting| setting.machine.costs.overlap.value = f64::INFINITY,
    },
    Drop {
        name: "256 lines overlap",
        instead: "they come one after the other",
        change: |setting| setting.machine.costs.overlap.value = 1.0,
    },
    Drop {
        name: "a core's own data cools while it idles",
        instead: "it is as after a second",
        change: |setting| setting.machine.costs.cooling_ns.value = 0.0,
    },
    Drop {
        name: "faults take longer the longer the core idled",
        instead: "as long as after a second",
        change: |setting| setting.machine.costs.first_touch_cooling_us.value = 0.0,
    },
    Drop {
        name: "a scan needs a tick that finds a thread running, 250 in a second",
        instead: "1000 in a second",
        change: |setting| setting.machine.kernel.hz.value = 1000.0,
    },
    Drop {
        name: "wake-ups vary by up to 200 us",
        instead: "pauses are exact, and many are whole numbers of ticks",
        change: |setting| setting.set("jitter_us", 0.0),
    },
    Drop {
        name: "a timed wake-up takes 100 us on the CPU",
        instead: "it takes 200 us",
        change: |setting| setting.set("wake_us", 200.0),
    },
    Drop {
        name: "the process is 20 ms old when its threads start",
        instead: "they start at once",
        change: |setting| setting.set("setup_ms", 0.0),
    },
];

fn assumptions(
    setting: &Setting,
    simulated: &[Outcome],
    seed: u64,
    progress: &RunControl,
) -> Vec<Assumption> {
    DROPS.iter().map_while(|drop| assumption(drop, setting, simulated, seed, progress)).collect()
}

fn assumption(
    drop: &Drop,
    setting: &Setting,
    simulated: &[Outcome],
    seed: u64,
    progress: &RunControl,
) -> Option<Assumption> {
    let mut without = setting.clone();
    (drop.change)(&mut without);
    let table = watched_table(&without, RUNS_WITHOUT, seed, progress)?;
    let (mean_abs_error, worst_abs_error) = errors(&table);
    let cold = simulated.chunks(POLICIES.len()).zip(table.chunks(POLICIES.len()));
    let changes: Vec<f64> = cold
        .map(|(with, without)| without[1].ns_per_burst() / with[1].ns_per_burst() - 1.0)
        .collect();
    Some(Assumption {
        name: drop.name,
        instead: drop.instead,
        mean_abs_error,
        worst_abs_error,
        change_of_cold_cells: changes.iter().sum::<f64>() / changes.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::bounds::{MEAN_ERROR, WORST_ERROR};

    #[test]
    fn the_table_is_reproduced_with_five_fitted_parameters() {
        let setting = Setting::published();
        let simulated = table(&setting, RUNS, 1);
        let (mean, worst) = errors(&simulated);
        assert!(mean <= MEAN_ERROR && worst <= WORST_ERROR, "mean {mean}, worst {worst}");
        let fitted = parameters(&setting).iter().filter(|one| one.fitted).count();
        assert_eq!(fitted, 5);
    }

    #[test]
    fn cache_cold_ids_are_the_slowest_where_they_were_found_to_be() {
        let rows = cells(&table(&Setting::published(), 10, 3), &table(&Setting::published(), 1, 3));
        for (row, cells) in published::intermittent().iter().zip(rows.chunks(POLICIES.len())) {
            let [cpu, cold, local] = cells else { unreachable!("three policies") };
            let others = cpu.model_ns.max(local.model_ns);
            if row.published_speedup > 1.5 {
                assert!(cold.model_ns > 1.5 * others, "{} {} ms", row.config, row.delay_ms);
            } else {
                assert!(
                    (cold.model_ns / others - 1.0).abs() < 0.1,
                    "{} {}",
                    row.config,
                    row.delay_ms
                );
            }
        }
    }

    #[test]
    fn without_page_faults_overlap_or_slow_ticks_the_table_does_not_come_out() {
        let setting = Setting::published();
        let simulated = table(&setting, RUNS_WITHOUT, 1);
        for drop in &DROPS {
            let without = assumption(drop, &setting, &simulated, 1, &RunControl::default());
            let without = without.expect("nobody stops it");
            let is_essential =
                ["page faults", "overlap", "tick"].iter().any(|word| drop.name.contains(word));
            assert!(!is_essential || without.mean_abs_error > MEAN_ERROR, "{without:?}");
        }
    }
}
