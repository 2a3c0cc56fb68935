//! The comparison of scan rules as a report.

use percid_report::{Axis, Bars, Lines, Page};
use percid_sim::numa::comparison::RuleSetRow;

use super::figures::Results;
use crate::sim::span;
use percid_command::report;

/// Maximum number of rows in the picture of the course: more cannot be distinguished.
const MOST_LINES: usize = 8;

pub(super) fn page(results: &Results) -> Page {
    let what = format!("{}: {}.", results.title(), results.workload.about);
    let elapsed = told(results, "The elapsed time", " s", |row| Some(row.elapsed_s));
    let elapsed = if elapsed.is_empty() { "0 runs were finished.".to_owned() } else { elapsed };
    let mut page = report::page("percid sim numa", elapsed.as_str(), &what, results.interrupted);
    let about = "Simulated time until the last process is over, and what of it is lost against all memory local from \
                 the start. Shorter is better.";
    page.section("Times", format!("{elapsed}\n\n{about}"));
    page.chart("Elapsed", "", times(results));
    results.times().show_as("Times, updates, faults and migrations", &mut page);
    let local = told(results, "The mean local share", " %", mean_local);
    let about = "The memory of a round, in the first run.";
    page.section("Memory near its threads", format!("{local}\n\n{about}"));
    page.chart("Local share over time", "", course(results));
    let left_out = told(results, "The number of regions left out", "", |row| {
        Some(row.reasons.values().sum::<f64>().round())
    });
    page.section("Regions left out", format!("{left_out}\n\nBy reason, means of a run."));
    results.reasons().show_as("Passes, and regions left out", &mut page);
    page.section("Simulation", results.numbers_told());
    results.numbers().show_as("Numbers, and where they come from", &mut page);
    page
}

/// Returns the smallest and the largest value, and their rows.
fn told(results: &Results, what: &str, unit: &str, of: fn(&RuleSetRow) -> Option<f64>) -> String {
    let rows = results.rows.iter();
    let figures = rows.filter_map(|row| Some((results.name(row), of(row)?)));
    span::sentence(what, unit, figures).unwrap_or_default()
}

/// Returns one bar per rule set if nothing is swept, otherwise one per row: the time with all
/// memory local, and the lost time.
fn times(results: &Results) -> Bars {
    let series = ["elapsed", "lost"];
    let mut bars = Bars::grouped(Axis::new("rules"), Axis::new("time").unit("s"), series);
    for row in &results.rows {
        bars.category(results.name(row), [row.elapsed_s, row.lost_s]);
    }
    bars
}

/// Returns the mean of the picture's values, in percent.
fn mean_local(row: &RuleSetRow) -> Option<f64> {
    let seconds = row.course.len();
    (seconds > 0).then(|| 100.0 * row.course.iter().sum::<f64>() / seconds as f64)
}

fn course(results: &Results) -> Lines {
    let mut lines = Lines::new(Axis::new("time").unit("s"), Axis::new("local").unit("%"));
    for row in results.rows.iter().take(MOST_LINES) {
        let points = row.course.iter().zip(1..);
        lines.series(results.name(row), points.map(|(share, at)| (f64::from(at), 100.0 * share)));
    }
    lines
}
