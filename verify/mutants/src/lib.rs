//! A catalogue of small faults (*mutants*) in percid's protocols, each with the suites of tests
//! that must notice it. The runner puts one at a time into a copy of the project and runs its
//! suites.
//!
//! A mutant that no suite notices has *survived*: either a test is missing, or the changed text is
//! not needed, or no execution can distinguish it, and the catalogue contains the argument.

pub mod catalogue;
pub mod instructions;
pub mod options;
pub mod outcome;
pub mod process;
pub mod selection;
pub mod suite;
pub mod tree;
pub mod trial;

use std::path::{Path, PathBuf};

/// Returns the folder of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").components().collect()
}
