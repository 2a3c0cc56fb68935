//! The simulations that a reader of the page requests.

use std::collections::BTreeMap;
use std::fmt;

use percid_sim::comparison::{self, Comparison, Row};
use percid_sim::machine::Machine;
use percid_sim::policies::{self, PolicySpec};
use percid_sim::results::Results;
use percid_sim::run_control::RunControl;
use percid_sim::workload::Workload;
use serde::Deserialize;

/// The maximum number of runs of a policy: a browser that computes longer is better stopped and the
/// command used.
const MAX_SEEDS: u64 = 1000;

/// A request of the page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    machine: String,
    workload: String,
    policies: Vec<String>,
    /// Parameters of the workload and numbers of the machine.
    set: BTreeMap<String, f64>,
    seeds: u64,
    seed: u64,
}

/// A comparison of policies that is simulated policy by policy, so that the first results are seen
/// early.
///
/// ```
/// use percid_sim::run_control::RunControl;
/// use percid_sim_page::Session;
///
/// let request = r#"{
///     "machine": "epyc-9654", "workload": "container", "policies": ["per-cpu", "linux-6.4"],
///     "set": {"duration_ms": 20}, "seeds": 1, "seed": 1
/// }"#;
/// let mut session = Session::new(request)?;
/// while session.step(&RunControl::default())? {}
/// assert!(session.document().contains("\"interrupted\": false"));
///
/// let error = Session::new(&request.replace("linux-6.4", "linux-1.0")).unwrap_err();
/// assert!(error.starts_with("policy linux-1.0: expected one of linux-6.3, "));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct Session {
    machine: Machine,
    workload: Workload,
    policies: Vec<&'static PolicySpec>,
    seeds: u64,
    seed: u64,
    /// The rows of the policies that are done.
    rows: Vec<Row>,
}

impl Session {
    /// Creates the session that a JSON document describes: `machine`, `workload`, `policies`
    /// (names), `set` (parameters of the workload or numbers of the machine, and their values),
    /// `seeds` (1 to 1000) and `seed`.
    ///
    /// # Errors
    ///
    /// Returns a sentence for the reader that names the expected values.
    pub fn new(request: &str) -> Result<Session, String> {
        let request: Request =
            serde_json::from_str(request).map_err(|error| format!("request: {error}"))?;
        let Request { machine, workload, policies, set, seeds, seed } = request;
        let mut machine = Machine::preset(&machine)
            .ok_or_else(|| unknown("machine", &machine, Machine::presets()))?;
        let mut workload = Workload::preset(&workload)
            .ok_or_else(|| unknown("workload", &workload, Workload::presets()))?;
        for (name, value) in set {
            comparison::set(&mut machine, &mut workload, &name, value)
                .map_err(|error| format!("{name}: {error}"))?;
        }
        let named = |name: &String| {
            policies::find(name).ok_or_else(|| {
                unknown("policy", name, policies::ALL.iter().map(|policy| policy.name))
            })
        };
        let policies = policies.iter().map(named).collect::<Result<Vec<_>, _>>()?;
        if policies.is_empty() {
            return Err("policies: expected at least one".to_owned());
        }
        if !(1..=MAX_SEEDS).contains(&seeds) {
            return Err(format!("runs: expected 1 to {MAX_SEEDS}, found {seeds}"));
        }
        let session = Session { machine, workload, policies, seeds, seed, rows: Vec::new() };
        session.expected_events()?;
        Ok(session)
    }

    /// Returns the approximate number of events of all policies together: the final value of
    /// `RunControl::done`.
    ///
    /// # Errors
    ///
    /// Returns an error if the workload's numbers are inconsistent.
    pub fn expected_events(&self) -> Result<u64, String> {
        self.comparison(&self.policies).expected_events().map_err(sentence)
    }

    /// Simulates the next policy. Returns `false` if none is left.
    ///
    /// # Errors
    ///
    /// Returns an error if the workload's numbers are inconsistent.
    pub fn step(&mut self, control: &RunControl) -> Result<bool, String> {
        let Some(next) = self.policies.get(self.rows.len()) else {
            return Ok(false);
        };
        let mut rows = self.comparison(&[*next]).simulate(control).map_err(sentence)?;
        self.rows.append(&mut rows);
        Ok(self.rows.len() < self.policies.len())
    }

    /// Returns the results so far: the JSON document of `percid sim run --json`, interrupted while
    /// policies are left.
    pub fn document(&self) -> String {
        let interrupted = self.rows.len() < self.policies.len();
        let comparison = self.comparison(&self.policies);
        let results = Results::new(&comparison, self.rows.clone(), interrupted);
        // Maps have strings as keys, and nothing else can fail.
        serde_json::to_string_pretty(&results).unwrap_or_default()
    }

    fn comparison<'a>(&'a self, policies: &'a [&'static PolicySpec]) -> Comparison<'a> {
        Comparison {
            machine: &self.machine,
            workload: &self.workload,
            sweeps: &[],
            policies,
            seeds: self.seeds,
            seed: self.seed,
            spans: 0,
        }
    }
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    format!("{what} {name}: expected one of {}", known.join(", "))
}

fn sentence(error: impl fmt::Display) -> String {
    error.to_string()
}
