//! The output of `--version`, which identifies the build.

use serde::Serialize;

use crate::exit::Failure;
use crate::output;

/// A program's version.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// The program's name.
    pub name: &'static str,
    /// Its package's version.
    pub number: &'static str,
    /// Its package's features, each with `true` if it was built in.
    pub features: &'static [(&'static str, bool)],
}

/// The commit that was checked out at the build, if the program was built in percid's repository.
/// Uncommitted changes are not recorded.
const COMMIT: Option<&str> = option_env!("PERCID_COMMIT");
const TARGET: &str = env!("PERCID_TARGET");

/// The document of `--version --json`.
#[derive(Debug, Serialize)]
struct Document {
    name: &'static str,
    version: &'static str,
    commit: Option<&'static str>,
    target: &'static str,
    features: Vec<&'static str>,
}

impl Version {
    /// Returns the text of `--version` after the program's name.
    pub fn long(&self) -> String {
        let features = self.enabled();
        let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
        let commit = COMMIT.unwrap_or("unknown: not built in percid's repository");
        format!("{}\ncommit: {commit}\ntarget: {TARGET}\nfeatures: {features}", self.number)
    }

    /// Prints the same as one JSON document on stdout.
    ///
    /// # Errors
    ///
    /// Fails if stdout cannot be written.
    pub fn print_json(&self) -> Result<(), Failure> {
        output::print_json(&Document {
            name: self.name,
            version: self.number,
            commit: COMMIT,
            target: TARGET,
            features: self.enabled(),
        })
    }

    fn enabled(&self) -> Vec<&'static str> {
        self.features.iter().filter(|(_, enabled)| *enabled).map(|(name, _)| *name).collect()
    }
}
