//! Predictions of the model without a fit, beside published values or alone.

use rayon::prelude::*;

use super::prediction::{Accepted, Kind, Prediction, Published};
use super::setting::Setting;
use super::table::{POLICIES, RUNS, cells, watched_rows};
use crate::engine::{Outcome, Simulation};
use crate::numa;
use crate::policies;
use crate::published::{self, Intermittent};
use crate::run_control::RunControl;
use crate::workload::{Memory, Workload};

/// The commit with the published table.
const TABLE: &str = "Linux commit 7e019dcc470f";

/// Positions of the cache-cold and of the cache-local IDs in a row's cells.
const COLD: usize = 1;
const LOCAL: usize = 2;

/// Number of runs of a row if the memory is pre-faulted or a number is swept.
const RUNS_OF_ROW: u64 = 50;

/// Returns all predictions: of the engine, and of the NUMA scan. Uses all CPUs. If it is stopped,
/// it returns the completed ones.
pub fn predictions(seed: u64, progress: &RunControl) -> Vec<Prediction> {
    let parts = [neutrality, onset, without_ticks, overcommit, spread, pre_faulted];
    let setting = Setting::published();
    let of_the_engine = parts.iter().map_while(|part| part(&setting, seed, progress)).flatten();
    let mut predictions: Vec<Prediction> = of_the_engine.collect();
    predictions.extend(numa::predictions(seed, progress));
    predictions
}

/// Returns the number of runs of [`predictions`], without those of the NUMA scan, which are few and
/// long.
pub fn runs() -> u64 {
    let of_row = RUNS_OF_ROW * POLICIES.len() as u64;
    let rows = published::intermittent().len() as u64;
    let overcommit = (OVERCOMMIT.len() as u64) * RUNS_OVERCOMMITTED;
    let spread = RUNS * POLICIES.len() as u64;
    of_row * (1 + DELAYS.count() as u64 + 1 + rows) + overcommit + spread
}

type Rows = Option<Vec<Prediction>>;

/// Returns the values that agree with a published one.
fn agreeing(published: f64) -> Accepted {
    let [least, most] = Published::Exactly(published).agreeing();
    Accepted::Within(least, most)
}

/// Simulates the cells of some rows. Returns one vector for each row, in the order of [`POLICIES`].
fn simulate(
    setting: &Setting,
    rows: &[Intermittent],
    seed: u64,
    progress: &RunControl,
) -> Option<Vec<Vec<Outcome>>> {
    let outcomes = watched_rows(setting, rows, RUNS_OF_ROW, seed, progress)?;
    Some(outcomes.chunks(POLICIES.len()).map(<[Outcome]>::to_vec).collect())
}

/// Returns the row of the published table with this part of the machine and this pause.
fn row(config: &str, delay_ms: u64) -> Intermittent {
    let mut rows = published::intermittent().into_iter();
    let row = rows.find(|row| row.config == config && row.delay_ms == delay_ms);
    row.expect("a row of the published table")
}

/// Returns the factor by which the cache-cold IDs are slower than the cache-local ones.
fn slower(cells: &[Outcome]) -> f64 {
    cells[COLD].ns_per_burst() / cells[LOCAL].ns_per_burst()
}

/// Predicts that all IDs cost the same if threads return before IDs expire.
fn neutrality(setting: &Setting, seed: u64, progress: &RunControl) -> Rows {
    let row = row("8-core/1-L3", 10);
    let cells = simulate(setting, std::slice::from_ref(&row), seed, progress)?;
    Some(vec![Prediction {
        what: "8 cores, each back after 80 ms: linux-6.4 over linux-6.13".to_owned(),
        source: format!("{TABLE}: 8-core/1-L3, 10 ms"),
        unit: "",
        model: slower(&cells[0]),
        published: Some(Published::Exactly(row.published_speedup)),
        earlier: None,
        kind: Kind::Fitted,
        bound: agreeing(row.published_speedup),
    }])
}

/// Range of pauses between two threads' turns in which the onset is searched, in milliseconds.
const DELAYS: std::ops::RangeInclusive<u64> = 10..=30;
/// Factor from which the cache-cold IDs count as slower.
const SLOWER: f64 = 1.5;

/// Predicts the time between two turns of a thread from which the cache-cold IDs are slower.
fn onset(setting: &Setting, seed: u64, progress: &RunControl) -> Rows {
    let row = row("8-core/1-L3", 10);
    let rows: Vec<Intermittent> =
        DELAYS.map(|delay_ms| Intermittent { delay_ms, ..row.clone() }).collect();
    let cells = simulate(setting, &rows, seed, progress)?;
    let first = rows.iter().zip(&cells).find(|(_, cells)| slower(cells) >= SLOWER);
    let onset = first.map_or(f64::NAN, |(row, _)| (row.delay_ms * u64::from(row.threads)) as f64);
    Some(vec![Prediction {
        what:
            "8 cores: time between two turns of a thread from which linux-6.4 is 1.5 times slower"
                .to_owned(),
        source:
            "Linux commit 223baf9d17f2: IDs that were not used for 100 ms are taken back, by a \
                 scan that comes once in 100 ms at most"
                .to_owned(),
        unit: "ms",
        model: onset,
        published: Some(Published::Exactly(published::other("mm_cid_expiry_ms"))),
        earlier: None,
        kind: Kind::ByConstruction,
        bound: Accepted::NoBound("the policy has this rule".to_owned()),
    }])
}

/// Tick rate per second at which no run has a tick.
const NO_TICKS_HZ: f64 = 0.001;

/// Predicts the slowest row if the timer never ticks.
fn without_ticks(setting: &Setting, seed: u64, progress: &RunControl) -> Rows {
    let mut setting = setting.clone();
    setting.machine.kernel.hz.value = NO_TICKS_HZ;
    let cells = simulate(&setting, &[row("24-core/24-L3", 200)], seed, progress)?;
    Some(vec![Prediction {
        what: "24 cores, 200 ms, without timer ticks: linux-6.4 over linux-6.13".to_owned(),
        source: format!("discussion of {TABLE}, in words: the scan behind the tick is the cause"),
        unit: "",
        model: slower(&cells[0]),
        published: None,
        earlier: None,
        kind: Kind::ByConstruction,
        bound: Accepted::NoBound("without ticks no scan runs, and no ID expires".to_owned()),
    }])
}

/// Own memory that each of two threads goes through on the CPU of a timed thread, in KiB. This
/// compares CPUs that others only keep busy with CPUs whose caches they use.
const OVERCOMMIT: [f64; 2] = [0.0, 16_384.0];
/// Number of runs with each amount of memory.
const RUNS_OVERCOMMITTED: u64 = 2;
const OVERCOMMITTED_MS: f64 = 100.0;

/// Predicts the cost of a burst if other threads on its CPU go through their own memory, relative
/// to the cost if they go through none.
fn overcommit(setting: &Setting, seed: u64, progress: &RunControl) -> Rows {
    let costs = OVERCOMMIT.par_iter().map(|&kb| {
        let mut workload = Workload::preset("overcommitted").expect("it is a preset");
        let set = [("others_per_cpu", 2.0), ("others_kb", kb), ("duration_ms", OVERCOMMITTED_MS)];
        for (name, value) in set {
            workload.set(name, value).expect("one of its parameters");
        }
        let program = workload.program(&setting.machine).expect("it fits the machine");
        let policy = policies::find("linux-6.13").expect("a policy");
        let mut all = Outcome::default();
        for run in 0..RUNS_OVERCOMMITTED {
            let one = Simulation::new(&setting.machine, &program, policy, seed.wrapping_add(run));
            all.add(&one.run(&progress.stop).expect("the policy keeps its contract"));
            progress.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        all.ns_per_burst()
    });
    let costs: Vec<f64> = costs.collect();
    let is_stopped = progress.stop.load(std::sync::atomic::Ordering::Relaxed);
    (!is_stopped).then(|| {
        vec![Prediction {
            what: "two others on each CPU with 16 MiB each, over two with nothing, linux-6.13: ns \
                   per burst"
                .to_owned(),
            source: format!("discussion of {TABLE}, in words: overcommitted CPUs find areas cold"),
            unit: "",
            model: costs[1] / costs[0],
            published: None,
            earlier: None,
            kind: Kind::Forecast,
            bound: Accepted::NoBound("only words were published".to_owned()),
        }]
    })
}

/// Predicts the variation between single runs of a cell.
fn spread(setting: &Setting, seed: u64, progress: &RunControl) -> Rows {
    let cells = cells(setting, &[row("24-core/24-L3", 200)], |_| RUNS, seed);
    let spread = |at: usize| {
        let mut costs = Vec::new();
        let came_out = |run: Outcome| costs.push(run.ns_per_burst());
        cells[at].simulate(progress, |simulation| simulation, came_out)?;
        let what = "24 cores, 200 ms: standard deviation between runs, share of their mean";
        Some(Prediction {
            what: format!("{what}, {}", POLICIES[at]),
            source: format!("{TABLE} has means of 5 runs and no deviations"),
            unit: "%",
            model: 100.0 * deviation(&costs),
            published: None,
            earlier: None,
            kind: Kind::Forecast,
            bound: Accepted::NoBound("nothing was published".to_owned()),
        })
    };
    (0..cells.len()).map(spread).collect()
}

/// Returns the standard deviation of a sample, as a share of its mean.
fn deviation(sample: &[f64]) -> f64 {
    let mean = sample.iter().sum::<f64>() / sample.len() as f64;
    let squares: f64 = sample.iter().map(|one| (one - mean) * (one - mean)).sum();
    libm::sqrt(squares / (sample.len() - 1) as f64) / mean
}

/// Forecasts of an earlier model with five numbers and without ticks, for linux-6.4 on pre-faulted
/// memory. In microseconds, in the order of the published rows.
const EARLIER_US: [f64; 8] = [1.5, 3.5, 4.8, 5.0, 0.7, 2.6, 4.2, 4.3];

/// Predicts the cache-cold IDs on memory that was written before.
fn pre_faulted(setting: &Setting, seed: u64, progress: &RunControl) -> Rows {
    let mut setting = setting.clone();
    setting.workload.memory = Memory::PreFaulted;
    let rows = published::intermittent();
    let cells = simulate(&setting, &rows, seed, progress)?;
    let prediction = |((row, cells), earlier): ((&Intermittent, &Vec<Outcome>), f64)| Prediction {
        what: format!("{}, {} ms, linux-6.4 on pre-faulted memory", row.config, row.delay_ms),
        source: "the model alone; an earlier one of five fitted numbers forecast it, too"
            .to_owned(),
        unit: "us",
        model: cells[COLD].ns_per_burst() / 1000.0,
        published: None,
        earlier: Some(earlier),
        kind: Kind::Forecast,
        bound: Accepted::NoBound("nobody has measured it".to_owned()),
    };
    Some(rows.iter().zip(&cells).zip(EARLIER_US).map(prediction).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_is_a_share_of_the_mean() {
        assert!((deviation(&[1.0, 3.0]) - 0.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(deviation(&[2.0, 2.0, 2.0]), 0.0);
    }

    #[test]
    fn ids_expire_after_100_ms_and_not_without_a_tick() {
        let (setting, progress) = (Setting::published(), RunControl::default());
        let model = |part: fn(&Setting, u64, &RunControl) -> Rows, setting: &Setting| {
            part(setting, 1, &progress).expect("nobody stops it")[0].model
        };
        assert!((100.0..=200.0).contains(&model(onset, &setting)));
        assert!((0.9..=1.1).contains(&model(without_ticks, &setting)));
        // The control: with the normal tick rate, IDs move to other CPUs.
        let cells = simulate(&setting, &[row("24-core/24-L3", 200)], 1, &progress);
        assert!(slower(&cells.expect("nobody stops it")[0]) > 2.0);
    }
}
