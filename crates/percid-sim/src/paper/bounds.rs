//! Tolerances within which a simulated table counts as a reproduction of the published one.

use percid_rules::scan::SkipReason;
use serde::Serialize;

use super::cross_validation::CrossValidation;
use super::intermittent::Paper;
use super::prediction::{Accepted, Prediction};
use crate::{mask, numa};

/// A value and its allowed range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    /// Name and unit of the value.
    pub name: String,
    /// The value.
    pub figure: f64,
    /// Minimum of the value; `None` if there is no minimum.
    pub least: Option<f64>,
    /// Maximum of the value; `None` if there is no maximum.
    pub most: Option<f64>,
    /// `true` if the value is in the range.
    pub holds: bool,
}

impl Bound {
    /// Checks a value. A value that is not a number is in no range.
    pub fn new(
        name: impl Into<String>,
        figure: f64,
        least: Option<f64>,
        most: Option<f64>,
    ) -> Bound {
        let above = least.is_none_or(|least| figure >= least);
        let below = most.is_none_or(|most| figure <= most);
        Bound { name: name.into(), figure, least, most, holds: above && below && !figure.is_nan() }
    }
}

/// Maximum mean of the cells' absolute errors in the intermittent table.
pub const MEAN_ERROR: f64 = 0.10;
/// Maximum absolute error of any of its cells.
pub const WORST_ERROR: f64 = 0.35;
/// Factor by which the cache-cold IDs must be slower than both others in the simulation. It applies
/// to rows with a larger published factor over the cache-local IDs. In the other rows, all costs
/// must be alike.
const SLOWER: f64 = 1.5;
/// Maximum difference of costs that must be alike, as a share.
const ALIKE: f64 = 0.10;

/// Returns the bounds of the intermittent table: its errors, and the cost of the cache-cold IDs in
/// each row. They must cost more than both others, or the same if the published costs are the same.
pub fn intermittent(paper: &Paper) -> Vec<Bound> {
    let mut bounds = vec![
        error("mean absolute error, %", paper.mean_abs_error, MEAN_ERROR),
        error("worst absolute error, %", paper.worst_abs_error, WORST_ERROR),
    ];
    let rows = paper.speedups.iter().zip(paper.rows.chunks(super::table::POLICIES.len()));
    for (row, cells) in rows {
        let [per_cpu, cold, local] = cells else { continue };
        let place = format!("{}, {} ms", row.config, row.delay_ms);
        if row.published > SLOWER {
            let ratio = cold.model_ns / per_cpu.model_ns.max(local.model_ns);
            let name = format!("{}: linux-6.4 over the slower of the others", place);
            bounds.push(Bound::new(name, ratio, Some(SLOWER), None));
        } else {
            for other in [per_cpu, local] {
                let ratio = cold.model_ns / other.model_ns;
                let name = format!("{place}: linux-6.4 over {}", other.policy);
                bounds.push(Bound::new(name, ratio, Some(1.0 - ALIKE), Some(1.0 + ALIKE)));
            }
        }
    }
    bounds
}

/// Maximum mean of the absolute errors of cells that were predicted from all other rows.
pub const PREDICTED_MEAN_ERROR: f64 = 0.14;
/// Maximum absolute error of any of them.
pub const PREDICTED_WORST_ERROR: f64 = 0.60;
/// Maximum number of parameters that may be fitted to the table.
const FITTED: usize = 6;

/// Returns the bounds of predictions of rows that were left out of the fit.
pub fn cross_validation(found: &CrossValidation) -> Vec<Bound> {
    let fitted = found.rows.iter().map(|left| left.fitted.len()).max().unwrap_or(0);
    let (mean, worst) = ("mean error of rows left out, %", "worst error of rows left out, %");
    vec![
        error(mean, found.mean_error, PREDICTED_MEAN_ERROR),
        error(worst, found.worst_error, PREDICTED_WORST_ERROR),
        Bound::new("fitted numbers", fitted as f64, None, Some(FITTED as f64)),
    ]
}

/// Returns the upper bound of an error, in percent.
fn error(name: &str, error: f64, most: f64) -> Bound {
    Bound::new(name, 100.0 * error, None, Some(100.0 * most))
}

/// Returns the bounds of the mask's values; each row defines its own.
pub fn mask(paper: &mask::Paper) -> Vec<Bound> {
    let bound = |row: &mask::PublishedRow| {
        let [least, most] = row.accepted?;
        let name = format!("{}, {}", row.metric, row.when);
        Some(Bound::new(name, row.model.unwrap_or(f64::NAN), Some(least), Some(most)))
    };
    paper.rows.iter().filter_map(bound).collect()
}

/// Maximum difference of a count of the NUMA scan from the published one, as a share.
const COUNT_ERROR: f64 = 0.25;
/// Factor by which the two smallest counts may be larger or smaller.
const SMALL_COUNT_FACTOR: f64 = 2.0;
const SMALL_COUNTS: [SkipReason; 2] = [SkipReason::IgnorePidInactive, SkipReason::SeqCompleted];
/// Maximum difference of an elapsed time from the published one, as a share.
const ELAPSED_ERROR: f64 = 0.05;

/// Returns the bounds of the NUMA scan: its counts by reason, and its times.
pub fn numa(paper: &numa::Paper) -> Vec<Bound> {
    let times = paper.elapsed.cells().map(|(series, cell)| numa_elapsed(series, cell));
    paper.rows.iter().map(numa_count).chain(times).collect()
}

/// Returns the bound of the time of one series of the NUMA scan.
pub fn numa_elapsed(series: numa::experiment::Series, cell: &numa::paper::Cell) -> Bound {
    let name = format!("{}: elapsed, s", series.name());
    around(name, cell, 1.0 - ELAPSED_ERROR, 1.0 + ELAPSED_ERROR)
}

/// Returns the bounds of one count of the NUMA scan. If the published count is 0, it must be 0.
pub fn numa_count(row: &numa::paper::SkipReasonRow) -> Bound {
    let (least, most) = match SMALL_COUNTS.contains(&row.reason) {
        true => (1.0 / SMALL_COUNT_FACTOR, SMALL_COUNT_FACTOR),
        false => (1.0 - COUNT_ERROR, 1.0 + COUNT_ERROR),
    };
    around(format!("{}: {}", row.series.name(), row.reason.name()), &row.cell, least, most)
}

/// Returns a bound from one multiple of the published value to another.
fn around(name: String, cell: &numa::paper::Cell, least: f64, most: f64) -> Bound {
    Bound::new(name, cell.model, Some(least * cell.published), Some(most * cell.published))
}

/// Returns the bounds of the predictions; each prediction defines its own.
pub fn predictions(predictions: &[Prediction]) -> Vec<Bound> {
    predictions.iter().filter_map(prediction).collect()
}

/// Returns the bound of one prediction, if it has one.
pub fn prediction(prediction: &Prediction) -> Option<Bound> {
    let Accepted::Within(least, most) = prediction.bound else { return None };
    let unit = if prediction.unit.is_empty() { "" } else { ", " };
    let name = format!("{}{unit}{}", prediction.what, prediction.unit);
    Some(Bound::new(name, prediction.model, Some(least), most.is_finite().then_some(most)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::intermittent::{Cell, Speedup};
    use crate::paper::prediction::{Kind, Published};
    use crate::paper::table::POLICIES;

    /// Creates a table of one row with these costs and the published factor.
    fn paper(costs: [f64; 3], published: f64) -> Paper {
        let cell = |at: usize| Cell {
            config: "row".to_owned(),
            delay_ms: 10,
            policy: POLICIES[at],
            model_ns: costs[at],
            published_ns: costs[at],
            error: 0.0,
            pre_faulted_ns: costs[at],
            shares: Vec::new(),
            ids_distinct: 1,
            scans: 0.0,
        };
        let model = costs[1] / costs[2];
        Paper {
            rows: (0..3).map(cell).collect(),
            mean_abs_error: 0.05,
            worst_abs_error: 0.3,
            speedups: vec![Speedup { config: "row".to_owned(), delay_ms: 10, model, published }],
            assumptions: Vec::new(),
            parameters: Vec::new(),
        }
    }

    fn broken(paper: &Paper) -> Vec<String> {
        let bounds = intermittent(paper).into_iter();
        bounds.filter(|bound| !bound.holds).map(|bound| bound.name).collect()
    }

    #[test]
    fn each_bound_can_be_broken() {
        assert_eq!(broken(&paper([1.0, 2.0, 1.1], 2.0)), [] as [String; 0]);
        assert_eq!(broken(&paper([1.0, 1.05, 1.0], 1.1)), [] as [String; 0]);
        // Slower than only one of the others.
        let one = broken(&paper([1.9, 2.0, 1.0], 2.0));
        assert_eq!(one, ["row, 10 ms: linux-6.4 over the slower of the others"]);
        let apart = broken(&paper([1.0, 1.2, 1.15], 1.1));
        assert_eq!(apart, ["row, 10 ms: linux-6.4 over per-cpu"]);
        let mut far = paper([1.0, 2.0, 1.0], 2.0);
        (far.mean_abs_error, far.worst_abs_error) = (0.11, 0.36);
        assert_eq!(broken(&far), ["mean absolute error, %", "worst absolute error, %"]);
        far.mean_abs_error = f64::NAN;
        assert_eq!(broken(&far).len(), 2, "no number is in no range");
    }

    #[test]
    fn a_prediction_is_judged_by_its_own_bound_if_it_has_one() {
        let prediction = |model, bound| Prediction {
            what: "onset".to_owned(),
            source: "a test".to_owned(),
            unit: "ms",
            model,
            published: Some(Published::Between(128.0, 160.0)),
            kind: Kind::Published,
            bound,
        };
        let within = Accepted::Within(100.0, 200.0);
        let unbound = Accepted::NoBound("it does not fit".to_owned());
        let all = [
            prediction(150.0, within.clone()),
            prediction(250.0, within.clone()),
            prediction(f64::NAN, within),
            prediction(250.0, unbound),
        ];
        let judged: Vec<bool> = predictions(&all).iter().map(|bound| bound.holds).collect();
        assert_eq!(judged, [true, false, false]);
        assert_eq!(predictions(&all)[0].name, "onset, ms");
    }
}
