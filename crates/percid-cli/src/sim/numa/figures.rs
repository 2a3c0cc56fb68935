//! Result of a comparison of scan rules: the JSON document, and the same as text.

use std::fmt;

use percid_sim::numa::comparison::RuleSetRow;
use percid_sim::numa::outcome::REASONS;
use percid_sim::numa::setup::Parameter;
use serde::Serialize;

use super::plan::Plan;
use crate::sim::numbers::{self, Number, figure, hundredths, optional, settings};
use percid_command::table::Table;

/// The document of `percid sim numa --json`.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    machine: MachineFigures,
    pub(super) workload: WorkloadFigures,
    /// All numbers of the model; those that are swept have their first value.
    numbers: Vec<Parameter>,
    seed: u64,
    seeds: u64,
    pub(super) interrupted: bool,
    /// Rows with at least one finished run.
    pub(super) rows: Vec<RuleSetRow>,
    /// The names of the swept parameters.
    #[serde(skip)]
    pub(super) sweeps: Vec<String>,
}

#[derive(Debug, Serialize)]
struct MachineFigures {
    name: String,
    cpus: u32,
    /// Number of nodes with CPUs.
    nodes: usize,
    /// Number of nodes without CPUs.
    memory_only_nodes: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct WorkloadFigures {
    name: String,
    pub(super) about: String,
    processes: u32,
    threads: u32,
}

impl Results {
    pub(super) fn new(plan: &Plan, rows: Vec<RuleSetRow>, interrupted: bool) -> Results {
        let (system, workload) = (&plan.setup.system, &plan.setup.workload);
        Results {
            machine: MachineFigures {
                name: system.name.clone(),
                cpus: system.cpus,
                nodes: system.nodes(),
                memory_only_nodes: system.all_nodes() - system.nodes(),
            },
            workload: WorkloadFigures {
                name: workload.name.clone(),
                about: workload.about.clone(),
                processes: workload.processes,
                threads: workload.threads,
            },
            numbers: plan.setup.list(),
            seed: plan.seed,
            seeds: plan.seeds,
            interrupted,
            rows,
            sweeps: plan.sweeps.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Returns a line that describes the simulation.
    pub(super) fn title(&self) -> String {
        let Results { machine, workload, seed, seeds, .. } = self;
        let runs = if *seeds == 1 { "1 run".to_owned() } else { format!("{seeds} runs") };
        let more = match machine.memory_only_nodes {
            0 => String::new(),
            more => format!(" and {more} without CPUs"),
        };
        format!(
            "{} ({} x {} workers) on {} ({} CPUs, {} nodes{more}), {runs} from seed {seed}",
            workload.name,
            workload.processes,
            workload.threads,
            machine.name,
            machine.cpus,
            machine.nodes,
        )
    }

    /// Returns the times, updates, faults and migrations.
    pub(super) fn times(&self) -> Table {
        let columns = [
            "rules",
            "elapsed, s",
            "min",
            "max",
            "lost, s",
            "covered, s",
            "PTE",
            "PMD",
            "faults",
            "local %",
            "migrated",
        ];
        let of_tiers = ["demoted", "promoted"];
        let has_tiers = self.machine.memory_only_nodes > 0;
        let columns = columns.into_iter().chain(of_tiers.into_iter().filter(|_| has_tiers));
        self.table(columns, |row| {
            let mut cells = vec![
                figure(row.elapsed_s),
                figure(row.elapsed_min_s),
                figure(row.elapsed_max_s),
                figure(row.lost_s),
                optional(row.covered_after_s),
                figure(row.pte_updates),
                figure(row.pmd_updates),
                figure(row.hint_faults),
                row.local_share.map_or("-".to_owned(), hundredths),
                figure(row.pages_migrated),
            ];
            let of_tiers = [row.pages_demoted, row.pages_promoted].map(figure);
            cells.extend(of_tiers.into_iter().filter(|_| has_tiers));
            cells
        })
    }

    /// Returns the passes, and the regions that they left out.
    pub(super) fn reasons(&self) -> Table {
        let columns = ["rules", "passes"].into_iter().chain(REASONS.map(|reason| reason.name()));
        self.table(columns, |row| {
            let counts = REASONS.map(|reason| row.reasons.get(reason.name()).copied());
            let counts = counts.into_iter().map(optional);
            [figure(row.passes)].into_iter().chain(counts).collect()
        })
    }

    fn table<'a>(
        &self,
        columns: impl IntoIterator<Item = &'a str>,
        cells: impl Fn(&RuleSetRow) -> Vec<String>,
    ) -> Table {
        let mut table = Table::new(columns, 1);
        for row in &self.rows {
            table.row([self.name(row)].into_iter().chain(cells(row)));
        }
        table
    }

    /// Returns the rules of a row, with the swept parameters.
    pub(super) fn name(&self, row: &RuleSetRow) -> String {
        if self.sweeps.is_empty() {
            row.rules.to_owned()
        } else {
            format!("{} {}", row.rules, settings(&row.parameters))
        }
    }

    /// Returns the numbers with their origins.
    pub(super) fn numbers(&self) -> Table {
        numbers::table(self.simulated())
    }

    /// Returns the count of the numbers, and the names of the fitted ones.
    pub(super) fn numbers_told(&self) -> String {
        numbers::sentence(self.simulated())
    }

    fn simulated(&self) -> impl Iterator<Item = Number<'_>> {
        self.numbers.iter().map(|number| Number {
            name: number.name,
            value: number.value.clone(),
            origin: number.origin,
            fitted: number.fitted,
        })
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n  {}\n{}", self.title(), self.workload.about, self.times())?;
        write!(f, "{}", self.reasons())?;
        writeln!(
            f,
            "  Means of a run, of all processes. lost: against all memory local from the start. \
             covered: nine tenths of the pages were armed"
        )
    }
}
