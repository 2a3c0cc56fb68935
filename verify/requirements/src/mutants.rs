//! Checks the table of the mutants that guard a requirement.

use std::collections::BTreeMap;
use std::fs;

use percid_mutants::catalogue;

use crate::root::root;

/// Returns the mutants of each requirement. A name that ends with `*` matches all names with that
/// beginning.
fn guarded() -> BTreeMap<String, Vec<String>> {
    let text =
        fs::read_to_string(root().join("docs/contributing/requirements.md")).expect("the document");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, mutants, _] = cells[..] else { return None };
        let names: Vec<_> = mutants.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (!names.is_empty()).then(|| (number.to_owned(), names))
    });
    rows.collect()
}

/// Returns the names that match no mutant.
fn unknown<'a>(names: &'a [String], known: &[String]) -> Vec<&'a str> {
    let is_known = |name: &&String| match name.strip_suffix('*') {
        Some(start) => known.iter().any(|other| other.starts_with(start)),
        None => known.contains(name),
    };
    names.iter().filter(|name| !is_known(name)).map(String::as_str).collect()
}

/// Names of all mutants.
pub(crate) fn catalogue() -> Vec<String> {
    let all = catalogue::read(&root().join("verify/mutants/catalogue")).expect("the catalogue");
    all.into_iter().map(|mutant| mutant.name).collect()
}

#[test]
fn every_mutant_that_is_named_is_in_the_catalogue() {
    let known = catalogue();
    for (number, names) in guarded() {
        assert_eq!(unknown(&names, &known), [""; 0], "{number}");
    }
}

#[test]
fn every_requirement_of_a_protocol_has_mutants() {
    let guarded = guarded();
    for number in ["R2", "R3", "R7", "R10", "R11", "R12", "R13", "P0", "P1", "P2", "P3", "P4", "P5"]
        .into_iter()
        .chain(["M1", "M2", "M3", "S1", "S2", "S3", "S4", "N7", "N11", "N19", "N20"])
    {
        assert!(guarded.contains_key(number), "{number}");
    }
}

#[test]
fn a_mutant_that_is_not_there_is_caught() {
    let known = ["a/one".to_owned(), "two".to_owned()];
    let names = ["a/*", "two", "b/*", "tw"].map(str::to_owned);
    assert_eq!(unknown(&names, &known), ["b/*", "tw"]);
}
