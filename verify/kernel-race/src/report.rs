//! The table and its JSON.

use std::fmt::Write as _;

use serde::Serialize;

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

/// Returns all results as tables, for people.
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

/// Returns the remarks beside the table: the sources that percid chose, and the rounds without a
/// result.
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

/// Returns all results as one JSON document, for programs.
pub fn json(results: &Results) -> String {
    let document = Document {
        rows: results.rows.iter().map(RowDocument::of).collect(),
        unaided: results.unaided.iter().map(UnaidedDocument::of).collect(),
        missing: results.missing,
        conclusion: format!("{:?}", results.conclusion()).to_lowercase(),
    };
    serde_json::to_string_pretty(&document).expect("texts and numbers")
}

#[derive(Serialize)]
struct Document<'a> {
    rows: Vec<RowDocument<'a>>,
    unaided: Vec<UnaidedDocument<'a>>,
    missing: usize,
    conclusion: String,
}

#[derive(Serialize)]
struct RowDocument<'a> {
    kernel: &'a str,
    way: String,
    ids: String,
    control: bool,
    sources: Vec<String>,
    runs: u32,
    failures: Vec<String>,
    caught: u32,
    runs_with_duplicates: u32,
    looks: u64,
    looks_with_duplicates: u64,
    increments: i64,
    lost: u64,
    runs_with_losses: u32,
    good: bool,
    verdict: &'a str,
}

impl<'a> RowDocument<'a> {
    fn of(row: &'a Row) -> Self {
        Self {
            kernel: &row.release,
            way: row.kind.way.to_string(),
            ids: row.kind.ids.to_string(),
            control: row.kind.control,
            sources: row.sources.iter().map(ToString::to_string).collect(),
            runs: row.runs,
            failures: row.failures.iter().map(ToString::to_string).collect(),
            caught: row.caught,
            runs_with_duplicates: row.doubled_runs,
            looks: row.samples,
            looks_with_duplicates: row.doubled,
            increments: row.added,
            lost: row.lost,
            runs_with_losses: row.losing_runs,
            good: row.verdict().is_good(),
            verdict: row.verdict().text(),
        }
    }
}

#[derive(Serialize)]
struct UnaidedDocument<'a> {
    kernel: &'a str,
    ids: String,
    seconds: u64,
    attempts: u64,
    migrations: u64,
    duplicates: u64,
    increments: i64,
    lost: u64,
    good: bool,
}

impl<'a> UnaidedDocument<'a> {
    fn of(unaided: &'a Unaided) -> Self {
        Self {
            kernel: &unaided.release,
            ids: unaided.ids.to_string(),
            seconds: unaided.seconds,
            attempts: unaided.attempts,
            migrations: unaided.migrations,
            duplicates: unaided.doubled,
            increments: unaided.added,
            lost: unaided.lost,
            good: unaided.is_good(),
        }
    }
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
        assert!(json(&results).contains("\"conclusion\": \"noresult\""));
    }
}
