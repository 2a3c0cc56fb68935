//! `percid sim numa`: its output, its error messages, and its report. Values are not judged here,
//! but in the tests of the simulations.

use crate::percid;

use std::fs;
use std::path::{Path, PathBuf};

use percid::page::{check_results, look_at};
use percid::{bounded, command, json, list};
use serde_json::Value;

/// Returns an empty folder for this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sim-numa-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_else(|| panic!("{key}: {of}"))
}

#[test]
fn every_workload_of_memory_on_the_list_can_be_shown_and_simulated() {
    let catalogue = json("sim list --json");
    let workloads = list(&catalogue, "memory_workloads");
    assert!(workloads.len() >= 4);
    for workload in workloads {
        let name = text(workload, "name");
        let shown = json(&format!("sim show workload {name} --json"));
        assert!(text(&shown, "text").contains("[[phase]]"), "{name}");
        let document = json(&format!("sim numa --workload {name} --seeds 1 --rules all --json"));
        assert_eq!(document["workload"]["name"], name);
        assert_eq!(document["interrupted"], false);
        for row in list(&document, "rows") {
            assert_eq!(row["runs"], 1, "{row}");
            for key in ["elapsed_s", "passes", "scan_s"] {
                assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {row}");
            }
            assert_eq!(row["reasons"].as_object().map(serde_json::Map::len), Some(7), "{row}");
        }
        assert!(list(&document, "numbers").iter().all(|number| !text(number, "origin").is_empty()));
    }
}

/// Only the tiers move memory to the nodes without CPUs of a file.
#[test]
fn memory_goes_to_nodes_without_cpus_and_returns() {
    let machine = folder("tiers").join("slow.toml");
    let file = "base = \"cascade-lake\"\nname = \"slow\"\n[topology]\nmemory_only_nodes = 1\n";
    fs::write(&machine, file).expect("a file");
    let run = format!(
        "sim numa --machine {} --workload archive --rules linux-6.12,tiers --seeds 1 --set cold_after_s=20 \
         --set tiers_mib_s=512",
        machine.display()
    );
    let document = json(&format!("{run} --json"));
    assert_eq!(
        (&document["machine"]["nodes"], &document["machine"]["memory_only_nodes"]),
        (&2.into(), &1.into())
    );
    let moved = |row: usize, key: &str| document["rows"][row][key].as_f64().expect("a number");
    assert_eq!((moved(0, "pages_demoted"), moved(0, "pages_promoted")), (0.0, 0.0));
    assert!(moved(1, "pages_demoted") > 1e6 && moved(1, "pages_promoted") > 1e5, "{document}");
    let output = bounded(&mut command(&run));
    let printed = String::from_utf8_lossy(&output.stdout);
    for part in ["2 nodes and 1 without CPUs", "demoted", "promoted"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let usual = bounded(&mut command("sim numa --workload slices --seeds 1 --set rounds=10"));
    assert!(!String::from_utf8_lossy(&usual.stdout).contains("demoted"));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let output = |seed: u64| {
        let run = format!("sim numa --set threads=4,8 --seeds 2 --seed {seed} --json");
        let output = bounded(&mut command(&run));
        assert!(output.status.success());
        output.stdout
    };
    let once = output(7);
    assert_eq!(once, output(7));
    assert_ne!(once, output(8));
}

#[test]
fn a_page_has_all_times() {
    let folder = folder("page");
    let page = folder.join("numa.html");
    let document = json(&format!("sim numa --seeds 1 --html {} --json", page.display()));
    let html = fs::read_to_string(&page).expect("the page is written");
    for row in list(&document, "rows") {
        let elapsed = row["elapsed_s"].to_string();
        assert!(html.contains(&elapsed), "{elapsed} is not on the page");
    }
    check_results(&html);
    look_at(&folder, "numa", &html, 2);
}

#[test]
fn what_is_wrong_is_said_with_what_was_expected() {
    let file = folder("wrong").join("wrong.toml");
    let shown = json("sim show workload slices --json");
    let wrong = text(&shown, "text").replace("slice_kib = 512", "slice_kib = 6");
    fs::write(&file, wrong).expect("written");
    let of_file = format!("sim numa --workload {}", file.display());
    let cases = [
        (of_file.as_str(), "line 23: phase.0.use.0.slice_kib: expected a multiple of 4"),
        ("sim numa --workload container", "numa01-threadlocal, numa01, slices, phases"),
        ("sim numa --rules linux-2.4", "allowed are all, linux-6.6"),
        ("sim numa --set colour=1", "processes, threads, mib"),
        ("sim numa --set threads=8 --set threads=9", "expected once"),
        ("sim numa --set rounds=1000000", "at most 3600 simulated seconds"),
        ("sim numa --set threads=1.5", "threads: expected a whole number, found 1.5"),
    ];
    for (arguments, expected) in cases {
        let output = bounded(&mut command(arguments));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(expected), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}
