//! Ctrl-C: the output contains the measurements so far, and the exit status is 130.

use crate::percid;

use std::io::BufReader;
use std::process::Output;
use std::thread;
use std::time::Duration;

use percid::running::{interrupted, reads, start, wait_until_it_listens};
use percid::wait::{ended, until, until_enough};
use percid::{document, list};
use serde_json::Value;

fn interrupted_after(arguments: &str, pause: Duration) -> Output {
    let child = start(arguments);
    wait_until_it_listens(&child);
    thread::sleep(pause);
    interrupted(child)
}

/// Returns the document of a run that was interrupted late enough for rows of this name.
fn interrupted_with(arguments: &str, rows: &str) -> Value {
    until_enough(arguments, |pause| {
        let document = document(&interrupted_after(arguments, pause));
        assert_eq!(document["interrupted"], true);
        let is_there = document[rows].as_array().is_some_and(|rows| !rows.is_empty());
        is_there.then_some(document)
    })
}

#[test]
fn ops_prints_what_was_measured() {
    let document = interrupted_with("bench ops --seconds 600 --json", "results");
    assert_eq!(document["sums_exact"], true);
}

#[test]
fn mask_prints_what_was_measured() {
    let document = interrupted_with("bench mask --seconds 600 --json", "mask");
    assert_eq!(document["mask_exact"], true);
}

#[test]
fn intermittent_prints_what_was_measured() {
    let arguments = "bench intermittent --delay-ms 10000 --warmup 10 --json";
    let document = interrupted_with(arguments, "rows");
    // Far fewer than the bursts of all: each thread has had at most one turn, unless this process
    // could not send Ctrl-C during pauses of ten seconds.
    let threads = percid::allowed(&document);
    for row in list(&document, "rows") {
        let timed = row["bursts_timed"].as_u64().expect("a number");
        assert!((1..5 * threads).contains(&timed), "{row}");
    }
}

#[test]
fn the_published_benchmark_prints_what_was_finished() {
    // A repetition takes minutes, because of the pauses: none is finished.
    let arguments = "bench intermittent --published --delay-ms 10000 --warmup 10 --json";
    let mut child = start(arguments);
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    assert!(reads(&mut stderr, "measuring takes about"), "forecasts are finished");
    if percid::allowed(&percid::json("info --json")) == 1 {
        // There is no second CPU to take turns with.
        assert!(ended(child).status.success());
        return;
    }
    let document = document(&interrupted(child));
    assert_eq!(document["interrupted"], true);
    // The forecasts were computed before, and are printed.
    let rows = list(&document["published"], "rows");
    assert!(!rows.is_empty());
    for row in rows {
        assert_eq!(row["repetitions"], 0, "{row}");
        assert!(row["measured_ns"].is_null() && row["forecast_error"].is_null(), "{row}");
        assert!(row["forecast_ns"].as_f64() > Some(0.0), "{row}");
    }
}

/// Interrupts at once: the complete runs would take minutes.
#[test]
fn at_once_is_early_enough() {
    for arguments in [
        "bench --seconds 600 --json",
        "bench ops --seconds 600 --json",
        "bench mask --seconds 600 --json",
        "bench intermittent --delay-ms 10000 --bursts 100 --json",
        "bench intermittent --published --repetitions 1000 --json",
    ] {
        let output = interrupted_after(arguments, Duration::ZERO);
        assert_eq!(document(&output)["interrupted"], true, "{arguments}");
    }
}

#[test]
fn simulations_print_the_runs_that_are_over() {
    // Thousands of runs of a tenth of a second each: some are finished after a while, and never
    // all.
    let arguments = "sim run --seeds 20000 --policy per-cpu,percid-table --json";
    let document = interrupted_with(arguments, "rows");
    for row in list(&document, "rows") {
        let runs = row["runs"].as_u64().expect("a number of runs");
        assert!((1..20_000).contains(&runs), "{row}");
        // Whole runs only: two seconds of simulated time each.
        assert_eq!(row["elapsed_ns"].as_u64(), Some(runs * 2_000_000_000), "{row}");
    }
}

/// The table takes about a second. If Ctrl-C comes later than that, the test tries again.
#[test]
fn published_tables_that_were_not_finished_are_left_out() {
    until("a table that is not finished", || {
        let arguments = "sim published intermittent --json";
        let document = document(&interrupted_after(arguments, Duration::ZERO));
        assert_eq!(document["interrupted"], true);
        document.get("rows").is_none().then_some(())
    });
}

#[test]
fn the_summary_has_what_was_measured_and_says_what_was_not() {
    until_enough("a summary", |pause| {
        let output = interrupted_after("--seconds 600", pause);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("Not measured: whether IDs stay"), "{text}");
        let measured = ["percid Counter", "Memory:", "Exact:"];
        measured.iter().all(|said| text.contains(said)).then_some(())
    });
}

#[test]
fn text_says_so_on_stderr() {
    let output = interrupted_after("bench ops --seconds 600", Duration::ZERO);
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"));
}
