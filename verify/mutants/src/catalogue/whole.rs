//! The catalogue itself: what can be said of it without trying a mutant.

use crate::catalogue::{self, Mutant};
use crate::root;
use crate::tree::replace_once;

fn all() -> Vec<Mutant> {
    catalogue::read(&root().join("verify/mutants/catalogue")).expect("the catalogue")
}

/// A change of a text must report at once which mutants must be updated.
#[test]
fn every_mutant_applies() {
    let mut stale = Vec::new();
    for Mutant { room, name, file, before, after, .. } in &all() {
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        if let Err(times) = replace_once(&text, before, after) {
            stale.push(format!("{room}/{name}: {file} has its text {times} times, not once"));
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

#[test]
fn every_mutant_says_what_it_breaks() {
    let silent: Vec<_> = all().into_iter().filter(|it| !it.breaks.ends_with('.')).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}
