//! `percid bench`: shapes and counted facts. Times are never judged.

mod percid;

use percid::{allowed, available_sources, bounded, command, json, list};
use serde_json::Value;

const OPS: [&str; 4] = ["plain_add", "atomic_private", "atomic_shared", "thread_local"];
const INDICES: [&str; 5] = ["cpu", "kernel", "table", "thread", "forced-remote"];

#[test]
fn ops_measures_everything_with_every_team() {
    let document = json("bench ops --seconds 0.5 --json");
    check_ops(&document);
    assert!(document.get("rows").is_none());
}

fn check_ops(document: &Value) {
    let cpus = allowed(document);
    assert_eq!(document["sums_exact"], true);
    assert_eq!(document["interrupted"], false);
    for (threads, pinned) in [(1, false), (cpus, true), (4 * cpus, false)] {
        for op in OPS {
            check_result(document, op, "none", threads, pinned);
        }
        for source in available_sources(document) {
            check_result(document, "counter_add", source, threads, pinned);
        }
    }
    let variants = OPS.len() + available_sources(document).len();
    assert_eq!(list(document, "results").len(), 3 * variants);
}

fn check_result(document: &Value, op: &str, source: &str, threads: u64, pinned: bool) {
    let is_it = |result: &&Value| {
        result["op"] == op
            && result["source"] == source
            && result["threads"] == threads
            && result["pinned"] == pinned
    };
    let found: Vec<&Value> = list(document, "results").iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{op} {source} {threads} {pinned}");
    let number =
        |key: &str| found[0][key].as_f64().unwrap_or_else(|| panic!("{op} {source}: {key}"));
    assert!(number("ns_min") > 0.0 && number("ns_min") <= number("ns_median"));
    assert!(number("ratio_to_plain_add") > 0.0);
    assert!(number("rounds") >= 1.0);
}

#[test]
fn every_source_can_be_the_chosen_one() {
    for source in available_sources(&json("info --json")) {
        let output =
            bounded(command("bench ops --seconds 0.1 --json").env("PERCID_SOURCE", source));
        assert!(output.status.success(), "{source}");
        let document = percid::document(&output);
        assert_eq!(document["machine"]["chosen"]["source"], source);
        check_ops(&document);
    }
}

#[test]
fn intermittent_counts_what_must_hold() {
    let document = json("bench intermittent --delay-ms 1,20 --bursts 4 --warmup 100 --json");
    check_rows(&document, &[1, 20]);
    for row in list(&document, "rows") {
        assert_eq!(row["threads"].as_u64(), Some(allowed(&document)));
        assert_eq!(row["bursts_timed"].as_u64(), Some(4 * allowed(&document)));
        check_locality(row);
    }
    assert!(document.get("results").is_none());
}

/// Every index that this machine has, once per delay.
fn check_rows(document: &Value, delays: &[u64]) {
    let sources = available_sources(document);
    let missing = |index: &str| ["kernel", "table"].contains(&index) && !sources.contains(&index);
    let expected = INDICES.into_iter().filter(|index| !missing(index));
    let expected: Vec<_> = delays
        .iter()
        .flat_map(|&delay| expected.clone().map(move |index| (index, delay)))
        .collect();
    let rows = list(document, "rows").iter();
    let found: Vec<_> = rows
        .map(|row| (row["index"].as_str().unwrap(), row["delay_ms"].as_u64().unwrap()))
        .collect();
    assert_eq!(found, expected);
}

fn check_locality(row: &Value) {
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
    assert!(number("ns_hot") > 0.0 && number("ns_later") > 0.0 && number("ns_per_burst") > 0.0);
    let local = ["cpu", "table"].contains(&row["index"].as_str().unwrap());
    if local {
        assert_eq!(number("indices_per_cpu_max"), 1.0, "{row}");
        assert_eq!(number("minor_faults_per_burst"), 0.0, "{row}");
        assert_eq!(number("ids_used"), number("threads"), "{row}");
    }
    // The negative control: an index that moves on is seen to move on.
    if row["index"] == "forced-remote" && number("threads") >= 2.0 {
        assert!(number("indices_per_cpu_max") > 1.0, "{row}");
    }
}

#[test]
fn only_prefaulted_memory_spares_the_first_burst_its_faults() {
    let first_faults = |arguments: &str| {
        let document = json(arguments);
        let rows = list(&document, "rows");
        let cpu = rows.iter().find(|row| row["index"] == "cpu").expect("a row for the CPU number");
        cpu["minor_faults_first_burst"].as_f64().expect("a number of faults")
    };
    assert!(first_faults("bench intermittent --delay-ms 1 --warmup 10 --json") >= 1.0);
    assert_eq!(first_faults("bench intermittent --delay-ms 1 --warmup 10 --prefault --json"), 0.0);
}

#[test]
fn one_cpu_is_enough() {
    let document = json("bench intermittent --delay-ms 1 --warmup 10 --cpus 1 --json");
    list(&document, "rows").iter().for_each(|row| assert_eq!(row["threads"], 1));
}

#[test]
fn everything_is_one_document_with_the_keys_of_both() {
    for arguments in ["--seconds 1 --json", "bench --seconds 1 --json"] {
        let document = json(arguments);
        check_ops(&document);
        check_rows(&document, &[10]);
    }
}

#[test]
fn text_shows_every_row() {
    let output = bounded(&mut command("bench --seconds 1"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for word in OPS.iter().chain(&INDICES) {
        assert!(text.contains(word), "{word}:\n{text}");
    }
}
