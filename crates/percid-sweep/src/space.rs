//! What is simulated, as text that any program can write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A parameter space: all combinations of each grid, and how often each is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// The grids. What is in several of them is simulated once.
    pub grids: Vec<Grid>,
    /// The seeds of each combination.
    pub seeds: Seeds,
}

/// Every combination of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// The machines.
    pub machines: Vec<Named>,
    /// The workloads.
    pub workloads: Vec<Named>,
    /// The policies' names, or releases of kernels that have one.
    pub policies: Vec<String>,
    /// What bursts write to; what the workload says, if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Parameters of the workloads, or numbers of the machines, with their values.
    #[serde(default)]
    pub parameters: BTreeMap<String, Vec<f64>>,
}

/// A machine or a workload, with its file, so that it means the same on every computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The name by which rows and folders call it.
    pub name: String,
    /// The text of its file.
    pub text: String,
}

/// Which seeds each combination is run with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seeds {
    /// The first one; the others follow it.
    pub first: u64,
    /// How many, at least one.
    pub count: u64,
    /// More than those, until the mean is known well enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
}

/// When there are enough seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Half of the 95 % interval of the mean of `ns_per_burst`, as a share of that mean, is at most
    /// this. Student's distribution says how wide the interval is.
    pub interval: f64,
    /// No more seeds than this, whatever the interval is.
    pub most: u64,
}

impl Seeds {
    /// How many seeds a combination has at most.
    pub fn most(&self) -> u64 {
        self.until.map_or(self.count, |until| until.most)
    }
}
