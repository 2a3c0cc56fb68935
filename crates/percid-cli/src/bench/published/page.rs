//! The report of `percid bench intermittent --published --html`.

use percid_command::report as html;
use percid_report::{Axis, Bars, Page};

use super::report::PublishedReport;

/// Returns the report: the picture first, then the values.
pub(super) fn page(report: &PublishedReport, machine: &str, interrupted: bool) -> Page {
    let title = "percid bench intermittent --published";
    let verdict = match report.forecast {
        Some(_) => sentence(&report.verdict()),
        None => "0 forecasts were compared with measurements.".to_owned(),
    };
    let mut page = html::page(title, verdict, &machine.replacen('\n', "\n\n", 1), interrupted);
    page.section("Measured, published, forecast", sentences(&report.notes()));
    let series = ["measured here", "published", "forecast", "forecast with hot measured"];
    let ns = Axis::new("time per burst").unit("ns").logarithmic();
    let mut bars = Bars::grouped(Axis::new("part, pause and index"), ns, series);
    for row in &report.rows {
        let forecasts = [Some(row.forecast_ns), Some(row.with_hot_ns)];
        let values = [row.measured_ns, row.published_ns].into_iter().chain(forecasts);
        bars.category(format!("{}, {}", row.place(), row.index), values);
    }
    page.chart("Bursts over 16 KiB", "", bars);
    report.table().show_as("All figures", &mut page);
    let measured = report.parts.iter().filter(|part| part.measured).count();
    let told =
        format!("{measured} of {} parts of the published machine are here.", report.parts.len());
    page.section("Parts of this machine", told);
    report.parts_table().show_on(&mut page);
    page
}

/// Formats notes as paragraphs.
fn sentences(notes: &[String]) -> String {
    notes.iter().map(|note| sentence(note)).collect::<Vec<String>>().join("\n\n")
}

fn sentence(note: &str) -> String {
    let mut letters = note.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
