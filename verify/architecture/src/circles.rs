//! Groups of files that use each other, also through others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::modules::Arrows;

/// Returns the groups of two and more files that reach each other.
pub(crate) fn circles<'a>(arrows: &Arrows<'a>) -> Vec<BTreeSet<&'a Path>> {
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        arrows.keys().map(|&file| (file, reached(arrows, file))).collect();
    let mut circles = Vec::new();
    for (&file, reaches) in &reached {
        let back = |other: &&Path| reached.get(*other).is_some_and(|files| files.contains(file));
        let circle: BTreeSet<&Path> = reaches.iter().copied().filter(back).collect();
        // Each file of a circle reaches itself; the first one tells of it.
        if circle.first() == Some(&file) && circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles
}

fn reached<'a>(arrows: &Arrows<'a>, from: &Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        for &next in arrows.get(file).into_iter().flat_map(|uses| uses.keys()) {
            if reached.insert(next) {
                waiting.push(next);
            }
        }
    }
    reached
}
