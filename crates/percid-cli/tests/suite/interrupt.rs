//! Ctrl-C: what was measured so far, and exit status 130.

use crate::percid;

use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use percid::{command, document, list};

fn start(arguments: &str) -> Child {
    let mut command = command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Waits until the program has taken over SIGINT, as its status file says.
fn wait_until_it_listens(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let text = std::fs::read_to_string(&status).expect("the program runs");
        let caught = text
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .expect("a set of caught signals");
        let caught = u64::from_str_radix(caught.trim(), 16).expect("a hexadecimal set");
        if caught & (1 << (libc::SIGINT - 1)) != 0 {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("the program never listened for SIGINT");
}

fn interrupt(child: &Child) {
    // SAFETY: sends a signal to a child that has not been waited for, so the number is still its
    // own.
    let sent = unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    assert_eq!(sent, 0);
}

fn interrupted_after(arguments: &str, pause: Duration) -> Output {
    let child = start(arguments);
    wait_until_it_listens(&child);
    thread::sleep(pause);
    interrupt(&child);
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(
        output.status.code(),
        Some(130),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

#[test]
fn ops_prints_what_was_measured() {
    let output = interrupted_after("bench ops --seconds 600 --json", Duration::from_secs(2));
    let document = document(&output);
    assert_eq!(document["interrupted"], true);
    assert_eq!(document["sums_exact"], true);
    assert!(!list(&document, "results").is_empty());
}

#[test]
fn mask_prints_what_was_measured() {
    let output = interrupted_after("bench mask --seconds 600 --json", Duration::from_secs(1));
    let document = document(&output);
    assert_eq!(document["interrupted"], true);
    assert_eq!(document["mask_exact"], true);
    assert!(!list(&document, "mask").is_empty());
}

#[test]
fn intermittent_prints_what_was_measured() {
    let output = interrupted_after(
        "bench intermittent --delay-ms 10000 --warmup 10 --json",
        Duration::from_secs(1),
    );
    let document = document(&output);
    assert_eq!(document["interrupted"], true);
    // One thread has had its first turn; the others wait for the pause to end.
    let rows = list(&document, "rows");
    assert!(!rows.is_empty());
    rows.iter().for_each(|row| assert_eq!(row["bursts_timed"], 1));
}

#[test]
fn the_published_benchmark_prints_what_was_finished() {
    // A repetition takes minutes, because of the pauses: none is finished.
    let arguments = "bench intermittent --published --delay-ms 10000 --warmup 10 --json";
    let output = interrupted_after(arguments, Duration::from_secs(8));
    let document = document(&output);
    assert_eq!(document["interrupted"], true);
    // What was forecast before is there, unless there was no second CPU to take turns with.
    if percid::allowed(&document) > 1 {
        let rows = list(&document["published"], "rows");
        assert!(!rows.is_empty());
        for row in rows {
            assert_eq!(row["repetitions"], 0, "{row}");
            assert!(row["measured_ns"].is_null() && row["forecast_error"].is_null(), "{row}");
            assert!(row["forecast_ns"].as_f64() > Some(0.0), "{row}");
        }
    }
}

#[test]
fn at_once_is_early_enough() {
    for arguments in [
        "bench --json",
        "bench ops --json",
        "bench mask --json",
        "bench intermittent --json",
        "bench intermittent --published --json",
    ] {
        let output = interrupted_after(arguments, Duration::ZERO);
        assert_eq!(document(&output)["interrupted"], true, "{arguments}");
    }
}

#[test]
fn simulations_print_the_runs_that_are_over() {
    // Thousands of runs of a tenth of a second each: some are over after a while, and never all.
    let arguments = "sim run --seeds 20000 --policy per-cpu,percid-table --json";
    let document = document(&interrupted_after(arguments, Duration::from_secs(3)));
    assert_eq!(document["interrupted"], true);
    let rows = list(&document, "rows");
    assert!(!rows.is_empty());
    for row in rows {
        let runs = row["runs"].as_u64().expect("a number of runs");
        assert!((1..20_000).contains(&runs), "{row}");
        // Whole runs only: two seconds of simulated time each.
        assert_eq!(row["elapsed_ns"].as_u64(), Some(runs * 2_000_000_000), "{row}");
    }
}

#[test]
fn published_tables_that_were_not_finished_are_left_out() {
    let arguments = "sim paper intermittent --json";
    let document = document(&interrupted_after(arguments, Duration::ZERO));
    assert_eq!(document["interrupted"], true);
    assert!(document.get("rows").is_none());
}

#[test]
fn the_summary_has_what_was_measured_and_says_what_was_not() {
    let output = interrupted_after("--seconds 600", Duration::from_secs(3));
    let text = String::from_utf8_lossy(&output.stdout);
    for said in ["percid Counter", "Memory:", "Exact:", "Not measured: whether IDs stay"] {
        assert!(text.contains(said), "{said}:\n{text}");
    }
}

#[test]
fn text_says_so_on_stderr() {
    let output = interrupted_after("bench ops --seconds 600", Duration::from_secs(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"));
}
