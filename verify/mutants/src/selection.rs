//! The selection of mutants.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::catalogue::{Expectation, Mutant};

/// The mutants that the command line selects. Without a selection all are tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Mutants by name.
    pub names: Vec<String>,
    /// All of these files of the catalogue.
    pub rooms: Vec<String>,
    /// All of these files of the project.
    pub files: Vec<String>,
    /// All of the files that differ from this revision.
    pub since: Option<String>,
    /// This dozen of all: the first if 0, then the next, and from the beginning again.
    pub dozen: Option<usize>,
}

/// Number of mutants in a dozen.
const DOZEN: usize = 12;

impl Selection {
    fn is_empty(&self) -> bool {
        *self == Selection::default()
    }

    /// Returns what is selected: named first, then by room, by file, changed, and the dozen. The
    /// controls always belong to it, and come last.
    ///
    /// # Errors
    ///
    /// Says which name, room or file has no mutant, or which revision is not known.
    pub fn of<'a>(&self, all: &'a [Mutant], root: &Path) -> Result<Vec<&'a Mutant>, String> {
        let mut chosen: Vec<&Mutant> = Vec::new();
        for name in &self.names {
            chosen.extend(some(all, |mutant| mutant.name == *name).ok_or(unknown("mutant", name))?);
        }
        for room in &self.rooms {
            chosen.extend(some(all, |mutant| mutant.room == *room).ok_or(unknown("room", room))?);
        }
        for file in &self.files {
            let file = file.trim_start_matches("./");
            chosen.extend(some(all, |mutant| mutant.file == file).ok_or(unknown("file", file))?);
        }
        if let Some(revision) = &self.since {
            let changed = changed_since(root, revision)?;
            chosen.extend(all.iter().filter(|mutant| changed.contains(&mutant.file)));
        }
        if let Some(number) = self.dozen {
            chosen.extend(dozen(all, number));
        }
        if self.is_empty() {
            chosen.extend(all);
        }
        let (mut rest, mut seen) = (controls(all), BTreeSet::new());
        chosen.append(&mut rest);
        chosen.sort_by_key(|mutant| is_control(mutant));
        chosen.retain(|mutant| seen.insert(&mutant.name));
        Ok(chosen)
    }
}

fn unknown(kind: &str, name: &str) -> String {
    format!("there is no mutant of {kind} '{name}'; --list prints all")
}

fn some(all: &[Mutant], wanted: impl Fn(&Mutant) -> bool) -> Option<Vec<&Mutant>> {
    let found: Vec<&Mutant> = all.iter().filter(|mutant| wanted(mutant)).collect();
    (!found.is_empty()).then_some(found)
}

fn is_control(mutant: &Mutant) -> bool {
    matches!(mutant.expectation, Expectation::Survives(_))
}

fn controls(all: &[Mutant]) -> Vec<&Mutant> {
    all.iter().filter(|mutant| is_control(mutant)).collect()
}

/// Returns a dozen of the mutants that have suites.
fn dozen(all: &[Mutant], number: usize) -> Vec<&Mutant> {
    let tried: Vec<&Mutant> =
        all.iter().filter(|mutant| matches!(mutant.expectation, Expectation::Noticed(_))).collect();
    let first = (number * DOZEN).checked_rem(tried.len()).unwrap_or(0);
    tried.iter().cycle().skip(first).take(DOZEN.min(tried.len())).copied().collect()
}

fn changed_since(root: &Path, revision: &str) -> Result<BTreeSet<String>, String> {
    let mut git = Command::new("git");
    git.args(["diff", "--name-only", "-z", revision, "--"]).current_dir(root);
    let listing = git.output().map_err(|error| format!("git: {error}"))?;
    if !listing.status.success() {
        return Err(String::from_utf8_lossy(&listing.stderr).trim().to_owned());
    }
    let names = String::from_utf8_lossy(&listing.stdout).into_owned();
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::parse;

    fn catalogue(mutants: usize) -> Vec<Mutant> {
        let entry = |number: usize, rest: &str| {
            format!(
                "[[mutant]]\nname = 'm{number}'\nfile = 'f{}'\nbefore = 'a'\nafter = 'b'\n\
                 breaks = 'all'\nsuites = ['lib']\n{rest}\n",
                number % 2
            )
        };
        let mut text: String = (0..mutants).map(|number| entry(number, "")).collect();
        text += &entry(mutants, "control = true");
        parse("room", &text).expect("a catalogue")
    }

    fn names(selection: Selection, all: &[Mutant]) -> Vec<String> {
        let chosen = selection.of(all, Path::new(".")).expect("a selection");
        chosen.into_iter().map(|mutant| mutant.name.clone()).collect()
    }

    #[test]
    fn a_control_comes_with_every_selection() {
        let all = catalogue(3);
        assert_eq!(names(Selection::default(), &all), ["m0", "m1", "m2", "m3"]);
        let one = Selection { names: vec!["m2".to_owned()], ..Selection::default() };
        assert_eq!(names(one, &all), ["m2", "m3"]);
        let file = Selection { files: vec!["./f0".to_owned()], ..Selection::default() };
        assert_eq!(names(file, &all), ["m0", "m2", "m3"]);
        let unknown = Selection { rooms: vec!["attic".to_owned()], ..Selection::default() };
        assert!(unknown.of(&all, Path::new(".")).is_err_and(|why| why.contains("attic")));
    }

    #[test]
    fn dozens_go_round() {
        let all = catalogue(30);
        let dozen = |number| Selection { dozen: Some(number), ..Selection::default() };
        assert_eq!(names(dozen(0), &all)[..2], ["m0", "m1"]);
        assert_eq!(names(dozen(2), &all)[..7], ["m24", "m25", "m26", "m27", "m28", "m29", "m0"]);
        assert_eq!(names(dozen(5), &all)[0], "m0");
        assert_eq!(names(dozen(2), &all).len(), DOZEN + 1);
    }
}
