//! The aggregator, against a sequential computation of the same figures by other means.

use crate::program;
use crate::scratch;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use program::{Outcome, sources};
use scratch::Scratch;
use serde_json::{Value, json};

const WEBLOG: &str = env!("CARGO_BIN_EXE_weblog");

/// A log that nginx wrote. Its longest line has 8254 bytes: chunks must be longer.
const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/weblog/access.log");

fn weblog(arguments: &[&str]) -> Outcome {
    program::run(WEBLOG, None, arguments)
}

/// Returns a report without the fields that differ from run to run.
fn figures(mut report: Value) -> Value {
    let fields = report.as_object_mut().expect("an object");
    for field in ["file", "threads", "source", "seconds", "lines_per_second"] {
        assert!(fields.remove(field).is_some(), "{field}");
    }
    report
}

/// Returns the figures of a log without malformed lines, computed in one go. A line is cut at its
/// quotes; nginx writes none inside a field.
fn expected(log: &str, top: usize) -> Value {
    let (mut statuses, mut methods) = (HashMap::new(), HashMap::new());
    let mut hits: HashMap<&str, u64> = HashMap::new();
    let mut sizes = Vec::new();
    for line in log.lines() {
        let parts: Vec<&str> = line.split('"').collect();
        let numbers: Vec<u64> =
            parts[2].split_whitespace().map(|it| it.parse().expect("a number")).collect();
        *statuses.entry(format!("{}xx", numbers[0] / 100)).or_insert(0u64) += 1;
        sizes.push(numbers[1]);
        let request: Vec<&str> = parts[1].split_whitespace().collect();
        let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
        let method = match request.first() {
            Some(method) if request.len() > 1 && known.contains(method) => method,
            Some(_) if request.len() > 1 => "other",
            _ => "none",
        };
        *methods.entry(method).or_insert(0u64) += 1;
        if let Some(target) = request.get(1) {
            let path = target.find('?').map_or(*target, |at| &target[..at]);
            *hits.entry(path).or_default() += 1;
        }
    }
    let mut paths: Vec<_> = hits.iter().map(|(path, hits)| (u64::MAX - hits, path)).collect();
    paths.sort();
    let path = |(rest, path): &(u64, &&str)| json!({ "path": path, "hits": u64::MAX - rest });
    sizes.sort();
    json!({
        "lines": log.lines().count(),
        "bytes": sizes.iter().sum::<u64>(),
        "requests_by_status": statuses,
        "requests_by_method": methods,
        "paths": hits.len(),
        "top_paths": paths.iter().take(top).map(path).collect::<Vec<_>>(),
        "sizes": sizes,
    })
}

/// Compares a report with the computed figures; the quantiles may differ by the error of the
/// histogram.
fn agree(report: &Value, mut expected: Value) -> bool {
    let sizes = expected.as_object_mut().and_then(|it| it.remove("sizes")).expect("the sizes");
    let sizes: Vec<f64> =
        sizes.as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
    let quantiles = [("min", 0.0), ("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];
    let close = quantiles.iter().all(|(name, share)| {
        let rank = (share * sizes.len() as f64).ceil().max(1.0) as usize;
        let reported = report["response_bytes"][name].as_f64().expect("a number");
        let exact = sizes[rank - 1];
        (reported - exact).abs() <= exact * percid::Histogram::RELATIVE_ERROR
    });
    let fields = expected.as_object().expect("an object");
    close && fields.iter().all(|(field, value)| &report[field] == value)
}

#[test]
fn the_figures_are_those_of_a_sequential_computation() {
    let log = fs::read_to_string(LOG).expect("the log");
    for source in sources() {
        for threads in ["1", "8"] {
            let arguments =
                ["--json", "--top", "400", "--chunk", "9000", "--threads", threads, LOG];
            let report = program::run(WEBLOG, source, &arguments).report();
            assert!(agree(&report, expected(&log, 400)), "{source:?} {threads}");
            assert_eq!(report["malformed"], 0);
            if let Some(source) = source {
                assert_eq!(report["source"], source.to_string());
            }
        }
    }
}

/// The negative control: the comparison sees a log that differs in one digit.
#[test]
fn one_digit_makes_a_difference() {
    let log = fs::read_to_string(LOG).expect("the log");
    let report = weblog(&["--json", LOG]).report();
    assert!(agree(&report, expected(&log, 10)));
    for (digit, other) in [(" 200 5991 ", " 300 5991 "), (" 5991 ", " 5990 "), ("GET /b", "GET /c")]
    {
        assert!(!agree(&report, expected(&log.replacen(digit, other, 1), 10)), "{digit}");
    }
}

#[test]
fn neither_threads_nor_chunks_nor_pipes_change_anything() {
    let log = fs::read_to_string(LOG).expect("the log");
    let lines: Vec<&str> = log.lines().collect();
    let scratch = Scratch::new("malformed.log");
    fs::write(&scratch.0, with_malformed_lines(&lines)).expect("room for a file");
    let expected = figures(weblog(&["--json", "--threads", "1", scratch.path()]).report());
    for source in sources() {
        for (threads, chunk) in [("1", "9000"), ("3", "9001"), ("8", "9000"), ("8", "1000000")] {
            let arguments = ["--json", "--threads", threads, "--chunk", chunk, scratch.path()];
            let report = figures(program::run(WEBLOG, source, &arguments).report());
            assert!(report == expected, "{source:?} {threads} {chunk}");
        }
    }
    let from_input = ["--json", "--threads", "2", "-"];
    let outcome = program::run_on(WEBLOG, None, &from_input, Some(Path::new(scratch.path())));
    assert_eq!(figures(outcome.report()), expected);
}

/// Cuts off every 300th line, as when a server is killed while it writes.
fn with_malformed_lines(lines: &[&str]) -> String {
    let cut = |(index, line): (usize, &&str)| {
        let end = if index % 300 == 299 { line.len() / 2 } else { line.len() };
        line[..end].to_owned()
    };
    lines.iter().enumerate().map(cut).collect::<Vec<_>>().join("\n")
}

#[test]
fn malformed_lines_are_counted_and_shown_with_their_numbers() {
    let log = fs::read_to_string(LOG).expect("the log");
    let lines: Vec<&str> = log.lines().collect();
    let scratch = Scratch::new("numbered.log");
    fs::write(&scratch.0, with_malformed_lines(&lines)).expect("room for a file");
    let outcome = weblog(&["--json", "--chunk", "9000", "--threads", "8", scratch.path()]);
    let report = outcome.report();
    assert_eq!((&report["malformed"], &report["lines"]), (&json!(10), &json!(lines.len())));
    let shown: Vec<_> = report["first_malformed"].as_array().expect("a list").iter().collect();
    let numbers: Vec<_> = shown.iter().filter_map(|it| it["line"].as_u64()).collect();
    assert_eq!(numbers, [300, 600, 900, 1200, 1500]);
    for line in numbers {
        let place = format!("{}:{line}: expected a ", scratch.path());
        assert!(outcome.stderr.contains(&place), "{place} in {}", outcome.stderr);
    }
}

#[test]
fn a_line_longer_than_a_chunk_is_malformed_and_no_more_than_that() {
    let line = r#"10.0.0.1 - - [1/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "a""#;
    let scratch = Scratch::new("long.log");
    let long = "\0".repeat(5000);
    fs::write(&scratch.0, format!("{line}\n{long}\n{line}\n{line}\n{long}")).expect("room");
    for chunk in ["100", "1000", "5000", "5001"] {
        let report = weblog(&["--json", "--chunk", chunk, scratch.path()]).report();
        let counts = (&report["lines"], &report["malformed"], &report["bytes"]);
        assert_eq!(counts, (&json!(5), &json!(2), &json!(15)), "{chunk}");
        assert_eq!(report["first_malformed"][0]["line"], 2, "{chunk}");
        assert_eq!(report["first_malformed"][1]["line"], 5, "{chunk}");
    }
}

#[test]
fn reading_a_log_again_multiplies_the_counts() {
    let once = weblog(&["--json", LOG]).report();
    let thrice = weblog(&["--json", "--repeat", "3", LOG]).report();
    for field in ["lines", "bytes"] {
        let of = |report: &Value| report[field].as_u64().expect("a number");
        assert_eq!(of(&thrice), 3 * of(&once), "{field}");
    }
    assert_eq!(thrice["response_bytes"], once["response_bytes"]);
    assert_eq!(thrice["paths"], once["paths"]);
}

#[test]
fn an_empty_log_has_a_report() {
    let scratch = Scratch::new("empty.log");
    fs::write(&scratch.0, "").expect("room for a file");
    let report = weblog(&["--json", scratch.path()]).report();
    assert_eq!((&report["lines"], &report["response_bytes"]), (&json!(0), &Value::Null));
    let text = weblog(&[scratch.path()]);
    assert!(text.stdout.contains(": 0 lines, 0 of them malformed"), "{}", text.stdout);
}

#[test]
fn errors_name_what_is_wrong() {
    let cases: [(&[&str], i32, &str); 7] = [
        (&["/no/such.log"], 1, "/no/such.log: No such file"),
        (&["/"], 1, "/: Is a directory"),
        (&[], 2, "FILE is missing"),
        (&["--threads", "0", LOG], 2, "--threads must be 1 to"),
        (&["--threads", "many", LOG], 2, "\"many\""),
        (&["--repeat", "2", "-"], 2, "--repeat needs a file"),
        (&["--colour", LOG], 2, "--colour"),
    ];
    for (arguments, status, message) in cases {
        let outcome = weblog(arguments);
        assert_eq!(outcome.status, status, "{arguments:?}");
        assert!(outcome.stderr.contains(message), "{arguments:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{arguments:?}");
    }
    let help = weblog(&["--help"]);
    assert!(help.status == 0 && help.stdout.contains("Usage: weblog"), "{help:?}");
}
