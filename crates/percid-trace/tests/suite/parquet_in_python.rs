//! Our files in the hands of pandas, Polars and DuckDB, and what they write back. Python is the one
//! that `verify/perfetto/install.sh` installs, or `python3` if it has what is needed.

// On big-endian machines Parquet is not supported.
#![cfg(target_endian = "little")]

use crate::schedule;

use std::fs::File;
use std::path::Path;
use std::process::Command;

use percid_trace::event::What;
use percid_trace::{Trace, parquet};

fn python() -> Command {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/perfetto/bin/python");
    Command::new(if installed.exists() { installed } else { "python3".into() })
}

/// Returns `true` if Python has these modules. If not, that is told; if they are
/// required, the test fails.
fn python_has(modules: &str) -> bool {
    let import = python().args(["-c", &format!("import {modules}")]).output();
    let there = import.is_ok_and(|output| output.status.success());
    let required = std::env::var_os("PERCID_TRACE").is_some_and(|wish| wish == "require");
    assert!(there || !required, "Python has not all of {modules}, and they are required");
    if !there {
        percid_skips::not_checked("Parquet in Python", &format!("it has not all of {modules}"));
    }
    there
}

/// Stores a trace, runs a script of Python with the paths of the file and of another one, and reads
/// the other one.
fn through(trace: &Trace, name: &str, script: &str) -> Trace {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let paths = ["ours", "theirs"].map(|whose| folder.join(format!("{name}-{whose}.parquet")));
    let file = File::create(&paths[0]).expect("a file");
    parquet::write(trace, file).expect("the disk takes it");
    let output = python().args(["-c", script]).args(&paths).output().expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    parquet::read(File::open(&paths[1]).expect("they wrote it")).expect("a trace")
}

/// The trace with its switches only.
fn switches(trace: &Trace) -> Trace {
    let mut trace = trace.clone();
    trace.events.retain(|event| matches!(event.what, What::Switch { .. }));
    trace
}

fn check(name: &str, everything: &str, filtered: &str) {
    let trace = schedule::plausible(9, 30_000);
    let back = through(&trace, name, everything);
    assert_eq!(trace.first_difference(&back), None);
    let back = through(&trace, &format!("{name}-switches"), filtered);
    assert_ne!(trace.first_difference(&back), None);
    assert_eq!(switches(&trace).first_difference(&back), None);
    let nothing = filtered.replace("'switch'", "'none'");
    assert!(nothing != filtered);
    assert!(through(&trace, &format!("{name}-nothing"), &nothing).events.is_empty());
}

#[test]
fn pandas_reads_and_writes_traces() {
    if python_has("pandas, pyarrow") {
        let head = "import pandas, sys; events = pandas.read_parquet(sys.argv[1]); ";
        let everything = format!("{head} events.to_parquet(sys.argv[2])");
        let filtered = format!(
            "{head} events[events.event == 'switch'].to_parquet(sys.argv[2], compression='gzip')"
        );
        check("pandas", &everything, &filtered);
    }
}

#[test]
fn polars_reads_and_writes_traces() {
    if python_has("polars") {
        let head = "import polars, sys; events = polars.read_parquet(sys.argv[1]); ";
        let everything = format!("{head} events.write_parquet(sys.argv[2], compression='lz4')");
        let filtered = format!(
            "{head} events = events.select(sorted(events.columns));
events.filter(polars.col('event') == 'switch').write_parquet(sys.argv[2])"
        );
        check("polars", &everything, &filtered);
    }
}

#[test]
fn duckdb_reads_and_writes_traces() {
    if python_has("duckdb") {
        let copy = |filter: &str| {
            format!(
                "import duckdb, sys
duckdb.sql(f\"copy (select 1 as mine, * from '{{sys.argv[1]}}' {filter}) to '{{sys.argv[2]}}'\")"
            )
        };
        check("duckdb", &copy(""), &copy("where event = 'switch'"));
    }
}
