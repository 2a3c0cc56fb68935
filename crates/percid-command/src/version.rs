//! What `--version` says: enough to know what was built.

use serde::Serialize;

use crate::exit::Failure;
use crate::output;

/// A program's version.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// The program.
    pub name: &'static str,
    /// Its package's version.
    pub number: &'static str,
    /// Its package's features, and whether it was built with them.
    pub features: &'static [(&'static str, bool)],
}

/// The commit that was checked out when this was built, if it was built in percid's repository. What
/// was changed since that commit does not show.
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
    /// What `--version` prints behind the program's name.
    pub fn long(&self) -> String {
        let features = self.enabled();
        let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
        let commit = COMMIT.unwrap_or("unknown: not built in percid's repository");
        format!("{}\ncommit: {commit}\ntarget: {TARGET}\nfeatures: {features}", self.number)
    }

    /// The same as one JSON document on stdout.
    ///
    /// # Errors
    ///
    /// stdout cannot be written.
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
