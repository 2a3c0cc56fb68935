//! Runs one of the programs and reads what it printed.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use percid::Source;
use serde_json::Value;

/// The results of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Returns the one JSON document that a successful run printed.
    pub(crate) fn report(&self) -> Value {
        assert_eq!(self.status, 0, "{}", self.stderr);
        serde_json::from_str(&self.stdout).expect("one JSON document")
    }
}

/// Runs `program` with the source that is wished for; `None` for percid's choice.
pub(crate) fn run(program: &str, source: Option<Source>, arguments: &[&str]) -> Outcome {
    run_on(program, source, arguments, None)
}

/// Runs like [`run`], with a file for standard input.
pub(crate) fn run_on(
    program: &str,
    source: Option<Source>,
    arguments: &[&str],
    input: Option<&Path>,
) -> Outcome {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("PERCID_SOURCE");
    command.envs(source.map(|source| ("PERCID_SOURCE", source.to_string())));
    let input = input.map_or(Stdio::null(), |file| File::open(file).expect("the input").into());
    let output = command.stdin(input).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
    Outcome {
        status: output.status.code().unwrap_or_else(|| panic!("{program}: {}", output.status)),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Returns percid's choice, and every source that this machine has.
pub(crate) fn sources() -> Vec<Option<Source>> {
    let available = |source: &Source| source.prepare().is_ok();
    let every = Source::ALL.iter().copied().filter(available).map(Some);
    std::iter::once(None).chain(every).collect()
}
