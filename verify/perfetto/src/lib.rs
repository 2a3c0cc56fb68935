//! Traces in Perfetto's own trace processor: the results of queries.
//!
//! The trace processor is the engine of Perfetto's web interface, run by node; `install.sh`
//! installs it. `PERCID_TRACE=require` fails if it is missing; otherwise tests report that nothing
//! was checked.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The trace processor.
#[derive(Debug)]
pub struct TraceProcessor {
    python: PathBuf,
}

/// The result of a query: the values of each row.
pub type Rows = Vec<Vec<Value>>;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

impl TraceProcessor {
    /// Returns the trace processor, if it is installed. Returns `None`, which the output reports,
    /// if it is neither installed nor required.
    ///
    /// # Panics
    ///
    /// Panics if it is required and not installed.
    pub fn find() -> Option<TraceProcessor> {
        let python = Path::new(HERE).join("../../target/perfetto/bin/python");
        let node = Command::new("node").arg("--version").output().is_ok();
        let missing = match (python.exists(), node) {
            (true, true) => return Some(TraceProcessor { python }),
            (false, _) => {
                "Perfetto's trace processor is not installed (verify/perfetto/install.sh)"
            }
            (true, false) => "node is not installed",
        };
        let required = std::env::var_os("PERCID_TRACE").is_some_and(|wish| wish == "require");
        assert!(!required, "{missing}, and required");
        percid_skips::not_checked("traces in Perfetto", missing);
        None
    }

    /// Opens a trace and runs queries in the trace processor's SQL. Takes seconds. An error is the
    /// trace processor's message about the trace, or about a query.
    ///
    /// # Panics
    ///
    /// Panics if its answer cannot be read: that is a failed test.
    pub fn query(&self, trace: &Path, queries: &[&str]) -> Result<Vec<Rows>, String> {
        let mut command = Command::new(&self.python);
        command.arg(Path::new(HERE).join("query.py")).arg(Path::new(HERE).join("bridge.js"));
        let output = command.arg(trace).args(queries).output().expect("python starts");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(serde_json::from_slice(&output.stdout).expect("the answer is JSON"))
    }
}
