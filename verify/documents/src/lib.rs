//! Runs the commands that percid's documents print, exactly as printed, and checks their links.

pub mod command;
pub mod document;
pub mod english;
pub mod link;
pub mod session;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

/// Returns the project's root folder.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("verify/documents lies two folders down").to_path_buf()
}

/// The steps of the checks. A command that stands in them is run by them.
pub const STEPS: &str = concat!(
    include_str!("../../../.ci/run"),
    include_str!("../../../.ci/steps.sh"),
    include_str!("../../../.ci/long.sh"),
);
