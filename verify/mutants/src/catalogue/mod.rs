//! The catalogue: which mutants there are. One file of `catalogue/` for each room of the library.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use crate::instructions;
use crate::suite::Suite;

/// The required outcome of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// One of these suites must notice it. They are run in this order.
    Noticed(Vec<Suite>),
    /// No execution can distinguish it from the original; contains the argument.
    Equivalent(String),
    /// It changes nothing, so these suites must all pass: a negative control of the runner.
    Survives(Vec<Suite>),
}

/// A change of one place of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// The file of the catalogue, without its extension.
    pub room: String,
    /// Unique in the catalogue.
    pub name: String,
    /// The file that is changed, from the root of the project.
    pub file: String,
    /// A text that occurs in the file exactly once.
    pub before: String,
    /// The text that replaces it.
    pub after: String,
    /// The consequence of the change, in a sentence.
    pub breaks: String,
    /// The required outcome.
    pub expectation: Expectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Room {
    mutant: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    file: String,
    before: String,
    after: String,
    breaks: String,
    #[serde(default)]
    suites: Vec<String>,
    equivalent: Option<String>,
    #[serde(default)]
    control: bool,
}

/// Reads every file of a folder, in alphabetical order.
///
/// # Errors
///
/// Says which file or mutant is wrong, and how.
pub fn read(folder: &Path) -> Result<Vec<Mutant>, String> {
    let error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder).map_err(error)? {
        files.push(file.map_err(error)?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let room = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).map_err(error)?;
        all.extend(if file.ends_with(instructions::FILE) {
            instructions::read(&crate::root(), &text)?
        } else {
            parse(&room, &text)?
        });
    }
    check_names(&all)?;
    Ok(all)
}

/// Reads the text of one file.
///
/// # Errors
///
/// Says which mutant is wrong, and how.
pub fn parse(room: &str, text: &str) -> Result<Vec<Mutant>, String> {
    let entries: Room = toml::from_str(text).map_err(|error| format!("{room}: {error}"))?;
    entries.mutant.into_iter().map(|entry| mutant(room, entry)).collect()
}

fn mutant(room: &str, entry: Entry) -> Result<Mutant, String> {
    let Entry { name, file, before, after, breaks, suites, equivalent, control } = entry;
    let wrong = |what: &str| Err(format!("{room}/{name}: {what}"));
    if before.is_empty() || before == after {
        return wrong("`before` must be a text, and another one than `after`");
    }
    let suites = match suites.iter().map(|text| Suite::parse(text)).collect::<Result<Vec<_>, _>>() {
        Ok(suites) => suites,
        Err(error) => return wrong(&error),
    };
    let expectation = match (equivalent, suites.is_empty(), control) {
        (Some(argument), true, false) => Expectation::Equivalent(argument),
        (None, false, false) => Expectation::Noticed(suites),
        (None, false, true) => Expectation::Survives(suites),
        _ => return wrong("needs either `suites` or `equivalent`, and a control needs suites"),
    };
    Ok(Mutant { room: room.to_owned(), name, file, before, after, breaks, expectation })
}

fn check_names(all: &[Mutant]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    match all.iter().find(|mutant| !names.insert(&mutant.name)) {
        Some(twice) => Err(format!("{}/{}: this name is taken", twice.room, twice.name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod whole;

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "[[mutant]]\nname = 'n'\nfile = 'f'\nbefore = 'a'\nafter = 'b'\n\
                         breaks = 'everything'\n";

    #[test]
    fn an_entry_has_suites_or_an_argument() {
        let read = |rest: &str| parse("room", &format!("{ENTRY}{rest}"));
        let noticed = read("suites = ['lib cell::']").expect("an entry");
        assert!(
            matches!(&noticed[0].expectation, Expectation::Noticed(suites) if suites.len() == 1)
        );
        let same = read("equivalent = 'because'").expect("an entry");
        assert_eq!(same[0].expectation, Expectation::Equivalent("because".to_owned()));
        let control = read("suites = ['lib']\ncontrol = true").expect("an entry");
        assert!(matches!(control[0].expectation, Expectation::Survives(_)));
        for wrong in [
            "",
            "control = true",
            "equivalent = 'because'\nsuites = ['lib']",
            "suites = ['nothing that is known']",
            "suite = ['lib']",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_unique() {
        let one = parse("room", &format!("{ENTRY}suites = ['lib']")).expect("an entry");
        assert!(check_names(&one).is_ok());
        assert!(check_names(&[one.clone(), one].concat()).is_err());
    }
}
