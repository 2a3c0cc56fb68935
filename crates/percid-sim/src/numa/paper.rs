//! Comparison of the published values with simulated ones, and the contribution of each assumption.

use std::thread;

use percid_rules::scan::{Order, Rules, SkipReason, Width};
use serde::Serialize;

use super::experiment::{Experiment, Series, deviation, mean};
use super::outcome::{Counts, REASONS, Second};
use super::predictions::{GainPoint, gains};
use super::setup::{Parameter, Setup};
use crate::paper::prediction::Kind;
use crate::published;
use crate::time::{MS, SECOND};

/// Number of simulated repetitions of the published experiment, over which the model's values are
/// averaged.
const REPETITIONS: u32 = 10;
/// Number of repetitions if an assumption or a rule is varied.
const REPETITIONS_OF_VARIANTS: u32 = 3;

/// A published value and the simulated one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Mean over the simulated repetitions of the experiment.
    pub model: f64,
    /// Standard deviation between the repetitions.
    pub deviation: f64,
    /// The published value, of one experiment.
    pub published: f64,
    /// Deviation of `model` from `published`, in percent; `None` if `published` is 0.
    pub error_percent: Option<f64>,
}

/// The count of a reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkipReasonRow {
    /// The kernel: the base, or the one with the series.
    pub series: Series,
    /// The reason.
    #[serde(serialize_with = "serialize_name")]
    pub reason: SkipReason,
    /// The relation of the two values: zeros of the base are by construction, because its rules do
    /// not have the reason.
    pub kind: Kind,
    /// The values.
    #[serde(flatten)]
    pub cell: Cell,
}

fn serialize_name<S: serde::Serializer>(
    reason: &SkipReason,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reason.name())
}

/// Another counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedCounter {
    /// The kernel: the base, or the one with the series.
    pub series: Series,
    /// Name in the published table.
    pub metric: String,
    /// The values.
    #[serde(flatten)]
    pub cell: Cell,
}

/// Elapsed time, in seconds. The model meets it by construction: a number was fitted to each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Elapsed {
    /// Time without the series.
    pub base: Cell,
    /// Time with the series.
    pub selective: Cell,
    /// Time that the series saves in the model, in percent.
    pub model_gain_percent: f64,
    /// Time that the series saves as published, in percent.
    pub published_gain_percent: f64,
}

impl Elapsed {
    /// Returns the times of both series.
    pub fn cells(&self) -> [(Series, &Cell); 2] {
        [(Series::Base, &self.base), (Series::Selective, &self.selective)]
    }
}

/// The experiment with a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variant {
    /// Description of the change.
    pub name: &'static str,
    /// The kernel: the base, or the one with the series.
    pub series: Series,
    /// Counts by reason, in the order of [`REASONS`].
    pub reasons: Vec<f64>,
    /// Difference of each count from the unchanged model with the same seeds, in percent; `None` if
    /// the unchanged count is 0.
    pub change_percent: Vec<Option<f64>>,
    /// Elapsed time, in seconds.
    pub elapsed_s: f64,
    /// Standard deviation of the runs of a repetition, in seconds.
    pub elapsed_deviation_s: f64,
    /// Number of scan passes.
    pub passes: f64,
    /// Number of armed huge pages.
    pub pmd_updates: f64,
    /// Number of migrated pages.
    pub pages_migrated: f64,
    /// Time until nine tenths of a process's pages had been armed, in seconds. This is the mean
    /// over the processes that got so far; `None` if none did.
    pub covered_after_s: Option<f64>,
}

/// Progress of a series' processes, second by second: means over the processes that still run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Course {
    /// The kernel: the base, or the one with the series.
    pub series: Series,
    /// One entry per second.
    pub seconds: Vec<Second>,
}

/// The comparison with the published tables.
#[derive(Debug, Clone, Serialize)]
pub struct Paper {
    /// The seed of the simulations.
    pub seed: u64,
    /// Number of simulated repetitions of the experiment.
    pub repetitions: u32,
    /// Number of fitted parameters.
    pub fitted: usize,
    /// All parameters of the model.
    pub parameters: Vec<Parameter>,
    /// The counts by reason.
    pub rows: Vec<SkipReasonRow>,
    /// Elapsed time.
    pub elapsed: Elapsed,
    /// Updates, faults and migrations.
    pub counters: Vec<PublishedCounter>,
    /// Coverage over time.
    pub courses: Vec<Course>,
    /// The contribution of each assumption: the experiment without it.
    pub contributions: Vec<Variant>,
    /// Variants with other rules: later fixes, ideas that were never built, and single rules left
    /// out.
    pub rules: Vec<Variant>,
    /// A forecast: the time that the series saves with more or fewer workers.
    pub gain_by_workers: Vec<GainPoint>,
    /// Values that the model does not reproduce, with the reasons.
    pub notes: Vec<&'static str>,
}

const NOTES: [&str; 9] = [
    "Speed and remote cost are fitted to the two elapsed times, so these two confirm nothing by themselves; \
     what they fix is that converged memory must be 1.7 times as fast as half-remote memory. All workers of \
     a process are taken to be equally fast at any moment, as if bound by the bandwidth of its memory.",
    "The published counters are those of the whole machine. The model has no other processes, and its base \
     arms nothing at all: by the time a region is first suitable, the two sequences in which activity does \
     not count are over. So the published base counters, 0.2 % of the selective updates, remain unexplained.",
    "With the series the model arms about twice as many huge pages as published, and with them come twice as \
     many faults. Fewer moves lower both (see the contributions), and take the two small counts below half \
     of the published ones.",
    "A period that doubles puts off the process's next pass in Linux, not in this model. With it, whatever \
     else is fitted, memory converges too late: the best that was found is in the contributions ('the same, and \
     fitted again'): all large counts are met, but ignore_pid_inactive is less than half of the published one and \
     the time is too long.",
    "The times of single runs spread too much without the series and too little with it. Without it nothing \
     keeps a worker on a node, and how many happen to be near their memory decides. Published runs differ by \
     0.7 %, so workers must move hardly ever, or so often that each run sees the mean: with a move every 4 s \
     (see the contributions) the spread is the published one, but then workers scan so often before they \
     prefer a node that several times too many pages are armed.",
    "With the workers' first period of 1000 ms alone, base counts are a third too low (see the contributions: \
     main thread never scans): something must scan sooner. A shorter first period of all workers fixes that \
     too, but then two passes fall into the scan delay, twice the published count.",
    "Under the order by activity a pass looks at the whole list, so that its counts of regions left out cannot \
     be compared with those of the other orders; times, updates and coverage can.",
    "Left out of the kernel's rules: groups of threads that share memory choose one node together (here each \
     worker chooses its own, and only pages look at the use of all); a page that could not move doubles the \
     period; workers find a CPU on the node they prefer at once, where Linux looks for one that is idle or for a \
     thread to change places with.",
    "Left out of the machine: what a fault, a migration and the flush of an address translation cost; memory \
     that is full; pages that are split or merged; other processes.",
];

/// Simulates the published experiment and its variants. Takes a few seconds.
pub fn paper(seed: u64) -> Paper {
    let setup = Setup::published();
    let experiments =
        Series::ALL.map(|series| Experiment::run(&setup, &series.rules(), seed, REPETITIONS));
    let of = |series: Series| &experiments[series as usize];
    Paper {
        seed,
        repetitions: REPETITIONS,
        fitted: setup.list().iter().filter(|parameter| parameter.fitted).count(),
        parameters: setup.list(),
        rows: Series::ALL.iter().flat_map(|&series| rows(series, of(series))).collect(),
        elapsed: elapsed(&experiments),
        counters: Series::ALL.iter().flat_map(|&series| counters(series, of(series))).collect(),
        courses: Series::ALL.map(|series| of(series).course(series)).to_vec(),
        contributions: contributions(&setup, &experiments, seed),
        rules: other_rules(&setup, &experiments, seed),
        gain_by_workers: gains(seed),
        notes: NOTES.to_vec(),
    }
}

impl Experiment {
    /// Returns mean counts over the first repetitions only, as many as `other` has: their seeds are
    /// the same.
    fn reasons_beside(&self, other: &Experiment) -> Vec<f64> {
        let counts = &self.counts[..other.counts.len().min(self.counts.len())];
        let mean_of = |reason: SkipReason| {
            counts.iter().map(|c| c.reasons[reason as usize] as f64).sum::<f64>()
                / counts.len() as f64
        };
        REASONS.map(mean_of).to_vec()
    }

    fn course(&self, series: Series) -> Course {
        let longest = self.processes.iter().map(|process| process.seconds.len()).max();
        let at = |second: usize| {
            let states: Vec<&Second> =
                self.processes.iter().filter_map(|process| process.seconds.get(second)).collect();
            let mean = |value: fn(&Second) -> f64| {
                states.iter().map(|state| value(state)).sum::<f64>() / states.len() as f64
            };
            Second { covered: mean(|s| s.covered), local: mean(|s| s.local) }
        };
        Course { series, seconds: (0..longest.unwrap_or(0)).map(at).collect() }
    }

    fn variant(&self, name: &'static str, series: Series, unchanged: &Experiment) -> Variant {
        let reasons = self.reasons_beside(self);
        let pairs = reasons.iter().zip(unchanged.reasons_beside(self));
        let covered = self.processes.iter().filter_map(|process| process.covered_after(0.9));
        let covered: Vec<f64> = covered.map(|seconds| seconds as f64).collect();
        Variant {
            name,
            series,
            change_percent: pairs.map(|(new, old)| error_percent(*new, old)).collect(),
            reasons,
            elapsed_s: mean(&self.elapsed),
            elapsed_deviation_s: self.of_runs(deviation),
            passes: self.mean(|counts| counts.passes as f64),
            pmd_updates: self.mean(|counts| counts.pmd_updates as f64),
            pages_migrated: self.mean(|counts| counts.pages_migrated as f64),
            covered_after_s: (!covered.is_empty()).then(|| mean(&covered)),
        }
    }
}

fn rows(series: Series, experiment: &Experiment) -> Vec<SkipReasonRow> {
    let published = published::numa_reasons();
    let figure = |reason: SkipReason| {
        let row = published.iter().find(|row| row.reason == reason.name());
        row.map_or(0.0, |row| series.published(row))
    };
    let row = |reason: SkipReason| {
        let values = experiment.values(|counts| counts.reasons[reason as usize] as f64);
        let cell = cell(&values, figure(reason));
        let kind = if cell.published == 0.0 { Kind::ByConstruction } else { Kind::Fitted };
        SkipReasonRow { series, reason, kind, cell }
    };
    REASONS.map(row).to_vec()
}

/// Returns the published standard deviation of the elapsed time of a series, in seconds.
pub(crate) fn published_deviation(series: Series) -> f64 {
    let published = published::numa_metrics();
    let row = published.iter().find(|row| row.reason == "elapsed_stddev_s");
    row.map_or(f64::NAN, |row| series.published(row))
}

fn elapsed(experiments: &[Experiment; 2]) -> Elapsed {
    let published = published::numa_metrics();
    let mean_s = published.iter().find(|row| row.reason == "elapsed_mean_s");
    let figure = |series: Series| mean_s.map_or(0.0, |row| series.published(row));
    let cell = |series: Series| cell(&experiments[series as usize].elapsed, figure(series));
    let (base, selective) = (cell(Series::Base), cell(Series::Selective));
    let gain = |before: f64, after: f64| (1.0 - after / before) * 100.0;
    Elapsed {
        model_gain_percent: gain(base.model, selective.model),
        published_gain_percent: gain(base.published, selective.published),
        base,
        selective,
    }
}

fn counters(series: Series, experiment: &Experiment) -> Vec<PublishedCounter> {
    let published = published::numa_metrics();
    let mut counters = Vec::new();
    for row in &published {
        if let Some(value) = counter(&row.reason) {
            let cell = cell(&experiment.values(value), series.published(row));
            counters.push(PublishedCounter { series, metric: row.reason.clone(), cell });
        }
    }
    counters
}

/// Returns the model's count for a name of the published table.
fn counter(metric: &str) -> Option<fn(&Counts) -> f64> {
    Some(match metric {
        "base_page_range_updates" => |c| (c.pte_updates + 512 * c.pmd_updates) as f64,
        "pte_updates" => |c| c.pte_updates as f64,
        "pmd_updates" => |c| c.pmd_updates as f64,
        "hint_faults" => |c| c.hint_faults as f64,
        "hint_faults_local" => |c| c.hint_faults_local as f64,
        "hint_local_percent" => {
            |c| 100.0 * c.hint_faults_local as f64 / c.hint_faults.max(1) as f64
        }
        "pages_migrated" => |c| c.pages_migrated as f64,
        _ => return None,
    })
}

/// An assumption that can be switched, and the change of the parameters.
type Switch = (&'static str, fn(&mut Setup));

const SWITCHES: [Switch; 12] = [
    ("workers not bound while preparing", |s| s.workload.preparation.bound = false),
    ("main thread never scans", |s| s.parameters.main_share = 0.0),
    ("main thread never scans, workers begin with a period of 640 ms", |s| {
        (s.parameters.main_share, s.parameters.first_period) = (0.0, 640 * MS);
    }),
    ("workers move a quarter as often", |s| s.parameters.stay *= 4),
    ("workers stay where they are", |s| s.parameters.stay = 1_000_000 * SECOND),
    ("workers move after 4 s, a thirtieth as often from the node they prefer", |s| {
        (s.parameters.stay, s.parameters.reluctance) = (4 * SECOND, 0.97);
        (s.system.speed, s.system.remote_cost) = (58.9e9, 2.1);
    }),
    ("no shortest period after a move", |s| s.parameters.hurry_after_move = false),
    ("workers do not return to the node they prefer", |s| s.parameters.go_home = false),
    ("periods do not adapt", |s| s.parameters.adaptation = false),
    ("all workers get a whole CPU", |s| s.parameters.least_share = 1.0),
    ("a doubled period puts off the process's pass", |s| s.parameters.put_off = true),
    (
        "the same, and fitted again: workers move after 25 s, a tenth as often from the node they prefer",
        |s| {
            s.parameters.put_off = true;
            (s.parameters.stay, s.parameters.reluctance) = (25 * SECOND, 0.9);
            (s.system.speed, s.system.remote_cost) = (72.2e9, 2.8);
        },
    ),
];

fn contributions(published: &Setup, unchanged: &[Experiment; 2], seed: u64) -> Vec<Variant> {
    let mut changes = Vec::new();
    for (name, switch) in SWITCHES {
        let mut setup = published.clone();
        switch(&mut setup);
        for series in Series::ALL {
            let (setup, rules) = (setup.clone(), series.rules());
            changes.push(Change { name, series, setup, rules });
        }
    }
    variants(&changes, unchanged, seed)
}

const RULES: [(&str, Rules); 8] = [
    ("later fixes, as in Linux 6.12", Rules::LINUX_6_12),
    ("128-bit activity sets", Rules { width: Width::Bits128, ..Rules::SELECTIVE }),
    ("order by activity", Rules { order: Order::Activity, ..Rules::SELECTIVE }),
    (
        "later fixes, 128 bits and order by activity",
        Rules { width: Width::Bits128, order: Order::Activity, ..Rules::LINUX_6_12 },
    ),
    ("window turned after the test", Rules { window_before_test: false, ..Rules::SELECTIVE }),
    (
        "regions scanned again within a sequence",
        Rules { once_per_sequence: false, ..Rules::SELECTIVE },
    ),
    ("scans that have begun are not ended", Rules { complete_partial: false, ..Rules::SELECTIVE }),
    ("no forced scan", Rules { scan_one_inactive: false, ..Rules::SELECTIVE }),
];

fn other_rules(setup: &Setup, unchanged: &[Experiment; 2], seed: u64) -> Vec<Variant> {
    let series = Series::Selective;
    let change = |(name, rules)| Change { name, series, setup: setup.clone(), rules };
    variants(&RULES.map(change), unchanged, seed)
}

/// A change of the experiment.
struct Change {
    name: &'static str,
    series: Series,
    setup: Setup,
    rules: Rules,
}

/// Simulates the changes on all CPUs. The results do not depend on the number of CPUs.
fn variants(changes: &[Change], unchanged: &[Experiment; 2], seed: u64) -> Vec<Variant> {
    let variant = |change: &Change| {
        let Change { name, series, setup, rules } = change;
        let experiment = Experiment::run(setup, rules, seed, REPETITIONS_OF_VARIANTS);
        experiment.variant(name, *series, &unchanged[*series as usize])
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let share = changes.len().div_ceil(cpus).max(1);
    thread::scope(|scope| {
        let parts = changes.chunks(share);
        let parts = parts.map(|part| scope.spawn(|| part.iter().map(variant).collect::<Vec<_>>()));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().expect("no simulation panics")).collect()
    })
}

fn cell(values: &[f64], published: f64) -> Cell {
    let model = mean(values);
    Cell {
        model,
        deviation: deviation(values),
        published,
        error_percent: error_percent(model, published),
    }
}

fn error_percent(model: f64, reference: f64) -> Option<f64> {
    (reference != 0.0).then(|| (model / reference - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::bounds;

    /// Returns all counts of the data file that rules can miss, from the file alone: those that are
    /// not 0, in ascending order.
    fn counts_in_file() -> Vec<f64> {
        let text = include_str!("../../data/numa-skip-reasons-published.csv");
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let fields = lines.flat_map(|line| line.split(',').skip(1));
        let counts = fields.map(|field| field.trim().parse().expect("a number"));
        let mut counts: Vec<f64> = counts.filter(|&count| count != 0.0).collect();
        counts.sort_by(f64::total_cmp);
        counts
    }

    #[test]
    fn the_published_figures_are_met_within_their_bounds() {
        let paper = paper(1);
        for row in &paper.rows {
            println!("{row:?}");
        }
        let bounds = bounds::numa(&paper);
        let missed = bounds.iter().filter(|bound| !bound.holds).map(|bound| bound.name.as_str());
        // The rule for all published values finds these wrong, and they are printed as wrong.
        let expected = ["selective: ignore_pid_inactive", "selective: seq_completed"];
        assert_eq!(missed.collect::<Vec<_>>(), expected);
        let counted = paper.rows.iter().filter(|row| row.kind != Kind::ByConstruction);
        let mut counted: Vec<f64> = counted.map(|row| row.cell.published).collect();
        counted.sort_by(f64::total_cmp);
        assert_eq!(counted, counts_in_file());
        assert_eq!(paper.rows.len(), 14);
        for cell in [&paper.elapsed.base, &paper.elapsed.selective] {
            assert!(cell.error_percent.is_some_and(|error| error.abs() <= 5.0), "{cell:?}");
        }
        println!("{:?}", paper.elapsed);
        paper.counters.iter().for_each(|counter| println!("{counter:?}"));
        paper.contributions.iter().for_each(|variant| println!("{variant:?}"));
        paper.rules.iter().for_each(|variant| println!("{variant:?}"));
        assert_eq!(paper.counters.len(), 14);
        assert_eq!(paper.fitted, 11);
    }

    /// Negative control: without one of the assumptions, or with another kernel, the results
    /// violate the bounds.
    #[test]
    fn without_an_assumption_the_bounds_are_broken() {
        let broken = |setup: &Setup, series: Series, rules: &Rules| {
            let experiment = Experiment::run(setup, rules, 1, 1);
            let rows = rows(series, &experiment);
            let large =
                rows.iter().filter(|row| row.cell.published == 0.0 || row.cell.published > 640.0);
            large.filter(|row| !bounds::numa_count(row).holds).count() > 0
        };
        assert!(!broken(&Setup::published(), Series::Base, &Rules::BASE), "the control");
        let unchanged = Setup::published();
        assert!(broken(&unchanged, Series::Selective, &Rules::BASE));
        assert!(broken(&unchanged, Series::Base, &Rules::SELECTIVE));
        let mut unbound = unchanged.clone();
        unbound.workload.preparation.bound = false;
        assert!(broken(&unbound, Series::Base, &Rules::BASE));
        let mut alone = unchanged;
        alone.parameters.main_share = 0.0;
        assert!(broken(&alone, Series::Base, &Rules::BASE));
    }
}
