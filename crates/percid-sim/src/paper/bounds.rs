//! Tolerances within which a simulated table counts as a reproduction of the published one.

use serde::Serialize;

use super::cross_validation::CrossValidation;
use super::intermittent::{Cell, Paper};
use super::prediction::{AGREES, Accepted, Kind, Prediction, Published, agreeing_with_deviation};
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

/// Returns the bounds of the intermittent table: each cell must agree with the published one.
pub fn intermittent(paper: &Paper) -> Vec<Bound> {
    let bound = |cell: &Cell| {
        let name = format!("{}, {} ms, {}: ns per burst", cell.config, cell.delay_ms, cell.policy);
        agreement(name, cell.model_ns, Published::Exactly(cell.published_ns))
    };
    paper.rows.iter().map(bound).collect()
}

/// Returns the bound of a value that must agree with a published one.
fn agreement(name: String, figure: f64, published: Published) -> Bound {
    let [least, most] = published.agreeing();
    Bound::new(name, figure, Some(least), Some(most))
}

/// Goal for the mean of the absolute errors of cells that were predicted from all other rows. It
/// was set before the errors of this model were known to anybody who could change it.
pub const PREDICTED_MEAN_ERROR: f64 = 0.12;
/// Goal for the mean of each policy.
pub const PREDICTED_POLICY_ERROR: f64 = 0.15;

/// Returns the bounds of predictions of rows that were left out of the fit.
pub fn cross_validation(found: &CrossValidation) -> Vec<Bound> {
    let mut bounds =
        vec![error("mean error of rows left out, %", found.mean_error, PREDICTED_MEAN_ERROR)];
    bounds.extend(found.policies.iter().map(|one| {
        let name = format!("mean error of rows left out, {}, %", one.policy);
        error(&name, one.mean_error, PREDICTED_POLICY_ERROR)
    }));
    bounds.push(error("worst error of rows left out, %", found.worst_error, AGREES));
    bounds
}

/// Returns the upper bound of an error, in percent.
fn error(name: &str, error: f64, most: f64) -> Bound {
    Bound::new(name, 100.0 * error, None, Some(100.0 * most))
}

/// Returns the bounds of the mask's values; each row defines its own.
pub fn mask(paper: &mask::Paper) -> Vec<Bound> {
    let bound = |row: &mask::PublishedRow| {
        let [least, most] = row.accepted.filter(|_| row.kind != Kind::ByConstruction)?;
        let name = format!("{}, {}", row.metric, row.when);
        Some(Bound::new(name, row.model.unwrap_or(f64::NAN), Some(least), Some(most)))
    };
    paper.rows.iter().filter_map(bound).collect()
}

/// Returns the bounds of the NUMA scan: its counts by reason, unless they are right by construction.
pub fn numa(paper: &numa::Paper) -> Vec<Bound> {
    let can_be_missed = paper.rows.iter().filter(|row| row.kind != Kind::ByConstruction);
    can_be_missed.map(numa_count).collect()
}

/// Returns the bound of the time of one series of the NUMA scan: its standard deviation was
/// published.
pub fn numa_elapsed(series: numa::experiment::Series, cell: &numa::paper::Cell) -> Bound {
    let name = format!("{}: elapsed, s", series.name());
    let deviation = numa::paper::published_deviation(series);
    let [least, most] = agreeing_with_deviation(cell.published, deviation);
    Bound::new(name, cell.model, Some(least), Some(most))
}

/// Returns the bounds of one count of the NUMA scan. If the published count is 0, it must be 0.
pub fn numa_count(row: &numa::paper::SkipReasonRow) -> Bound {
    let name = format!("{}: {}", row.series.name(), row.reason.name());
    agreement(name, row.cell.model, Published::Exactly(row.cell.published))
}

/// Returns the bounds of the predictions; each prediction defines its own.
pub fn predictions(predictions: &[Prediction]) -> Vec<Bound> {
    predictions.iter().filter_map(prediction).collect()
}

/// Returns the bound of one prediction, if it has one and is not right by construction.
pub fn prediction(prediction: &Prediction) -> Option<Bound> {
    if prediction.kind == Kind::ByConstruction {
        return None;
    }
    let Accepted::Within(least, most) = prediction.bound else { return None };
    let unit = if prediction.unit.is_empty() { "" } else { ", " };
    let name = format!("{}{unit}{}", prediction.what, prediction.unit);
    Some(Bound::new(name, prediction.model, Some(least), most.is_finite().then_some(most)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::intermittent::Speedup;
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
    fn a_cell_must_agree_with_the_published_one() {
        let mut near = paper([1.0, 2.0, 1.1], 2.0);
        assert_eq!(broken(&near), [] as [String; 0]);
        near.rows[1].model_ns = 2.4;
        assert_eq!(broken(&near), [] as [String; 0]);
        near.rows[1].model_ns = 2.6;
        assert_eq!(broken(&near), ["row, 10 ms, linux-6.4: ns per burst"]);
        near.rows[0].model_ns = f64::NAN;
        assert_eq!(broken(&near).len(), 2, "no number is in no range");
    }

    #[test]
    fn a_prediction_is_judged_by_its_own_bound_if_it_has_one() {
        let prediction = |model, bound| Prediction {
            what: "onset".to_owned(),
            source: "a test".to_owned(),
            unit: "ms",
            model,
            published: Some(Published::Between(128.0, 160.0)),
            earlier: None,
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
