//! The table and its JSON.

use std::fmt::Write as _;

use percid_vm::json::Value;

use crate::verdict::Row;

const HEAD: [&str; 10] = [
    "kernel",
    "way",
    "IDs",
    "runs",
    "caught",
    "with duplicates",
    "doubled/looks",
    "increments",
    "lost",
    "verdict",
];

/// The table of all rows, for people.
pub fn table(rows: &[Row]) -> String {
    let mut lines: Vec<Vec<String>> = vec![HEAD.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEAD.len()).filter_map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let joined = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", joined.trim_end());
    }
    text
}

fn cells(row: &Row) -> Vec<String> {
    let way = if row.kind.control {
        format!("{}, control", row.kind.way)
    } else {
        row.kind.way.to_string()
    };
    vec![
        row.release.clone(),
        way,
        row.kind.ids.to_string(),
        row.runs.to_string(),
        row.caught.to_string(),
        row.doubled_runs.to_string(),
        format!("{}/{}", row.doubled, row.samples),
        row.added.to_string(),
        row.lost.to_string(),
        row.verdict().text().to_owned(),
    ]
}

/// What the table has no room for: what percid chose, and rounds that came to nothing.
pub fn remarks(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for source in &row.sources {
            let _ = writeln!(text, "{} {}: percid uses {source}", row.release, row.kind);
        }
        for why in &row.failures {
            let _ = writeln!(text, "{} {}: a round came to nothing: {why}", row.release, row.kind);
        }
    }
    text
}

/// The rows for programs.
pub fn json(rows: &[Row]) -> Value {
    let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let object = |row: &Row| {
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
    };
    Value::Object(vec![("rows", Value::List(rows.iter().map(object).collect()))])
}
