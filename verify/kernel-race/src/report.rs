//! The table and its JSON.

use std::fmt::Write as _;

use percid_vm::json::Value;

use crate::verdict::{Results, Row, Unaided};

const HEAD: [&str; 10] = [
    "kernel",
    "way",
    "IDs",
    "runs",
    "caught",
    "with duplicates",
    "with losses",
    "increments",
    "lost",
    "verdict",
];

const UNAIDED_HEAD: [&str; 8] =
    ["kernel", "IDs", "seconds", "attempts", "migrations", "duplicates", "increments", "lost"];

/// All results, for people.
pub fn tables(results: &Results) -> String {
    let mut text = String::new();
    if !results.rows.is_empty() {
        text += &table(&HEAD, results.rows.iter().map(|row| cells(row).to_vec()));
    }
    if !results.unaided.is_empty() {
        text += "without help\n";
        let rows = results.unaided.iter().map(|unaided| unaided_cells(unaided).to_vec());
        text += &table(&UNAIDED_HEAD, rows);
    }
    if results.missing > 0 {
        let _ = writeln!(text, "{} rounds are missing", results.missing);
    }
    text
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..lines[0].len()).filter_map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let joined = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", joined.trim_end());
    }
    text
}

fn cells(row: &Row) -> [String; HEAD.len()] {
    let way = row.kind.way.to_string();
    [
        row.release.clone(),
        if row.kind.control { format!("{way}, control") } else { way },
        row.kind.ids.to_string(),
        row.runs.to_string(),
        row.caught.to_string(),
        row.doubled_runs.to_string(),
        row.losing_runs.to_string(),
        row.added.to_string(),
        row.lost.to_string(),
        row.verdict().text().to_owned(),
    ]
}

fn unaided_cells(unaided: &Unaided) -> [String; UNAIDED_HEAD.len()] {
    [
        unaided.release.clone(),
        unaided.ids.to_string(),
        unaided.seconds.to_string(),
        unaided.attempts.to_string(),
        unaided.migrations.to_string(),
        unaided.doubled.to_string(),
        unaided.added.to_string(),
        unaided.lost.to_string(),
    ]
}

/// What the table has no room for: what percid chose, and rounds that came to nothing.
pub fn remarks(results: &Results) -> String {
    let mut text = String::new();
    for row in &results.rows {
        for source in &row.sources {
            let _ = writeln!(text, "{} {}: percid uses {source}", row.release, row.kind);
        }
        for why in &row.failures {
            let _ = writeln!(text, "{} {}: a round came to nothing: {why}", row.release, row.kind);
        }
    }
    text
}

/// All results, for programs.
pub fn json(results: &Results) -> Value {
    let conclusion = format!("{:?}", results.conclusion());
    Value::Object(vec![
        ("rows", Value::List(results.rows.iter().map(row_json).collect())),
        ("unaided", Value::List(results.unaided.iter().map(unaided_json).collect())),
        ("missing", number(results.missing as u64)),
        ("conclusion", Value::text(conclusion.to_lowercase())),
    ])
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn row_json(row: &Row) -> Value {
    Value::Object(vec![
        ("kernel", Value::text(&row.release)),
        ("way", Value::text(row.kind.way.to_string())),
        ("ids", Value::text(row.kind.ids.to_string())),
        ("control", Value::Bool(row.kind.control)),
        ("sources", Value::texts(&row.sources)),
        ("runs", number(row.runs.into())),
        ("failures", Value::texts(&row.failures)),
        ("caught", number(row.caught.into())),
        ("runs_with_duplicates", number(row.doubled_runs.into())),
        ("looks", number(row.samples)),
        ("looks_with_duplicates", number(row.doubled)),
        ("increments", Value::Int(row.added)),
        ("lost", number(row.lost)),
        ("runs_with_losses", number(row.losing_runs.into())),
        ("good", Value::Bool(row.verdict().is_good())),
        ("verdict", Value::text(row.verdict().text())),
    ])
}

fn unaided_json(unaided: &Unaided) -> Value {
    Value::Object(vec![
        ("kernel", Value::text(&unaided.release)),
        ("ids", Value::text(unaided.ids.to_string())),
        ("seconds", number(unaided.seconds)),
        ("attempts", number(unaided.attempts)),
        ("migrations", number(unaided.migrations)),
        ("duplicates", number(unaided.doubled)),
        ("increments", Value::Int(unaided.added)),
        ("lost", number(unaided.lost)),
        ("good", Value::Bool(unaided.is_good())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["1".to_owned(), "22222".to_owned(), String::new()]];
        let text = table(&["long", "b", "c"], rows.into_iter());
        assert_eq!(text, "long  b      c\n1     22222\n");
    }

    #[test]
    fn what_is_missing_is_said_and_is_no_result() {
        let results = Results { missing: 2, ..Results::default() };
        assert_eq!(tables(&results), "2 rounds are missing\n");
        assert!(json(&results).document().contains("\"conclusion\": \"noresult\""));
    }
}
