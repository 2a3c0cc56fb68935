//! `percid sim mask`: a comparison of policies for the mask of an address space.

use std::fmt;

use percid_report::{Axis, Bars, Lines, Page};
use percid_sim::machine::{Machine, Parameter};
use percid_sim::mask::comparison::{Comparison, MaskPolicyRow};
use percid_sim::mask::{self, MaskPolicy, Workload};
use serde::Serialize;

use super::numbers::{self, Number, figure, hundredths, optional, settings};
use super::span;
use super::sweeps::{Sweeps, check_runs, sweeps};
use crate::cli::MaskArguments;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::presets;
use percid_command::report::{self, Report};
use percid_command::table::Table;
use percid_command::text_table::{Align, TextTable};
use percid_command::this_machine::Numbering;
use percid_command::watch::watched;

pub(crate) fn run(arguments: &MaskArguments, json: bool) -> Result<Exit, Failure> {
    let plan = Plan::from_arguments(arguments)?;
    let report = Report::to(arguments.html.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let rows = plan.simulate(&interrupt)?;
    let results = Results::new(&plan, rows, interrupt.pressed());
    let printed = if json { output::print_json(&results) } else { output::print_text(&results) };
    if results.interrupted && !json {
        complain(format_args!("interrupted: rows are those of the runs that were over"));
    }
    let exit = if results.interrupted { Exit::Interrupted } else { Exit::Complete };
    report.write(printed, || results.page(), exit)
}

/// The requested simulations.
struct Plan {
    machine: Machine,
    workload: Workload,
    /// The requested name of the workload.
    workload_name: String,
    policies: Vec<MaskPolicy>,
    sweeps: Sweeps,
    seeds: u64,
    seed: u64,
}

impl Plan {
    fn from_arguments(arguments: &MaskArguments) -> Result<Plan, Failure> {
        let mut machine = presets::machine(&arguments.machine, Numbering::Dense)?;
        let mut workload = presets::mask_workload(&arguments.workload)?;
        let sweeps = sweeps(&arguments.set, |name, value| {
            mask::set(&mut machine, &mut workload, name, value)
        })?;
        let mut policies: Vec<MaskPolicy> = Vec::new();
        for policy in &arguments.policy {
            if !policies.contains(policy) {
                policies.push(*policy);
            }
        }
        if policies.is_empty() {
            policies = MaskPolicy::ALL.into();
        }
        let workload_name = arguments.workload.clone();
        let (seeds, seed) = (arguments.seeds, arguments.seed);
        check_runs(&sweeps, policies.len(), seeds)?;
        Ok(Plan { machine, workload, workload_name, policies, sweeps, seeds, seed })
    }

    /// Returns the rows of all runs that were finished before Ctrl-C.
    fn simulate(&self, interrupt: &Interrupt) -> Result<Vec<MaskPolicyRow>, Failure> {
        let comparison = Comparison {
            machine: &self.machine,
            workload: &self.workload,
            sweeps: &self.sweeps,
            policies: &self.policies,
            seeds: self.seeds,
            seed: self.seed,
        };
        let rows = watched("sim mask", Some(comparison.runs()), interrupt, |counters| {
            comparison.simulate(counters)
        });
        rows.map_err(|fault| Failure::Usage(format!("{}: {fault}", self.workload_name)))
    }
}

/// The document of `percid sim mask --json`.
#[derive(Debug, Serialize)]
struct Results {
    machine: MachineName,
    workload: WorkloadName,
    /// Parameters that are not swept.
    numbers: Vec<Parameter>,
    seed: u64,
    seeds: u64,
    interrupted: bool,
    /// Rows with at least one finished run.
    rows: Vec<MaskPolicyRow>,
    /// The swept parameters, in the requested order.
    #[serde(skip)]
    sweeps: Sweeps,
}

#[derive(Debug, Serialize)]
struct MachineName {
    name: String,
    cpus: u32,
}

#[derive(Debug, Serialize)]
struct WorkloadName {
    name: String,
    about: String,
}

impl Results {
    fn new(plan: &Plan, rows: Vec<MaskPolicyRow>, interrupted: bool) -> Results {
        let mut numbers = mask::numbers(&plan.machine, &plan.workload);
        numbers.retain(|number| !plan.sweeps.iter().any(|(swept, _)| swept == number.name));
        let Workload { name, about, .. } = plan.workload.clone();
        Results {
            machine: MachineName {
                name: plan.machine.name.clone(),
                cpus: plan.machine.topology.cpus(),
            },
            workload: WorkloadName { name, about },
            numbers,
            seed: plan.seed,
            seeds: plan.seeds,
            interrupted,
            rows,
            sweeps: plan.sweeps.clone(),
        }
    }

    /// Returns a line that describes the simulation.
    fn title(&self) -> String {
        let Results { machine, workload, seed, seeds, .. } = self;
        let runs = match seeds {
            1 => format!("1 run from seed {seed}"),
            _ => format!("{seeds} runs from seed {seed} on"),
        };
        format!("{} on {} ({} CPUs), {runs}", workload.name, machine.name, machine.cpus)
    }

    fn page(&self) -> Page {
        let what = format!("{}: {}.", self.title(), self.workload.about);
        let told = self.told("Throughput", " CPUs", |row| Some(row.throughput));
        let told = if told.is_empty() { "0 runs were finished.".to_owned() } else { told };
        let mut page = report::page("percid sim mask", told.as_str(), &what, self.interrupted);
        let about = "Work done at a time, in CPUs that run beside a busy sibling. More is better.";
        page.section("Throughput", format!("{told}\n\n{about}"));
        let throughput = Axis::new("throughput").unit("CPUs");
        self.plot("Throughput", &throughput, &mut page, |row| Some(row.throughput));
        let told = self.told("Latency", " cycles", |row| row.latency);
        let about = "Latency of a switch's accesses to a mask. Shorter is better.";
        page.section("Access to the mask", format!("{told}\n\n{about}"));
        let latency = Axis::new("latency").unit("cycles").logarithmic();
        self.plot("Latency", &latency, &mut page, |row| row.latency);
        let share = |row: &MaskPolicyRow| Some(100.0 * row.scheduler_share);
        page.section("Scheduler's share of the CPU time", self.told("The share", " %", share));
        self.plot("Share", &Axis::new("share").unit("%"), &mut page, share);
        let told = self.told("The rate of transfers of the mask's line", " a second", |row| {
            Some(row.transfers_per_second.round())
        });
        let about = "Counts are those of all runs, the others means.";
        page.section("All figures", format!("{told}\n\n{about}"));
        self.table().show_as("All rows", &mut page);
        let numbers = || self.numbers.iter().map(Number::from);
        page.section("Simulation", numbers::sentence(numbers()));
        numbers::table(numbers()).show_as("Numbers, and where they come from", &mut page);
        page
    }

    /// Returns all rows, with the swept parameters.
    fn table(&self) -> Table {
        let is_swept = !self.sweeps.is_empty();
        let names: &[&str] = if is_swept { &["policy", "parameters"] } else { &["policy"] };
        let mut table = Table::new(names.iter().copied().chain(COLUMNS), names.len());
        for row in &self.rows {
            let parameters = is_swept.then(|| settings(&row.parameters));
            let names = [row.policy.name().to_owned()].into_iter().chain(parameters);
            table.row(names.chain(cells(row)));
        }
        table
    }

    /// Returns the smallest and the largest value, and their policies.
    fn told(&self, what: &str, unit: &str, of: fn(&MaskPolicyRow) -> Option<f64>) -> String {
        let name = |row: &MaskPolicyRow| match settings(&row.parameters) {
            settings if settings.is_empty() => row.policy.name().to_owned(),
            settings => format!("{}, {settings}", row.policy.name()),
        };
        let figures = self.rows.iter().filter_map(|row| Some((name(row), of(row)?)));
        span::sentence(what, unit, figures).unwrap_or_default()
    }

    /// Adds a plot: a line for each policy if one number is swept, otherwise bars.
    fn plot(
        &self,
        name: &str,
        axis: &Axis,
        page: &mut Page,
        of: fn(&MaskPolicyRow) -> Option<f64>,
    ) {
        let policies = self.policies();
        if let [(swept, _)] = &self.sweeps[..] {
            let mut lines = Lines::new(Axis::new(swept), axis.clone());
            for policy in policies {
                let rows = self.rows.iter().filter(|row| row.policy == policy);
                let points = rows.filter_map(|row| Some((*row.parameters.get(swept)?, of(row)?)));
                lines.series(policy.name(), points);
            }
            page.chart(format!("{name} over {swept}"), "", lines);
            return;
        }
        if self.sweeps.is_empty() {
            let mut bars = Bars::grouped(Axis::new("policy"), axis.clone(), ["mean of all runs"]);
            self.rows.iter().for_each(|row| {
                bars.category(row.policy.name(), [of(row)]);
            });
            page.chart(name, "", bars);
            return;
        }
        let names = policies.iter().map(|policy| policy.name());
        let mut bars = Bars::grouped(Axis::new("parameters"), axis.clone(), names);
        for rows in self.rows.chunk_by(|one, other| one.parameters == other.parameters) {
            bars.category(settings(&rows[0].parameters), rows.iter().map(of));
        }
        page.chart(format!("{name}, means of all runs"), "", bars);
    }

    /// Returns the policies that have rows.
    fn policies(&self) -> Vec<MaskPolicy> {
        let has = |policy: &MaskPolicy| self.rows.iter().any(|row| row.policy == *policy);
        MaskPolicy::ALL.into_iter().filter(has).collect()
    }
}

/// The values of a row, in text under common headings.
const COLUMNS: [&str; 15] = [
    "throughput",
    "min",
    "max",
    "gain %",
    "scheduler %",
    "away %",
    "cycles, all",
    "cycles, misses",
    "cycles, across",
    "transfers/s",
    "waiting",
    "switches",
    "across %",
    "loads",
    "needless of interrupts",
];

fn cells(row: &MaskPolicyRow) -> Vec<String> {
    let mut cells = [row.throughput, row.throughput_min, row.throughput_max].map(figure).to_vec();
    cells.push(row.gain.map_or("-".to_owned(), |gain| format!("{:+.1}", 100.0 * gain)));
    cells.extend([row.scheduler_share, row.away_share].map(hundredths));
    cells.extend([row.latency, row.miss_latency, row.across_latency].map(optional));
    cells.extend([row.transfers_per_second, row.waiting_cpus].map(figure));
    let across =
        (row.switches > 0).then(|| 100.0 * row.switches_across as f64 / row.switches as f64);
    cells.extend([row.switches.to_string(), optional(across), row.reloads.to_string()]);
    cells.push(format!("{} of {}", row.needless_interrupts, row.interrupts));
    cells
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title())?;
        writeln!(f, "  {}", self.workload.about)?;
        let numbers = self.numbers.iter().map(|number| (number.name.to_owned(), number.value));
        writeln!(f, "  {}", settings(&numbers.collect()))?;
        let columns = COLUMNS.map(|name| (name, Align::Right));
        let mut table = TextTable::new([("policy", Align::Left)].into_iter().chain(columns));
        for rows in self.rows.chunk_by(|one, other| one.parameters == other.parameters) {
            let parameters = settings(&rows[0].parameters);
            if !parameters.is_empty() {
                table.heading(parameters);
            }
            for row in rows {
                let name = row.policy.name().to_owned();
                table.row([name].into_iter().chain(cells(row)).collect());
            }
        }
        write!(f, "{table}")?;
        writeln!(f, "  min, max: of single runs. gain: over the first policy. counts: of all runs")
    }
}
