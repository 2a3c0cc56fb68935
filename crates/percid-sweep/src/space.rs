//! Parameter spaces, as text that any program can write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A parameter space: all combinations of each grid, with their seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// The grids. Combinations that are in several grids are simulated once.
    pub grids: Vec<Grid>,
    /// The seeds of each combination.
    pub seeds: Seeds,
    /// The WebAssembly modules among the policies, so that no store has runs of two modules with one
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleHash>,
}

/// A policy that is a WebAssembly module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleHash {
    /// The policy's name.
    pub name: String,
    /// SHA-256 of the module, in hexadecimal digits.
    pub sha256: String,
}

/// All combinations of machines, workloads, policies and parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// The machines.
    pub machines: Vec<Named>,
    /// The workloads.
    pub workloads: Vec<Named>,
    /// Names of policies, of kernel releases with a policy, or of modules.
    pub policies: Vec<String>,
    /// The kind of memory that bursts write to; the workload's if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Parameters of the workloads, or numbers of the machines, with their values.
    #[serde(default)]
    pub parameters: BTreeMap<String, Vec<f64>>,
}

/// A machine or a workload with the text of its file, so that it is the same on every computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Name in rows and folders.
    pub name: String,
    /// The text of its file.
    pub text: String,
}

/// The seeds of each combination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seeds {
    /// The first seed; the others are consecutive, unless there is a list.
    pub first: u64,
    /// Number of seeds, at least one.
    pub count: u64,
    /// All seeds, in the order of their rows, if they are not consecutive; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<u64>,
    /// Rule for more seeds, until the mean is known precisely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
}

/// The rule that ends the seeds of a combination.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Maximum of half of the 95 % interval of the mean of `ns_per_burst`, as a share of that mean.
    /// The interval is computed with Student's distribution.
    pub interval: f64,
    /// Maximum number of seeds, for any interval.
    pub most: u64,
}

impl Seeds {
    /// Returns the maximum number of seeds of a combination.
    pub fn most(&self) -> u64 {
        self.until.map_or(self.count, |until| until.most)
    }
}
