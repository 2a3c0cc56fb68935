//! Checks that every file, item, test and mutant that `docs/contributing/requirements.md` names exists, and that
//! every public item of the libraries has an example.

#![cfg(test)]

mod examples;
mod mutants;
mod root;

use std::fs;

use root::root;

/// One row of a table of requirements.
struct Row {
    number: String,
    text: String,
    done_by: Vec<String>,
    fails_without: Vec<String>,
}

fn rows() -> Vec<Row> {
    let text =
        fs::read_to_string(root().join("docs/contributing/requirements.md")).expect("the document");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, text, done_by, fails_without, _] = cells[..] else { return None };
        let is_row = number.ends_with(|character: char| character.is_ascii_digit());
        is_row.then(|| Row {
            number: number.to_owned(),
            text: text.to_owned(),
            done_by: places(done_by),
            fails_without: places(fails_without),
        })
    });
    rows.collect()
}

/// Returns the places between backquotes.
fn places(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns `true` if the item of a place is code, or a test that runs for every commit.
///
/// # Errors
///
/// The fault of a place that does not exist, or is not a test.
fn find(place: &str, is_test: bool) -> Result<bool, String> {
    let Some((file, item)) = place.rsplit_once("::") else {
        return Err(format!("{place}: no item named"));
    };
    let Ok(text) = fs::read_to_string(root().join(file)) else {
        return Err(format!("{place}: no such file"));
    };
    let defines = |line: &&str| {
        ["fn ", "const ", "static ", "struct ", "enum ", "macro_rules! "].iter().any(|kind| {
            line.split_once(kind).is_some_and(|(_, rest)| {
                let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
                name == Some(item)
            })
        })
    };
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(defines) else {
        return Err(format!("{place}: no such item"));
    };
    let attributes = lines[..at].iter().rev().take_while(|line| line.trim().starts_with("#["));
    let attributes: Vec<&str> = attributes.copied().collect();
    let has = |text: &str| attributes.iter().any(|line| line.contains(text));
    if is_test && !has("#[test]") {
        return Err(format!("{place}: not a test"));
    }
    Ok(!is_test || !has("#[ignore") || has("\"slow: "))
}

/// Requirements whose tests all build the library again: they do not run for every commit.
const TESTED_RARELY: [&str; 3] = ["I1", "I6", "I13"];

/// Returns the faults of a row.
fn faults(row: &Row) -> Vec<String> {
    let code = row.done_by.iter().map(|place| find(place, false));
    let tests: Vec<_> = row.fails_without.iter().map(|place| find(place, true)).collect();
    let often = tests.contains(&Ok(true));
    let mut faults: Vec<String> =
        code.chain(tests.iter().cloned()).filter_map(Result::err).collect();
    if !tests.is_empty() && often == TESTED_RARELY.contains(&&*row.number) {
        faults.push(format!("a test runs for every commit: {often}"));
    }
    faults
}

#[test]
fn everything_that_is_named_exists() {
    let faults: Vec<String> = rows()
        .iter()
        .flat_map(|row| faults(row).into_iter().map(|fault| format!("{}: {fault}", row.number)))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns the names of mutants that stand in a requirement's text: they have a table of their own.
fn slipped_in(text: &str, mutants: &[String]) -> Vec<String> {
    places(text).into_iter().filter(|name| mutants.contains(name)).collect()
}

#[test]
fn no_mutant_has_slipped_into_a_requirement() {
    let mutants = mutants::catalogue();
    for row in rows() {
        assert_eq!(slipped_in(&row.text, &mutants), [""; 0], "{}", row.number);
    }
    let known = ["a-mutant".to_owned()];
    assert_eq!(slipped_in("`a-mutant`, fork starts fresh", &known), ["a-mutant"]);
}

#[test]
fn every_requirement_that_is_built_has_a_test_and_none_is_missing() {
    let rows = rows();
    for number in 1..=14 {
        assert!(rows.iter().any(|row| row.number == format!("R{number}")), "R{number} is missing");
    }
    for row in &rows {
        assert_eq!(row.done_by.is_empty(), row.fails_without.is_empty(), "{}", row.number);
    }
}

#[test]
fn what_does_not_exist_is_caught() {
    let file = "crates/percid-rules/src/space.rs";
    assert_eq!(find(&format!("{file}::select"), false), Ok(true));
    assert!(find(&format!("{file}::select"), true).is_err(), "not a test");
    assert!(find(&format!("{file}::selects"), false).is_err(), "no such item");
    assert!(find("crates/percid/src/none.rs::select", false).is_err(), "no such file");
    let child = "crates/percid-tracing/tests/suite/panic.rs::child";
    assert_eq!(find(child, true), Ok(false), "ignored");
    let row = |number: &str, tests: &[&str]| Row {
        number: number.to_owned(),
        text: String::new(),
        done_by: vec![format!("{file}::selects")],
        fails_without: tests.iter().map(|&test| test.to_owned()).collect(),
    };
    let often = "verify/requirements/src/lib.rs::what_does_not_exist_is_caught";
    assert_eq!(faults(&row("R0", &[child])).len(), 2, "no test runs for every commit");
    assert_eq!(faults(&row("R0", &[child, often])).len(), 1, "only the item is missing");
    assert_eq!(faults(&row("I1", &[often])).len(), 2, "it need not be an exception");
}
