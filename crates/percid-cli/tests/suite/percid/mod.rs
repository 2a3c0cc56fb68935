//! Execution of the program.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod page;
pub(crate) mod running;
pub(crate) mod wait;

use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Returns the program with arguments, without a requested ID source, with empty input and captured
/// output. Other tests keep the machine busy, so everything is measured and printed, however long
/// it takes: no test judges times.
pub(crate) fn command(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_percid"));
    command.args(arguments.split_whitespace()).env_remove("PERCID_SOURCE");
    command.env("PERCID_BUSY", "ignore");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end. A program that hangs is killed after minutes, and the test fails.
pub(crate) fn bounded(command: &mut Command) -> Output {
    wait::ended(command.spawn().expect("the program starts"))
}

/// Runs the program to a successful end and parses the only JSON document on stdout.
pub(crate) fn json(arguments: &str) -> Value {
    let output = bounded(&mut command(arguments));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {said}");
    document(&output)
}

/// Parses the only JSON document on stdout. Anything after it is an error.
pub(crate) fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON document")
}

/// Returns the items of a list.
pub(crate) fn list<'a>(document: &'a Value, key: &str) -> &'a [Value] {
    document[key].as_array().unwrap_or_else(|| panic!("{key} is a list"))
}

/// Returns the number of CPUs that the program may use, by its own report.
pub(crate) fn allowed(document: &Value) -> u64 {
    document["machine"]["allowed_count"].as_u64().expect("a number of allowed CPUs")
}

/// Returns the ID sources of this machine, by the program's own report.
pub(crate) fn available_sources(document: &Value) -> Vec<&str> {
    let sources = list(&document["machine"], "sources").iter();
    sources
        .filter(|source| source["available"] == true)
        .filter_map(|source| source["source"].as_str())
        .collect()
}
