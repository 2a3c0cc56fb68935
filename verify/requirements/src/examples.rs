//! Checks that every public item of the libraries has an example, which their doc tests then run.
//!
//! A `pub` item of theirs is reachable, since the lint `unreachable_pub` warns of others.
//! Enumeration variants, fields and trait implementations are shown by the examples of their types.

use std::fs;
use std::path::{Path, PathBuf};

use crate::root::root;

/// The libraries, by their folders.
const LIBRARIES: [&str; 2] = ["crates/percid/src", "crates/percid-numa/src"];

/// Files that are left out, as their modules are hidden: hooks for proofs, and for the C interface.
const HIDDEN: [&str; 3] = ["testing.rs", "capi.rs", "untyped.rs"];

/// Folders that are skipped: items that other systems lack have their example in the main code.
const ABSENT: &str = "elsewhere";

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of sources");
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            if !path.ends_with(ABSENT) {
                found.extend(files(&path));
            }
        } else if path.extension().is_some_and(|it| it == "rs")
            && !HIDDEN.iter().any(|name| path.ends_with(name))
        {
            found.push(path);
        }
    }
    found
}

/// Returns the kind and the name of the public item that begins in a line, if one does.
fn item(line: &str) -> Option<String> {
    let words = line.trim_start().strip_prefix("pub ")?.split_whitespace();
    let mut words = words.skip_while(|word| ["const", "unsafe"].contains(word));
    let kind = words.next()?;
    let kinds = ["fn", "struct", "enum", "trait", "type"];
    let name = words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    kinds.contains(&kind).then(|| format!("{kind} {name}"))
}

/// Returns the public items of a source without an example.
fn without_example(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().take_while(|line| *line != "mod tests {").collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(item) = item(line) else { continue };
        let above = lines[..index].iter().rev().map(|line| line.trim_start());
        let above: Vec<_> =
            above.take_while(|line| line.starts_with("///") || line.starts_with("#[")).collect();
        let is_hidden = above.contains(&"#[doc(hidden)]");
        if !is_hidden && !above.iter().any(|line| line.starts_with("/// ```")) {
            found.push(item);
        }
    }
    found
}

#[test]
fn every_public_item_has_an_example() {
    let mut missing = Vec::new();
    for file in LIBRARIES.iter().flat_map(|library| files(&root().join(library))) {
        let text = fs::read_to_string(&file).expect("a readable source");
        missing.extend(without_example(&text).iter().map(|it| format!("{}: {it}", file.display())));
    }
    assert!(missing.is_empty(), "without an example:\n{}", missing.join("\n"));
}

#[test]
fn an_item_without_an_example_is_found() {
    let text = "
/// ```
/// one();
/// ```
pub fn one() {}

/// Says two.
#[inline]
pub const fn two() {}

pub(crate) fn three() {}
#[doc(hidden)]
pub enum Four {}
    pub unsafe fn five(&self) {}
mod tests {
pub struct Six;
";
    assert_eq!(without_example(text), ["fn two", "fn five"]);
}
