//! The root files of all libraries and programs of the project.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the root of the project.
pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a folder").to_owned()
}

/// Returns the root files of the crates in some folders of the project.
pub(crate) fn roots(folders: &[&str]) -> Vec<PathBuf> {
    let crates = folders.iter().flat_map(|folder| entries(&project().join(folder)));
    crates.flat_map(|path| roots_of(&path.join("src"))).collect()
}

fn roots_of(src: &Path) -> Vec<PathBuf> {
    let programs = entries(&src.join("bin"));
    let mut roots = vec![src.join("lib.rs"), src.join("main.rs")];
    roots.extend(programs.iter().map(|program| program.join("main.rs")));
    roots.extend(programs.into_iter().filter(|program| program.is_file()));
    roots.retain(|root| root.exists());
    roots
}

/// Returns the paths in a folder in the order of their names; none if there is no such folder.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}
