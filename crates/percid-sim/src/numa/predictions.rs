//! Values of the model that were not fitted, beside the published ones.

use std::sync::atomic::Ordering::Relaxed;

use percid_rules::scan::Rules;
use rayon::prelude::*;
use serde::Serialize;

use super::experiment::{Experiment, ITERATIONS, Series, deviation, mean};
use super::outcome::Counts;
use super::setup::Setup;
use crate::paper::prediction::{Accepted, Kind, Prediction, Published, agreeing_with_deviation};
use crate::published;
use crate::run_control::RunControl;
use crate::time::SECOND;

/// Number of repetitions of an experiment.
const REPETITIONS: u32 = 5;
/// Number of workers of each of the two processes on the published machine with 512 CPUs.
const LARGE: u32 = 256;
/// Numbers of workers in the forecast.
const WORKERS: [u32; 9] = [4, 8, 16, 24, 40, 64, 96, 160, 256];

const TABLE: &str = "the table published with the series, sums over 7 runs";
const TIMES: &str = "the times published with the series, 7 runs";
const LARGE_SOURCE: &str = "published with the series for a machine of 512 CPUs";

/// The time that the series saves with a number of workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GainPoint {
    /// Number of workers of each of two processes. There is a CPU for each worker.
    pub workers: u32,
    /// Mean elapsed time without the series, in seconds.
    pub base_s: f64,
    /// Mean elapsed time with the series, in seconds.
    pub selective_s: f64,
    /// Time that the series saves, in percent.
    pub gain_percent: f64,
    /// Time until nine tenths of a process's pages had been armed with the series, in seconds;
    /// `None` if no process got so far.
    pub covered_after_s: Option<f64>,
}

/// Returns a forecast of the time that the series saves, by the number of workers. The machine's
/// bandwidth is the same for all points, and there is a CPU for each worker.
pub fn gains(seed: u64) -> Vec<GainPoint> {
    WORKERS.into_par_iter().map(|workers| gain(workers, seed)).collect()
}

fn with_workers(workers: u32) -> Setup {
    let mut setup = Setup::published();
    setup.workload.threads = workers;
    setup.system.cpus = setup.workload.processes * workers;
    setup
}

fn gain(workers: u32, seed: u64) -> GainPoint {
    let setup = with_workers(workers);
    let run = |rules: &Rules| Experiment::run(&setup, rules, seed, 1);
    let [base, selective] = [Rules::BASE, Rules::SELECTIVE].map(|rules| run(&rules));
    let [base_s, selective_s] = [&base, &selective].map(|one| mean(&one.elapsed));
    let covered = selective.processes.iter().filter_map(|process| process.covered_after(0.9));
    let covered: Vec<f64> = covered.map(|seconds| seconds as f64).collect();
    let gain_percent = percent_saved(base_s, selective_s);
    let covered_after_s = (!covered.is_empty()).then(|| mean(&covered));
    GainPoint { workers, base_s, selective_s, gain_percent, covered_after_s }
}

fn percent_saved(before: f64, after: f64) -> f64 {
    100.0 * (1.0 - after / before)
}

/// Simulates all predictions for this seed. Takes some seconds. `control` counts groups of
/// predictions; groups that have not begun when it stops are left out.
pub fn predictions(seed: u64, control: &RunControl) -> Vec<Prediction> {
    type Part = fn(u64) -> Vec<Prediction>;
    let parts: [Part; 4] =
        [of_the_table, of_the_large_machine, of_single_patches, of_other_workers];
    let run = |part: &Part| {
        if control.stop.load(Relaxed) {
            return Vec::new();
        }
        let rows = part(seed);
        control.done.fetch_add(1, Relaxed);
        rows
    };
    let parts: Vec<Vec<Prediction>> = parts.par_iter().map(run).collect();
    parts.into_iter().flatten().collect()
}

/// Returns a comparison with a published value, which the model must meet as closely as all others.
fn row(what: String, source: &str, unit: &'static str, model: f64, published: f64) -> Prediction {
    let [least, most] = Published::Exactly(published).agreeing();
    Prediction {
        what,
        source: source.to_owned(),
        unit,
        model,
        published: Some(Published::Exactly(published)),
        earlier: None,
        kind: Kind::Published,
        bound: Accepted::Within(least, most),
    }
}

/// Returns the published value of a metric and a series.
fn published_metric(metric: &str, series: Series) -> f64 {
    let rows = published::numa_metrics();
    rows.iter().find(|row| row.reason == metric).map_or(f64::NAN, |row| series.published(row))
}

fn of_the_table(seed: u64) -> Vec<Prediction> {
    let setup = Setup::published();
    let mut rows = Vec::new();
    for series in Series::ALL {
        let experiment = Experiment::run(&setup, &series.rules(), seed, REPETITIONS);
        rows.extend(times(series, &experiment));
        rows.extend(processor_times(&setup, series, &experiment));
        rows.extend(counters(series, &experiment));
    }
    rows
}

fn times(series: Series, experiment: &Experiment) -> Vec<Prediction> {
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
    let figures = [
        ("elapsed_min_s", "elapsed, least of 7 runs", experiment.of_runs(least)),
        (
            "elapsed_stddev_s",
            "elapsed, standard deviation of 7 runs",
            experiment.of_runs(deviation),
        ),
        ("elapsed_max_s", "elapsed, most of 7 runs", experiment.of_runs(most)),
    ];
    let figures = figures.into_iter().map(|(metric, what, model)| {
        let published = published_metric(metric, series);
        row(format!("{}: {what}", series.name()), TIMES, "s", model, published)
    });
    figures.collect()
}

/// Returns predictions of the processor time, which follows from the elapsed time and the workers'
/// share of a CPU. The model has the kernel's part for its passes only.
fn processor_times(setup: &Setup, series: Series, experiment: &Experiment) -> Vec<Prediction> {
    let threads = f64::from(setup.workload.processes * setup.workload.threads);
    let share = (1.0 + setup.parameters.least_share) / 2.0;
    let all = mean(&experiment.elapsed) * f64::from(ITERATIONS) * threads * share;
    let [user, system] = ["user_s", "system_s"].map(|metric| published_metric(metric, series));
    let what = format!("{}: user and system time", series.name());
    let mut both = row(what, TIMES, "s", all, user + system);
    if series == Series::Base {
        both.kind = Kind::ByConstruction;
    }
    let passes = experiment.mean(|counts| counts.scan_ns as f64) / SECOND as f64;
    let source = format!("{TIMES}; the model has passes only, no faults and no migrations");
    let kernel = row(format!("{}: system time", series.name()), &source, "s", passes, system);
    vec![both, kernel]
}

/// A counter: name of the published row, description, and value in the model.
type CounterSpec = (&'static str, &'static str, fn(&Counts) -> f64);

const COUNTERS: [CounterSpec; 6] = [
    ("pte_updates", "PTE updates", |c| c.pte_updates as f64),
    ("pmd_updates", "PMD updates", |c| c.pmd_updates as f64),
    ("hint_faults", "hint faults", |c| c.hint_faults as f64),
    ("hint_faults_local", "local hint faults", |c| c.hint_faults_local as f64),
    ("hint_local_percent", "local hint faults in hint faults", |c| {
        100.0 * c.hint_faults_local as f64 / c.hint_faults.max(1) as f64
    }),
    ("pages_migrated", "pages migrated", |c| c.pages_migrated as f64),
];

fn counters(series: Series, experiment: &Experiment) -> Vec<Prediction> {
    let counter = |&(metric, what, value): &CounterSpec| {
        let published = published_metric(metric, series);
        let source = match series {
            Series::Base => {
                format!("{TABLE}, for the whole machine; the model's base arms nothing")
            }
            Series::Selective => TABLE.to_owned(),
        };
        let unit = if metric == "hint_local_percent" { "%" } else { "" };
        let model = experiment.mean(value);
        row(format!("{}: {what}", series.name()), &source, unit, model, published)
    };
    COUNTERS.iter().map(counter).collect()
}

fn of_the_large_machine(seed: u64) -> Vec<Prediction> {
    let setup = with_workers(LARGE);
    let [base, selective] =
        Series::ALL.map(|series| Experiment::run(&setup, &series.rules(), seed, 1));
    let figure = |experiment: &Experiment, series: Series, metric: &str| {
        let (_, what, value) = COUNTERS.iter().find(|(known, ..)| *known == metric)?;
        let name = match series {
            Series::Base => format!("numa_512_base_{metric}"),
            Series::Selective => format!("numa_512_{metric}"),
        };
        let what = format!("512 CPUs, {}: {what} of a run", series.name());
        let a_run = experiment.mean(value) / f64::from(ITERATIONS);
        Some(row(what, LARGE_SOURCE, "", a_run, published::other(&name)))
    };
    let of_the_base = figure(&base, Series::Base, "pte_updates");
    let metrics = ["pte_updates", "hint_faults", "hint_faults_local", "pages_migrated"];
    let of_the_series = metrics.iter().filter_map(|one| figure(&selective, Series::Selective, one));
    let mut rows: Vec<Prediction> = of_the_base.into_iter().chain(of_the_series).collect();
    let change = -percent_saved(mean(&base.elapsed), mean(&selective.elapsed));
    let what = "512 CPUs: elapsed with the series against without".to_owned();
    let published = published::other("numa_512_elapsed_change");
    rows.push(row(what, LARGE_SOURCE, "%", change, published));
    rows
}

/// Each fix of the series without the others: description, published figure, and rules.
const ALONE: [(&str, &str, Rules); 3] = [
    (
        "windows turned before the test alone",
        "numa_window_before_test_change",
        Rules { window_before_test: true, ..Rules::BASE },
    ),
    (
        "partial scans completed alone",
        "numa_complete_partial_change",
        Rules { complete_partial: true, ..Rules::BASE },
    ),
    (
        "no second scan in a sequence alone",
        "numa_once_per_sequence_change",
        Rules { once_per_sequence: true, ..Rules::BASE },
    ),
];

fn of_single_patches(seed: u64) -> Vec<Prediction> {
    let setup = Setup::published();
    let elapsed = |rules: &Rules| mean(&Experiment::run(&setup, rules, seed, 1).elapsed);
    let base = elapsed(&Rules::BASE);
    let [time, deviation] =
        ["elapsed_mean_s", "elapsed_stddev_s"].map(|metric| published_metric(metric, Series::Base));
    let alone = |(what, figure, rules): &(&str, &str, Rules)| {
        let what = format!("{what}: elapsed against base");
        let change = -percent_saved(base, elapsed(rules));
        let source = "published with the series: single patches are neutral, only all of them gain";
        let published = published::other(figure);
        let mut row = row(what, source, "%", change, published);
        let [least, most] = agreeing_with_deviation(published, 100.0 * deviation / time);
        row.bound = Accepted::Within(least, most);
        // The base arms nothing, so there is nothing that a single fix could change.
        row.kind = Kind::ByConstruction;
        row
    };
    let mut rows: Vec<Prediction> = ALONE.iter().map(alone).collect();
    let forced = Rules { scan_one_inactive: true, ..Rules::BASE };
    let change = -percent_saved(base, elapsed(&forced));
    rows.push(forecast("forced scans alone: elapsed against base".to_owned(), "%", change));
    rows
}

fn of_other_workers(seed: u64) -> Vec<Prediction> {
    let saved = |point: GainPoint| {
        let what = format!("{} workers a process: what the series saves", point.workers);
        forecast(what, "%", point.gain_percent)
    };
    gains(seed).into_iter().map(saved).collect()
}

fn forecast(what: String, unit: &'static str, model: f64) -> Prediction {
    Prediction {
        what,
        source: "the model alone".to_owned(),
        unit,
        model,
        published: None,
        earlier: None,
        kind: Kind::Forecast,
        bound: Accepted::NoBound("nobody has published it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rows of a data file as it is: the first column, and the numbers of the others.
    fn data_file(name: &str) -> Vec<(String, Vec<f64>)> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
        let text = std::fs::read_to_string(path).expect("a data file");
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let row = |line: &str| {
            let mut fields = line.split(',').map(str::trim);
            let name = fields.next().unwrap_or_default().to_owned();
            (name, fields.map(|field| field.parse().expect("a number")).collect())
        };
        lines.map(row).collect()
    }

    /// Returns all published values that are compared and could be missed, from the files alone.
    fn published_in_files() -> Vec<f64> {
        // Fitted alone, sums of others, and parts of a sum.
        let left_out = ["elapsed_mean_s", "total_elapsed_s", "base_page_range_updates", "user_s"];
        let table = data_file("numa-elapsed-published.csv");
        let rows = table.iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
        let mut values: Vec<f64> = rows.flat_map(|(_, values)| values.clone()).collect();
        let selective = |metric: &str| {
            let row = table.iter().find(|(name, _)| name == metric);
            row.expect("a row").1[1]
        };
        // The base's sum has the share of a CPU that is computed from it.
        values.push(selective("user_s") + selective("system_s"));
        let words = data_file("other-published.csv").into_iter();
        // Single fixes change nothing by construction.
        let words = words.filter(|(name, _)| name.starts_with("numa_512"));
        values.extend(words.map(|(_, value)| value[0]));
        values
    }

    fn sorted(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_by(f64::total_cmp);
        values
    }

    /// The rows that the one rule for all published values finds wrong. They are printed as wrong;
    /// this list only shows when one changes.
    const FAILED: [&str; 19] = [
        "base: elapsed, standard deviation of 7 runs",
        "base: system time",
        "base: PTE updates",
        "base: PMD updates",
        "base: hint faults",
        "base: local hint faults",
        "base: local hint faults in hint faults",
        "base: pages migrated",
        "selective: elapsed, standard deviation of 7 runs",
        "selective: system time",
        "selective: PTE updates",
        "selective: PMD updates",
        "selective: hint faults",
        "selective: local hint faults",
        "512 CPUs, base: PTE updates of a run",
        "512 CPUs, selective: hint faults of a run",
        "512 CPUs, selective: local hint faults of a run",
        "512 CPUs, selective: pages migrated of a run",
        "512 CPUs: elapsed with the series against without",
    ];

    #[test]
    fn every_published_figure_is_compared_and_judged_by_the_rule() {
        let rows = predictions(1, &RunControl::default());
        let mut failed = Vec::new();
        for row in &rows {
            println!("{:60} {:>12.2} {:?} {:?}", row.what, row.model, row.published, row.bound);
            assert!(row.model.is_finite() && !row.source.is_empty(), "{row:?}");
            assert_eq!(
                row.published.is_some(),
                matches!(row.bound, Accepted::Within(..)),
                "{row:?}"
            );
            if let Accepted::Within(least, most) = row.bound {
                if !(least..=most).contains(&row.model) {
                    failed.push(row.what.as_str());
                }
            }
        }
        assert_eq!(failed, FAILED);
        let counted = rows.iter().filter(|row| row.kind.counts());
        let counted = counted.map(|row| match row.published {
            Some(Published::Exactly(value)) => value,
            _ => panic!("{row:?}"),
        });
        assert_eq!(sorted(counted.collect()), sorted(published_in_files()));
    }

    #[test]
    fn what_is_stopped_has_no_rows() {
        let control = RunControl::default();
        control.stop.store(true, Relaxed);
        assert_eq!(predictions(1, &control), []);
    }
}
