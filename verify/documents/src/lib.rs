//! Runs the commands that percid's documents print, exactly as printed, and checks their links.

pub mod command;
pub mod document;
pub mod link;
pub mod session;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

/// The project's root folder.
pub fn root() -> PathBuf {
    // Asked of the Cargo that runs this: what is built in a clone shares its folder of built files
    // with the project, and stays there.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    here.ancestors().nth(2).expect("verify/documents lies two folders down").to_path_buf()
}

/// The steps of the checks. A command that stands in them is run by them.
pub const STEPS: &str = include_str!("../../../.ci/run");
