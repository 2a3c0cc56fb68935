//! `percid sim`: what it prints, what it refuses, and the pages it writes. Figures are not judged
//! here: that is done where they are simulated.

mod percid;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use percid::{bounded, command, document, json, list};
use percid_browser::{Browser, Frame, Scheme};
use serde_json::Value;

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sim-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("{key}: {of}"))
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_else(|| panic!("{key}: {of}"))
}

// ---- list and show ----

#[test]
fn everything_on_the_list_can_be_simulated_and_shown() {
    let catalogue = json("sim list --json");
    for machine in list(&catalogue, "machines") {
        let name = text(machine, "name");
        let shown = json(&format!("sim show machine {name} --json"));
        assert!(text(&shown, "text").contains("[topology]"), "{name}");
    }
    for workload in list(&catalogue, "workloads") {
        let name = text(workload, "name");
        let shown = json(&format!("sim show workload {name} --json"));
        assert!(text(&shown, "text").contains("[[threads]]"), "{name}");
    }
    let names: Vec<&str> = list(&catalogue, "policies").iter().map(|p| text(p, "name")).collect();
    let rows = json("sim run --seeds 1 --set duration_ms=50 --json");
    let simulated: Vec<&str> = list(&rows, "rows").iter().map(|row| text(row, "policy")).collect();
    assert_eq!(simulated, names, "all policies are simulated unless some are named");
}

// ---- run ----

const RUN: &str =
    "sim run --workload container --set duration_ms=200 --policy per-cpu,percid-table-strict";

#[test]
fn rows_say_what_bursts_found_and_what_it_took() {
    let results = json(&format!("{RUN} --seeds 3 --json"));
    assert_eq!(results["interrupted"], false);
    assert_eq!((results["seed"].as_u64(), results["seeds"].as_u64()), (Some(1), Some(3)));
    assert_eq!(results["machine"]["cpus"], 384);
    assert_eq!(results["workload"]["parameters"]["duration_ms"], 200.0);
    let rows = list(&results, "rows");
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["runs"], 3);
        let (least, mean, most) = (
            number(row, "ns_per_burst_min"),
            number(row, "ns_per_burst"),
            number(row, "ns_per_burst_max"),
        );
        assert!(0.0 < least && least <= mean && mean <= most, "{row}");
        let classes: Vec<&str> =
            list(row, "shares").iter().map(|share| text(share, "class")).collect();
        let all = ["hot", "own", "same-l3", "same-socket", "other-socket", "first-touch"];
        assert_eq!(classes, all);
        for of in ["bursts", "cost"] {
            let sum: f64 = list(row, "shares").iter().map(|share| number(share, of)).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{row}");
        }
        assert!(number(row, "ids_bound") >= number(row, "ids_distinct"), "{row}");
        assert!(number(row, "memory") >= 16384.0 * number(row, "ids_distinct"), "{row}");
        for key in ["steals", "scans", "slow_paths", "expired"] {
            assert!(row["work"][key].is_u64(), "{key}: {row}");
        }
    }
    // The program may use 8 CPUs at a time and moves: CPU numbers are many, percid's IDs are few.
    assert!(number(&rows[0], "ids_bound") > number(&rows[1], "ids_bound"));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let output = |seed: u64| {
        let output = bounded(&mut command(&format!("{RUN} --seeds 2 --seed {seed} --json")));
        assert!(output.status.success());
        output.stdout
    };
    let once = output(7);
    assert_eq!(once, output(7));
    assert_ne!(once, output(8));
}

#[test]
fn commas_sweep_all_combinations() {
    let results = json(&format!(
        "{RUN} --set allowed=4,8,16 --set stay_ms=50,100 --set threads=12 --seeds 1 --json"
    ));
    let rows = list(&results, "rows");
    let found: Vec<(f64, f64, &str)> = rows
        .iter()
        .map(|row| {
            let parameters = &row["parameters"];
            assert!(parameters.get("threads").is_none(), "one value is no sweep: {row}");
            (number(parameters, "allowed"), number(parameters, "stay_ms"), text(row, "policy"))
        })
        .collect();
    let mut expected = Vec::new();
    for allowed in [4.0, 8.0, 16.0] {
        for stay in [50.0, 100.0] {
            expected
                .extend(["per-cpu", "percid-table-strict"].map(|policy| (allowed, stay, policy)));
        }
    }
    assert_eq!(found, expected);
    assert_eq!(results["workload"]["parameters"]["threads"], 12.0);
    let most = |row: &&Value| number(row, "ids_bound") as u64;
    let dense = rows.iter().filter(|row| text(row, "policy") == "percid-table-strict");
    assert!(dense.map(|row| most(&row)).max() <= Some(12), "as many IDs as threads");
}

#[test]
fn memory_is_what_was_asked_for() {
    let touched_first = |memory: &str| {
        let results = json(&format!("{RUN} --seeds 1 --memory {memory} --json"));
        assert_eq!(results["workload"]["memory"], memory);
        number(&list(&list(&results, "rows")[0], "shares")[5], "bursts")
    };
    assert!(touched_first("copy-on-write") > 0.0);
    assert!(touched_first("zero-page") > 0.0);
    assert_eq!(touched_first("pre-faulted"), 0.0);
}

#[test]
fn this_machine_has_the_cpus_that_it_has() {
    let results = json(
        "sim run --machine this --workload oversubscribed --set duration_ms=20 --seeds 1 --json",
    );
    let here = json("info --json");
    let cpus = list(&here["machine"], "cpus").iter().filter(|cpu| !cpu["core"].is_null()).count();
    assert_eq!(results["machine"]["cpus"].as_u64(), Some(cpus as u64));
    for (ours, theirs) in [("cores", "cores"), ("nodes", "nodes")] {
        assert_eq!(results["machine"][ours], here["machine"][theirs], "{ours}");
    }
    for number in list(&results["machine"], "numbers") {
        let origin = text(number, "origin");
        assert!(origin.contains("measured here"), "{number}");
        assert_eq!(origin.starts_with("measured"), number["name"] == "hot_ns", "{number}");
    }
}

#[test]
fn text_shows_every_policy_and_every_share() {
    let output = bounded(&mut command(&format!("{RUN} --seeds 1 --set allowed=4,8")));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success());
    let words = [
        "per-cpu",
        "percid-table",
        "allowed=4",
        "allowed=8",
        "hot",
        "own",
        "same L3",
        "same socket",
        "other socket",
        "first touch",
        "IDs",
        "bound",
        "memory",
        "steals",
        "scans",
        "slow paths",
    ];
    for word in words {
        assert!(shown.contains(word), "{word}:\n{shown}");
    }
}

// ---- files of one's own ----

#[test]
fn a_file_of_ones_own_is_simulated_without_compiling_anything() {
    let folder = folder("own");
    let machine = json("sim show machine cascade-lake --json");
    let machine = text(&machine, "text")
        .replace("name = \"2 x", "name = \"own 1 x")
        .replace("sockets = 2", "sockets = 1");
    fs::write(folder.join("machine.toml"), machine).expect("written");
    let workload = json("sim show workload thread-pool --json");
    fs::write(
        folder.join("workload.toml"),
        text(&workload, "text").replace("thread-pool", "own-pool"),
    )
    .expect("written");
    let place = folder.display();
    let results = json(&format!(
        "sim run --machine {place}/machine.toml --workload {place}/workload.toml --seeds 1 --policy per-cpu --json"
    ));
    assert_eq!(results["machine"]["cpus"], 48);
    assert!(text(&results["machine"], "name").starts_with("own 1 x"));
    assert_eq!(results["workload"]["name"], "own-pool");
}

/// The examples of docs/simulator.md, with the costs that the first one leaves out.
#[test]
fn the_examples_of_the_manual_can_be_simulated() {
    let folder = folder("manual");
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulator.md");
    let manual = fs::read_to_string(manual).expect("the manual");
    let mut examples = manual.split("```toml\n").skip(1).map(|rest| rest.split("```").next());
    let [machine, workload] =
        [examples.next(), examples.next()].map(|one| one.flatten().expect("an example"));
    let preset = json("sim show machine epyc-9654 --json");
    let (_, costs) = text(&preset, "text").split_once("[costs.own_ns]").expect("its costs");
    let machine = format!("{machine}\n[costs.own_ns]{costs}");
    fs::write(folder.join("machine.toml"), machine).expect("written");
    fs::write(folder.join("workload.toml"), workload).expect("written");
    let place = folder.display();
    let results = json(&format!(
        "sim run --machine {place}/machine.toml --workload {place}/workload.toml --seeds 1 --json"
    ));
    assert_eq!(results["machine"]["cpus"], 16);
    assert!(list(&results, "rows").iter().all(|row| number(row, "bursts") > 0.0));
}

#[test]
fn errors_in_files_name_the_line_and_the_field() {
    let folder = folder("wrong");
    let machine = text(&json("sim show machine epyc-9654 --json"), "text").to_owned();
    let workload = text(&json("sim show workload container --json"), "text").to_owned();
    let cases = [
        (
            "--machine",
            machine.replace("sockets = 2", "sockets = 0"),
            "topology.sockets: expected at least 1",
            "sockets = ",
        ),
        ("--machine", machine.replace("sockets = 2", "sokets = 2"), "sokets", "sokets"),
        ("--machine", machine.replace("[costs.overlap]", "[costs.overlop]"), "overlop", "overlop"),
        (
            "--workload",
            workload.replace("count = \"threads\"", "count = \"many\""),
            "threads.0.count: \"many\" is neither",
            "count =",
        ),
        (
            "--workload",
            workload.replace("wander = \"allowed\"", "wander = 1000"),
            "affinity_changes.0.wander: expected a whole number from 1 to 384",
            "wander",
        ),
    ];
    for (at, (option, wrong, expected, on)) in cases.iter().enumerate() {
        let path = folder.join(format!("{at}.toml"));
        fs::write(&path, wrong).expect("written");
        let line = wrong.lines().position(|line| line.contains(on)).expect("the line") + 1;
        let output =
            bounded(&mut command(&format!("sim run {option} {} --seeds 1", path.display())));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with(&format!("percid: {}: line {line}: ", path.display())), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let cases = [
        ("sim run --machine pdp-11", "this, epyc-9654, cascade-lake, ivy-bridge-ex"),
        ("sim run --workload nothing", "intermittent, thread-pool, container"),
        ("sim run --set colour=1", "allowed, duration_ms"),
        ("sim show machine pdp-11", "epyc-9654"),
        ("sim run --machine ./pdp-11.toml", "pdp-11.toml: No such file"),
        ("sim run --workload container --set allowed=1000", "container: line"),
        ("sim run --set threads=8 --set threads=9", "expected once"),
        ("sim run --seeds 1000000 --set threads=1,2", "at most 10000000 runs"),
        ("sim run --html /no/such/folder/page.html", "folder that exists"),
        ("sim paper --html /no/such/folder/page.html", "folder that exists"),
    ];
    for (arguments, expected) in cases {
        let output = bounded(&mut command(arguments));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
        assert!(said.contains(expected), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

// ---- numa-hash ----

#[test]
fn the_study_of_activity_sets_counts_what_thread_ids_give() {
    let study = json("sim numa-hash --threads 34,35,65 --json");
    let tables = list(&study, "tables");
    assert_eq!(tables.len(), 8, "four published runs, each by two methods");
    assert!(tables.iter().all(|table| table["absent"].is_u64()), "all are explained");
    let crowd = |method: &str, bits: u64, threads: u64| {
        let is_it = |crowd: &&Value| {
            crowd["method"] == method && crowd["bits"] == bits && crowd["threads"] == threads
        };
        list(&study, "crowds").iter().find(is_it).expect("a crowd").clone()
    };
    assert_eq!(list(&study, "crowds").len(), 3 * 2 * 2);
    assert_eq!(number(&crowd("hash32", 64, 34), "free"), 1.0);
    assert!(number(&crowd("hash32", 64, 35), "free") < 1.0);
    assert_eq!(number(&crowd("pid_6bit", 128, 65), "colliding_pairs"), 0.0);
    assert_eq!(study["never_collide"][0]["threads"], 34);
    let ranges = json("sim numa-hash --threads 8 --range 4350-4357 --range 1-128 --json");
    let tables = list(&ranges, "tables");
    assert_eq!(tables.len(), 2 * 2 * 2);
    for table in tables {
        let counted: u64 =
            table["computed"].as_object().expect("bits").values().filter_map(Value::as_u64).sum();
        let (first, last) = (number(table, "first"), number(table, "last"));
        assert_eq!(counted as f64, last - first + 1.0, "{table}");
    }
}

// ---- paper ----

fn check_bounds(part: &Value) -> bool {
    let bounds = list(part, "bounds");
    assert!(!bounds.is_empty());
    for bound in bounds {
        let figure = bound["figure"].as_f64();
        let above = bound["least"].as_f64().is_none_or(|least| figure >= Some(least));
        let below = bound["most"].as_f64().is_none_or(|most| figure <= Some(most));
        assert_eq!(bound["holds"], figure.is_some() && above && below, "{bound}");
    }
    let all = bounds.iter().all(|bound| bound["holds"] == true);
    assert_eq!(part["within_bounds"], all);
    all
}

/// Runs `sim paper`: whether bounds hold decides about the exit status, and here about nothing.
fn paper(arguments: &str) -> (Value, Vec<u8>) {
    let output = bounded(&mut command(&format!("sim paper {arguments} --json")));
    let document = document(&output);
    let parts = ["intermittent", "mask", "numa", "hash"].map(|part| document.get(part));
    let parts: Vec<&Value> = parts.into_iter().flatten().collect();
    let parts = if parts.is_empty() { vec![&document] } else { parts };
    // Each is checked, also after one that is not within.
    let within: Vec<bool> = parts.iter().map(|part| check_bounds(part)).collect();
    let status = if within.iter().all(|&within| within) { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(status), "{arguments}: {}", stderr(&output));
    (document, output.stdout)
}

fn check_intermittent(part: &Value) {
    let rows = list(part, "rows");
    assert_eq!(rows.len(), 24);
    let mut errors = Vec::new();
    for row in rows {
        assert!(["per-cpu", "linux-6.4", "linux-6.13"].contains(&text(row, "policy")));
        assert!(
            text(row, "config").contains("/")
                && [10, 200].map(Some).contains(&row["delay_ms"].as_u64())
        );
        let (model, published) = (number(row, "model_ns"), number(row, "published_ns"));
        let error = model / published - 1.0;
        assert!((number(row, "error") - error).abs() < 1e-9, "{row}");
        assert!(number(row, "pre_faulted_ns") > 0.0 && list(row, "shares").len() == 6);
        errors.push(error.abs());
    }
    let mean = errors.iter().sum::<f64>() / 24.0;
    assert!((number(part, "mean_abs_error") - mean).abs() < 1e-9);
    assert!(list(part, "assumptions").len() >= 5, "each assumption is switched off once");
    for assumption in list(part, "assumptions") {
        assert!(
            number(assumption, "mean_abs_error") > 0.0 && !text(assumption, "instead").is_empty()
        );
    }
    assert!(list(part, "parameters").iter().all(|parameter| !text(parameter, "origin").is_empty()));
}

fn check_numa(part: &Value) {
    let rows = list(part, "rows");
    assert_eq!(rows.len(), 14);
    for row in rows {
        assert!(
            ["base", "selective"].contains(&text(row, "series")) && !text(row, "reason").is_empty()
        );
        assert!(number(row, "model") >= 0.0 && number(row, "published") >= 0.0);
    }
    for series in ["base", "selective"] {
        assert!(number(&part["elapsed"][series], "model") > 0.0);
        assert!(number(&part["elapsed"][series], "published") > 0.0);
    }
    assert!(!list(part, "contributions").is_empty());
}

fn check_mask(part: &Value) {
    assert_eq!(list(part, "rows").len(), 8);
    for row in list(part, "rows") {
        assert_eq!(row["published"].as_array().map(Vec::len), Some(2), "{row}");
        assert!(["before", "after", "gain"].contains(&text(row, "when")));
    }
    assert_eq!(list(part, "ways").len(), 3);
    assert!(!list(part, "assumptions").is_empty());
}

/// The slowest test here: it simulates all published tables twice.
#[test]
fn published_tables_have_their_keys_a_page_and_the_same_bytes_for_the_same_seed() {
    let folder = folder("paper");
    let page = folder.join("paper.html");
    let (whole, _) = paper(&format!("--html {}", page.display()));
    check_intermittent(&whole["intermittent"]);
    check_mask(&whole["mask"]);
    check_numa(&whole["numa"]);
    assert_eq!(list(&whole["hash"], "tables").len(), 8);
    for part in ["intermittent", "mask", "numa", "hash"] {
        let (mut alone, _) = paper(part);
        assert_eq!(alone["interrupted"], false);
        alone.as_object_mut().expect("keys").remove("interrupted");
        // Written out, so that every digit counts.
        assert_eq!(alone.to_string(), whole[part].to_string(), "{part} alone and among all");
    }
    let html = fs::read_to_string(&page).expect("the page is written");
    for row in list(&whole["intermittent"], "rows") {
        for key in ["model_ns", "published_ns", "pre_faulted_ns"] {
            let value = number(row, key).to_string();
            assert!(html.contains(&value), "{key}: {value} is not on the page");
        }
    }
    for row in list(&whole["numa"], "rows").iter().filter(|row| number(row, "model") > 0.0) {
        assert!(html.contains(&number(row, "model").to_string()), "{row}");
    }
    look_at(&folder, "paper", &html, 5 + 3 + 4 + 8);
}

// ---- pages ----

/// Opens a page in light and dark, wide and narrow: everything is drawn and can be read, no script
/// fails.
fn look_at(folder: &Path, name: &str, html: &str, charts: usize) {
    let Some(browser) = Browser::find(folder) else { return };
    for (scheme, width) in [(Scheme::Light, 1200), (Scheme::Dark, 400)] {
        let shown = format!("{name}-{scheme:?}").to_lowercase();
        let found = browser.inspect(&shown, html, Frame { scheme, width });
        let marks: Vec<usize> = found.charts.iter().map(|chart| chart.marks).collect();
        assert_eq!(found.problems(&marks), [] as [String; 0], "{shown}");
        assert_eq!(marks.len(), charts, "{shown}");
        assert!(marks.iter().all(|&marks| marks > 0), "{shown}: nothing is drawn: {marks:?}");
        assert_eq!(found.dark, scheme == Scheme::Dark, "{shown}");
    }
}

#[test]
fn a_comparison_has_a_page_with_all_its_numbers_and_plots() {
    let folder = folder("run");
    let page = folder.join("run.html");
    let arguments =
        format!("{RUN} --seeds 2 --set allowed=4,8,16 --json --html {}", page.display());
    let output = bounded(&mut command(&arguments));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("report written to"), "{}", stderr(&output));
    let results = document(&output);
    let html = fs::read_to_string(&page).expect("the page is written");
    for row in list(&results, "rows") {
        let cost = number(row, "ns_per_burst").to_string();
        assert!(html.contains(&cost), "{cost} is not on the page");
        for share in list(row, "shares") {
            let share = (100.0 * number(share, "bursts")).to_string();
            assert!(html.contains(&share), "{share} is not on the page");
        }
        assert!(html.contains(&format!(">{}<", row["memory"])), "{row}");
    }
    // Costs over what is swept and as bars; of each policy shares of bursts and of cost, and a time
    // line.
    look_at(&folder, "run", &html, 2 + 2 * 2 + 2);
    let again = bounded(&mut command(&arguments));
    assert_eq!(again.stdout, output.stdout);
    assert!(fs::read_to_string(&page).expect("written again") == html, "the same page");
}

/// The largest machine, all policies and 20 000 stays of IDs on CPUs.
#[test]
fn a_large_comparison_has_a_page_too() {
    let folder = folder("large");
    let page = folder.join("large.html");
    let workload = "--workload oversubscribed --set duration_ms=100";
    let output =
        bounded(&mut command(&format!("sim run {workload} --seeds 1 --html {}", page.display())));
    assert!(output.status.success(), "{}", stderr(&output));
    let html = fs::read_to_string(&page).expect("the page is written");
    look_at(&folder, "large", &html, 1 + 2 + 9);
}

#[test]
fn a_page_that_is_wrong_is_found() {
    let folder = folder("control");
    let Some(browser) = Browser::find(&folder) else { return };
    let page = folder.join("page.html");
    let output = bounded(&mut command(&format!("{RUN} --seeds 1 --html {}", page.display())));
    assert!(output.status.success(), "{}", stderr(&output));
    let html = fs::read_to_string(&page).expect("the page is written");
    let problems = |name: &str, html: &str| {
        let frame = Frame { scheme: Scheme::Light, width: 1200 };
        let found = browser.inspect(name, html, frame);
        let marks: Vec<usize> = found.charts.iter().map(|chart| chart.marks).collect();
        (found.problems(&marks), marks)
    };
    let broken = html.replacen(
        "<script type=\"application/json\">{",
        "<script type=\"application/json\">",
        1,
    );
    let (found, marks) = problems("broken", &broken);
    assert!(found.iter().any(|problem| problem.contains("chart-1: failed")), "{found:?}");
    assert_eq!(marks[0], 0);
    let fails = html.replacen("</main>", "<script>thereIsNoSuchFunction()</script></main>", 1);
    let (found, _) = problems("script", &fails);
    assert!(found.iter().any(|problem| problem.contains("thereIsNoSuchFunction")), "{found:?}");
}

#[test]
fn a_page_is_written_even_if_nobody_reads_the_text() {
    let folder = folder("pipe");
    let page = folder.join("page.html");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let arguments = format!("{RUN} --seeds 1 --html {}", page.display());
    let output = bounded(command(&arguments).stdout(writer));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(page.exists());
}

#[test]
fn a_page_that_cannot_be_written_is_an_error_after_the_result() {
    let output = bounded(&mut command(&format!("{RUN} --seeds 1 --json --html /dev/full")));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write the report"), "{}", stderr(&output));
    assert_eq!(list(&document(&output), "rows").len(), 2);
}
