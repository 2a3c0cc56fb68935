//! The values of a published table, each predicted by a fit to the others.

use percid_command::table::{Cell, Table};
use percid_report as html;
use percid_sim::paper::leave_one_out::LeaveOneOut;
use percid_sim::paper::prediction::{AGREES, Published};

use crate::sim::numbers::{figure, hundredths, percent};

const TITLE: &str = "Each value from a fit to all others";

/// Returns the result in one sentence.
pub(super) fn verdict(found: &LeaveOneOut) -> String {
    format!(
        "{TITLE}: mean error {} %, worst {} %; {} fitted numbers, of which {} are fitted again, on {} values.",
        hundredths(found.mean_error),
        hundredths(found.worst_error),
        found.fitted,
        found.refitted.len(),
        found.left_out.len()
    )
}

/// Returns the predictions, with the numbers of each fit.
fn table(found: &LeaveOneOut) -> Table {
    let columns = ["left out", "published", "predicted", "error"].into_iter();
    let mut table = Table::new(columns.chain(found.refitted.iter().copied()), 1);
    for left in &found.left_out {
        let published = match left.published {
            Published::Exactly(one) => figure(one),
            Published::Between(least, most) => format!("{} to {}", figure(least), figure(most)),
        };
        let error = percent(Some(100.0 * left.error));
        let cells = [
            Cell::from(left.name.as_str()),
            Cell::from(published),
            Cell::from(figure(left.model)),
            Cell::judged(error, left.error.abs() > AGREES),
        ];
        table.row(cells.into_iter().chain(left.numbers.iter().map(|one| Cell::from(figure(*one)))));
    }
    table
}

/// Returns the result and the predictions as text.
pub(super) fn text(found: &LeaveOneOut) -> String {
    format!("\n{}\n{}", verdict(found), table(found))
}

/// Adds the result and the predictions to a report.
pub(super) fn show_on(found: &LeaveOneOut, page: &mut html::Page) {
    page.subsection("Left out of the fit", verdict(found));
    table(found).show_as("All predictions of values left out", page);
}

#[cfg(test)]
mod tests {
    use super::*;
    use percid_sim::paper::leave_one_out::LeftOut;

    #[test]
    fn predictions_are_told_with_their_errors_and_numbers() {
        let left = |name: &str, model, error| LeftOut {
            name: name.to_owned(),
            model,
            published: Published::Exactly(100.0),
            error,
            numbers: vec![12.25],
        };
        let left_out = vec![left("near", 110.0, 0.1), left("far", 160.0, 0.6)];
        let (mean_error, worst_error) = (0.35, 0.6);
        let refitted = vec!["work_us"];
        let found = LeaveOneOut { fitted: 3, refitted, mean_error, worst_error, left_out };
        let text = text(&found);
        for said in ["mean error 35.0 %, worst 60.0 %", "3 fitted", "+60.0 %!", "+10.0 %", "12.2"] {
            assert!(text.contains(said), "{said}:\n{text}");
        }
        assert!(!text.contains("+10.0 %!"));
        let mut page = html::Page::new("a test", "");
        show_on(&found, &mut page);
        assert!(page.render().contains("mean error 35.0 %"));
    }
}
