//! Cross-validation: predictions of cells to which the model was not fitted.

use serde::Serialize;

use super::fit::{Fit, Trials};
use super::setting::Setting;
use super::table::{POLICIES, RUNS, published_ns, watched_rows};
use crate::published::{self, Intermittent};
use crate::run_control::RunControl;

/// The fits to parts of the table, and their predictions of the rest.
#[derive(Debug, Clone, Serialize)]
pub struct CrossValidation {
    /// Mean of the absolute errors of the cells in `rows`, as a share.
    pub mean_error: f64,
    /// Largest absolute error of these cells, as a share.
    pub worst_error: f64,
    /// The errors of each policy's cells in `rows`.
    pub policies: Vec<OfPolicy>,
    /// Number of predictions in `rows` that differ by more than [`SAME`] from the others of their
    /// row.
    pub distinct: usize,
    /// Predictions of each row from all others.
    pub rows: Vec<Left>,
    /// Predictions of the rows of each pause from those of the other pause.
    pub delays: Vec<Left>,
}

/// The errors of one policy's cells that were left out.
#[derive(Debug, Clone, Serialize)]
pub struct OfPolicy {
    /// The policy.
    pub policy: &'static str,
    /// Mean of the absolute errors, as a share.
    pub mean_error: f64,
    /// Largest absolute error, as a share.
    pub worst_error: f64,
}

/// Difference of two predictions of a row, as a share, up to which they count as one.
pub const SAME: f64 = 0.02;

/// The predictions of the rows that were left out of a fit.
#[derive(Debug, Clone, Serialize)]
pub struct Left {
    /// Name of the rows that were left out.
    pub left_out: String,
    /// Mean of the absolute errors of the predictions, as a share.
    pub mean_error: f64,
    /// Largest absolute error of the predictions, as a share.
    pub worst_error: f64,
    /// The predictions.
    pub cells: Vec<Predicted>,
    /// The numbers that were fitted to the other rows.
    pub fitted: Vec<Fitted>,
}

/// A cell that was left out of the fit.
#[derive(Debug, Clone, Serialize)]
pub struct Predicted {
    /// Part of the machine, with its name in the published table.
    pub config: String,
    /// Pause between two threads' turns, in milliseconds.
    pub delay_ms: u64,
    /// The policy of the column.
    pub policy: &'static str,
    /// Predicted nanoseconds per burst.
    pub model_ns: f64,
    /// Published nanoseconds per burst.
    pub published_ns: f64,
    /// `model_ns / published_ns - 1`.
    pub error: f64,
}

/// A number that was fitted without some rows.
#[derive(Debug, Clone, Serialize)]
pub struct Fitted {
    /// Name in the file of the machine or of the workload.
    pub name: &'static str,
    /// The number, in the unit that its name ends with.
    pub value: f64,
}

/// Returns the number of runs of [`cross_validation`].
pub fn runs() -> u64 {
    let rows = published::intermittent();
    let parts = parts(&rows);
    let left_out: usize = parts.iter().map(|part| part.rows.len()).sum();
    let predictions = (left_out * POLICIES.len()) as u64 * RUNS;
    Trials::runs() + parts.len() as u64 * Trials::runs_of_fit() + predictions
}

/// Rows that are left out together.
struct Part {
    name: String,
    rows: Vec<usize>,
}

/// Returns each row alone, then the rows of each pause.
fn parts(rows: &[Intermittent]) -> Vec<Part> {
    let alone = rows.iter().enumerate().map(|(at, row)| Part {
        name: format!("{}, {} ms", row.config, row.delay_ms),
        rows: vec![at],
    });
    let mut parts: Vec<Part> = alone.collect();
    let mut delays: Vec<u64> = rows.iter().map(|row| row.delay_ms).collect();
    delays.dedup();
    parts.extend(delays.into_iter().map(|delay| Part {
        name: format!("all rows of {delay} ms"),
        rows: (0..rows.len()).filter(|&row| rows[row].delay_ms == delay).collect(),
    }));
    parts
}

/// Fits the table without each row, and without the rows of each pause. Simulates the rows that
/// were left out with the fitted numbers. Uses all CPUs. Returns `None` if it was stopped.
pub fn cross_validation(
    setting: &Setting,
    seed: u64,
    progress: &RunControl,
) -> Option<CrossValidation> {
    without_parts(parts(&published::intermittent()), setting, seed, progress)
}

/// Validates like [`cross_validation`], but with some rows only, numbered as in the published
/// table, and with no pause.
pub fn cross_validation_of_rows(
    rows: &[usize],
    setting: &Setting,
    seed: u64,
    progress: &RunControl,
) -> Option<CrossValidation> {
    let mut parts = parts(&published::intermittent());
    parts.retain(|part| matches!(part.rows[..], [row] if rows.contains(&row)));
    without_parts(parts, setting, seed, progress)
}

fn without_parts(
    parts: Vec<Part>,
    setting: &Setting,
    seed: u64,
    progress: &RunControl,
) -> Option<CrossValidation> {
    let rows = published::intermittent();
    let trials = Trials::simulate(setting, seed, progress)?;
    let left = parts.iter().map(|part| predict(part, &rows, &trials, seed, progress));
    let left: Option<Vec<Left>> = left.collect();
    let (rows, delays): (Vec<(Part, Left)>, _) =
        parts.into_iter().zip(left?).partition(|(part, _)| part.rows.len() == 1);
    let [rows, delays] =
        [rows, delays].map(|pairs| pairs.into_iter().map(|(_, left)| left).collect::<Vec<Left>>());
    let cells: Vec<Predicted> = rows.iter().flat_map(|left| left.cells.clone()).collect();
    let (mean_error, worst_error) = errors(&cells);
    let policies = POLICIES.map(|policy| of_policy(policy, &cells)).to_vec();
    let distinct = rows.iter().map(|left| distinct(&left.cells)).sum();
    Some(CrossValidation { mean_error, worst_error, policies, distinct, rows, delays })
}

fn of_policy(policy: &'static str, cells: &[Predicted]) -> OfPolicy {
    let cells: Vec<Predicted> =
        cells.iter().filter(|cell| cell.policy == policy).cloned().collect();
    let (mean_error, worst_error) = errors(&cells);
    OfPolicy { policy, mean_error, worst_error }
}

/// Returns the number of predictions of a row that differ.
fn distinct(cells: &[Predicted]) -> usize {
    let mut costs: Vec<f64> = cells.iter().map(|cell| cell.model_ns).collect();
    costs.sort_by(f64::total_cmp);
    costs.dedup_by(|next, kept| *next <= *kept * (1.0 + SAME));
    costs.len()
}

fn predict(
    part: &Part,
    rows: &[Intermittent],
    trials: &Trials,
    seed: u64,
    progress: &RunControl,
) -> Option<Left> {
    let cells = 0..rows.len() * POLICIES.len();
    let is_left_out = |cell: usize| part.rows.contains(&(cell / POLICIES.len()));
    let rest: Vec<usize> = cells.clone().filter(|&cell| !is_left_out(cell)).collect();
    let fit = trials.fit(&rest, progress)?;
    let chosen: Vec<Intermittent> = part.rows.iter().map(|&row| rows[row].clone()).collect();
    let simulated = watched_rows(&fit.setting, &chosen, RUNS, seed, progress)?;
    let published = published_ns();
    let cells = cells.filter(|&cell| is_left_out(cell)).zip(&simulated).map(|(cell, outcome)| {
        let row = &rows[cell / POLICIES.len()];
        Predicted {
            config: row.config.clone(),
            delay_ms: row.delay_ms,
            policy: POLICIES[cell % POLICIES.len()],
            model_ns: outcome.ns_per_burst(),
            published_ns: published[cell],
            error: outcome.ns_per_burst() / published[cell] - 1.0,
        }
    });
    let cells: Vec<Predicted> = cells.collect();
    let (mean_error, worst_error) = errors(&cells);
    Some(Left { left_out: part.name.clone(), mean_error, worst_error, cells, fitted: fitted(&fit) })
}

fn fitted(fit: &Fit) -> Vec<Fitted> {
    let parameters = fit.setting.parameters().into_iter().filter(|parameter| parameter.fitted);
    parameters.map(|parameter| Fitted { name: parameter.name, value: parameter.value }).collect()
}

/// Returns the mean and the largest absolute error.
fn errors(cells: &[Predicted]) -> (f64, f64) {
    let errors = cells.iter().map(|cell| cell.error.abs());
    (errors.clone().sum::<f64>() / cells.len() as f64, errors.fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(policy: &'static str, model_ns: f64, error: f64) -> Predicted {
        let (config, published_ns) = ("row".to_owned(), 1.0);
        Predicted { config, delay_ms: 10, policy, model_ns, published_ns, error }
    }

    #[test]
    fn predictions_that_are_nearly_equal_count_once() {
        let cells = |costs: [f64; 3]| {
            POLICIES
                .map(|policy| predicted(policy, 1.0, 0.0))
                .to_vec()
                .into_iter()
                .zip(costs)
                .map(|(cell, model_ns)| Predicted { model_ns, ..cell })
                .collect::<Vec<_>>()
        };
        assert_eq!(distinct(&cells([1000.0, 9000.0, 1010.0])), 2);
        assert_eq!(distinct(&cells([1000.0, 9000.0, 1050.0])), 3);
        assert_eq!(distinct(&cells([1000.0, 1000.0, 1000.0])), 1);
    }

    #[test]
    fn errors_are_of_one_policy_only() {
        let cells = [
            predicted("per-cpu", 1.0, -0.1),
            predicted("linux-6.4", 1.0, 0.3),
            predicted("linux-6.4", 1.0, -0.5),
        ];
        let found = of_policy("linux-6.4", &cells);
        assert!((found.mean_error - 0.4).abs() < 1e-12 && found.worst_error == 0.5, "{found:?}");
    }
}
