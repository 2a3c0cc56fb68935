//! The clients' shares of time are measured, and the share is zero if nothing counts.

use std::process::Command;

use serde_json::Value;

fn perf_records() -> bool {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "true"])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Returns the figures of all clients, measured for `seconds`; `None` if perf may not record.
fn measured(seconds: &str) -> Option<Vec<Value>> {
    if !perf_records() {
        percid_skips::not_checked("shares of clients", "perf is missing, or may not record");
        return None;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_percid-metrics-share"))
        .args(["--seconds", seconds, "--rounds", "1", "--json"])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    Some(report["results"].as_array().expect("results").clone())
}

fn share(row: &Value) -> f64 {
    row["share"].as_f64().expect("a share")
}

fn requests_per_second(row: &Value) -> f64 {
    row["requests_per_second"].as_f64().expect("a number")
}

#[test]
#[ignore = "slow: five servers, a second each"]
fn every_client_is_measured() {
    let Some(results) = measured("1") else { return };
    let clients: Vec<_> =
        results.iter().map(|row| row["client"].as_str().expect("a name")).collect();
    let expected = [
        "none",
        "percid",
        "metrics-exporter-prometheus",
        "prometheus-client",
        "prometheus-client-over-percid",
    ];
    assert_eq!(clients, expected);
    for row in &results {
        assert!((0.0..1.0).contains(&share(row)) && requests_per_second(row) > 0.0, "{row}");
    }
}

/// Without frame pointers, as tests are built, only samples in the functions themselves are seen.
#[test]
#[ignore = "long: a measurement, which needs a machine that does nothing else"]
fn every_client_has_a_share_and_none_has_next_to_nothing() {
    let Some(results) = measured("2") else { return };
    let of_clients: f64 = results[1..].iter().map(share).sum();
    let of_none = share(&results[0]);
    assert!(of_clients > 4.0 * of_none && of_none < 0.02, "{results:?}");
    assert!(results[1..].iter().all(|row| share(row) > 0.0), "{results:?}");
}

#[test]
fn a_client_that_is_not_there_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_percid-metrics-share"))
        .args(["serve", "statsd"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no client statsd: one of none, percid, "), "{said}");
}

#[test]
fn help_is_given_and_what_is_wrong_is_answered_by_it() {
    for (argument, status) in [("--help", 0), ("--rounds", 2), ("client", 2)] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_percid-metrics-share"));
        let output = program.arg(argument).output().expect("it starts");
        assert_eq!(output.status.code(), Some(status), "{argument}");
        let said = if status == 0 { output.stdout } else { output.stderr };
        assert!(
            String::from_utf8_lossy(&said).starts_with("usage: percid-metrics-share"),
            "{argument}"
        );
    }
}
