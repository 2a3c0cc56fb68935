//! `percid bench`: structure of the output and counted facts. Times are never judged.

use crate::percid;

use std::process::Command;
use std::sync::LazyLock;

use percid::page::{check_results_but, look_at_empty};
use percid::running::{has_thread, interrupted, start, wait_until_it_listens};
use percid::wait::{until, until_enough};
use percid::{allowed, available_sources, bounded, command, json, list};
use serde_json::Value;

/// Operations that do not use percid.
const OTHERS: [&str; 8] = [
    "plain_add",
    "atomic_private",
    "atomic_shared",
    "thread_local",
    "thread_local_vec",
    "mutex_vec",
    "std_mutex_private",
    "std_mutex_shared",
];
/// Operations that leave nothing behind that could be counted.
const ALLOCATORS: [&str; 2] = ["malloc_free", "mimalloc"];
const PEERS: [&str; 5] = [
    "array_queue",
    "array_queue_overwrite",
    "parking_lot_mutex_private",
    "parking_lot_mutex_shared",
    "hdrhistogram",
];
const COUNTER_PEERS: [&str; 3] = ["contatori", "fast_counter", "prometheus"];
/// percid's operations, each once per source.
const PERCID: [&str; 7] = [
    "counter_add",
    "stack_push_pop",
    "pool_get_put",
    "local_with",
    "histogram_record",
    "ring_append",
    "ring_append_full",
];
/// The pairs of operations whose ratio is printed.
const COMPARISONS: [(&str, &str); 7] = [
    ("counter_add", "contatori"),
    ("counter_add", "fast_counter"),
    ("stack_push_pop", "mimalloc"),
    ("stack_push_pop", "array_queue"),
    ("pool_get_put", "mimalloc"),
    ("local_with", "parking_lot_mutex_private"),
    ("histogram_record", "counter_add"),
];
const MASK: [&str; 4] = ["plain_add", "mask_fetch_or", "mask_test_set", "mask_mark"];
const INDICES: [&str; 5] = ["cpu", "kernel", "table", "thread", "forced-remote"];

/// Returns the operations of others that leave something behind.
fn accountable() -> impl Iterator<Item = &'static str> {
    let peers = PEERS.into_iter().filter(|_| cfg!(feature = "peers"));
    let counters = COUNTER_PEERS.into_iter().filter(|_| cfg!(feature = "counter-peers"));
    OTHERS.into_iter().chain(peers).chain(counters)
}

fn allocators() -> impl Iterator<Item = &'static str> {
    ALLOCATORS.into_iter().filter(|&name| name != "mimalloc" || cfg!(feature = "peers"))
}

/// Returns the teams of `bench ops`: number of threads, and `true` if they are pinned.
fn teams(document: &Value) -> [(u64, bool); 3] {
    let cpus = allowed(document);
    [(1, false), (cpus, true), (4 * cpus, false)]
}

fn check_ops(document: &Value) {
    assert_eq!(document["interrupted"], false);
    for team in teams(document) {
        for op in accountable().chain(allocators()) {
            check_figure(list(document, "results"), op, "none", team);
        }
        for source in available_sources(document) {
            PERCID.iter().for_each(|op| check_figure(list(document, "results"), op, source, team));
        }
    }
    let of_percid = PERCID.len() * available_sources(document).len();
    let variants = accountable().chain(allocators()).count() + of_percid;
    assert_eq!(list(document, "results").len(), 3 * variants);
    check_sums(document, accountable().count() + of_percid);
    check_ratios(document);
}

/// Checks that the only row of this operation, source and team has values.
fn check_figure(rows: &[Value], op: &str, source: &str, (threads, pinned): (u64, bool)) {
    let is_it = |row: &&Value| {
        row["op"] == op
            && row["source"] == source
            && row["threads"] == threads
            && row["pinned"] == pinned
    };
    let found: Vec<&Value> = rows.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{op} {source} {threads} {pinned}");
    let number =
        |key: &str| found[0][key].as_f64().unwrap_or_else(|| panic!("{op} {source}: {key}"));
    assert!(number("ns_min") > 0.0 && number("ns_min") <= number("ns_median"));
    assert!(number("ratio_to_plain_add") > 0.0);
    assert!(number("rounds") >= 1.0);
    assert!(found[0]["title"].as_str().is_some_and(|title| !title.is_empty()));
}

/// Checks that every structure was given something and accounts for all of it.
fn check_sums(document: &Value, expected: usize) {
    assert_eq!(document["sums_exact"], true);
    let sums = list(document, "sums");
    assert_eq!(sums.len(), expected);
    for sum in sums {
        assert!(sum["added"].as_i64().is_some_and(|added| added > 0), "{sum}");
        assert_eq!(sum["added"], sum["sum"], "{sum}");
    }
}

/// Checks that there is every comparison whose other side was measured, once per source and team.
fn check_ratios(document: &Value) {
    let others: Vec<&str> = accountable().chain(allocators()).chain(PERCID).collect();
    let mut expected = Vec::new();
    for (op, to) in COMPARISONS.into_iter().filter(|(_, to)| others.contains(to)) {
        for source in available_sources(document) {
            expected.extend(teams(document).map(|team| (op, source, to, team)));
        }
    }
    let found = list(document, "ratios").iter().map(|ratio| {
        assert!(ratio["median"].as_f64().is_some_and(|ratio| ratio > 0.0), "{ratio}");
        assert!(ratio["of_minima"].as_f64().is_some_and(|ratio| ratio > 0.0), "{ratio}");
        let text = |key: &str| ratio[key].as_str().expect("text");
        let team = (ratio["threads"].as_u64().unwrap(), ratio["pinned"].as_bool().unwrap());
        (text("op"), text("source"), text("to"), team)
    });
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn increments_have_a_row_for_each_number_of_threads_and_a_picture() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("increments-{}.svg", std::process::id()));
    let arguments = format!(
        "bench increments --threads 1-3 --seconds 0.2 --json --svg {} --note here",
        file.display()
    );
    let document = json(&arguments);
    let picture = std::fs::read_to_string(&file).expect("the picture is written");
    let _ = std::fs::remove_file(file);
    assert_eq!(document["increments_exact"], true);
    let source = document["machine"]["chosen"]["source"].as_str().expect("a source");
    for threads in 1..=3 {
        let team = (threads, threads <= allowed(&document));
        for op in ["plain_add", "atomic_private", "atomic_shared", "thread_local"] {
            check_figure(list(&document, "increments"), op, "none", team);
        }
        check_figure(list(&document, "increments"), "counter_add", source, team);
    }
    assert!(document.get("results").is_none());
    // Four lines with a mark for each number of threads.
    assert_eq!(picture.matches("<circle").count(), 4 * 3);
    for said in ["percid Counter", "an atomic that all share", "prefers-color-scheme:dark", "here"]
    {
        assert!(picture.contains(said), "{said}");
    }
}

#[test]
fn mask_measures_one_thread_and_one_per_cpu() {
    let document = json("bench mask --seconds 0.2 --json");
    check_mask(&document);
    assert!(document.get("results").is_none());
    assert!(document.get("rows").is_none());
}

fn check_mask(document: &Value) {
    assert_eq!(document["mask_exact"], true);
    let rows = list(document, "mask");
    for team in [(1, false), (allowed(document), true)] {
        MASK.iter().for_each(|op| check_figure(rows, op, "none", team));
    }
    assert_eq!(rows.len(), 2 * MASK.len());
}

#[test]
fn sync_measures_every_operation_and_leaves_nothing_over() {
    let document = json("bench sync --seconds 0.2 --json");
    assert_eq!(document["sync_exact"], true);
    let rows = list(&document, "sync");
    let own = [
        "counter_add",
        "rw_lock_read",
        "domain_read",
        "rcu_cell_load",
        "arc",
        "budget_charge",
        "budget_load",
        "read_buffer",
    ];
    for op in ["plain_add", "std_rwlock_read", "std_arc", "atomic_budget"] {
        check_figure(rows, op, "none", (1, false));
    }
    for source in available_sources(&document) {
        own.iter().for_each(|op| check_figure(rows, op, source, (8, false)));
    }
    let ratios = list(&document, "sync_ratios");
    let beside = |to: &str| ratios.iter().filter(|ratio| ratio["to"] == to).count();
    assert!(beside("counter_add") > 0 && beside("std_rwlock_read") > 0);
    assert_eq!(beside("epoch_pin") > 0, cfg!(feature = "sync-peers"));
}

#[test]
fn alloc_measures_every_allocator_and_accounts_for_every_block() {
    let document = json("bench alloc --seconds 0.2 --idle-threads 3 --json");
    assert_eq!(document["alloc_exact"], true);
    let rows = list(&document, "alloc");
    for op in ["plain_add", "system_mixed", "system_shared"] {
        check_figure(rows, op, "none", (1, false));
    }
    for source in available_sources(&document) {
        check_figure(rows, "per_cpu_mixed", source, (8, false));
        check_figure(rows, "per_cpu_shared", source, (8, false));
    }
    let ratios = list(&document, "alloc_ratios");
    let beside = |to: &str| ratios.iter().filter(|ratio| ratio["to"] == to).count();
    assert!(beside("system_mixed") > 0 && beside("system_shared") > 0);
    assert_eq!(beside("mimalloc_mixed") > 0, cfg!(feature = "peers"));
    let idle = list(&document, "alloc_idle");
    assert_eq!(idle.len(), if cfg!(feature = "peers") { 4 } else { 2 });
    let own = idle.iter().find(|row| row["allocator"] == "per_cpu").expect("a row");
    assert_eq!(own["threads"], 3);
    assert!(own["cached"].as_u64().is_some_and(|bytes| bytes > 0), "{own}");
}

#[test]
fn wander_measures_every_counter_on_both_courses() {
    let document = json("bench wander --seconds 0.1 --json");
    check_wander(&document);
    assert!(document.get("mask").is_none());
    until_enough("strictly dense IDs follow by steals, extra IDs make them rare", |length| {
        let seconds = length.as_secs_f64();
        let document = json(&format!("bench wander --seconds {seconds} --json"));
        has_rare_steals(&document).then_some(())
    });
}

fn check_wander(document: &Value) {
    assert_eq!(document["wander_exact"], true);
    let rows = list(document, "wander");
    if allowed(document) == 1 {
        assert!(rows.is_empty());
        return;
    }
    let sources = available_sources(document);
    for course in ["forced", "pipe"] {
        for counter in ["none", "table", "table-strict", "atomic"] {
            let row = rows.iter().find(|row| row["course"] == course && row["counter"] == counter);
            let missing = counter.starts_with("table") && !sources.contains(&"table");
            assert_eq!(row.is_none(), missing, "{course} {counter}");
            assert!(row.is_none_or(|row| row["moves"].as_u64() > Some(0)), "{row:?}");
        }
    }
}

/// Returns `true` if threads that wake each other steal with strictly dense IDs, and far less with
/// extra IDs; also if there is nothing to compare.
fn has_rare_steals(document: &Value) -> bool {
    let steals = |counter: &str| {
        let mut rows = list(document, "wander").iter();
        let row = rows.find(|row| row["course"] == "forced" && row["counter"] == counter);
        row.map(|row| row["steals_per_move"].as_f64().expect("a number"))
    };
    match (steals("table"), steals("table-strict")) {
        (Some(relaxed), Some(strict)) => relaxed < strict / 2.0,
        _ => true,
    }
}

#[test]
fn every_source_can_be_the_chosen_one_and_everything_is_measured_with_every_team() {
    for source in available_sources(&json("info --json")) {
        let output =
            bounded(command("bench ops --seconds 0.1 --json").env("PERCID_SOURCE", source));
        assert!(output.status.success(), "{source}");
        let document = percid::document(&output);
        assert_eq!(document["machine"]["chosen"]["source"], source);
        check_ops(&document);
        assert!(document.get("rows").is_none());
    }
}

#[test]
fn intermittent_counts_what_must_hold() {
    // The kernel may reclaim a page at any time, but usually does not.
    until("bursts without a fault where memory is local", || {
        let document = json("bench intermittent --delay-ms 1,20 --bursts 4 --warmup 100 --json");
        check_rows(&document, &[1, 20]);
        for row in list(&document, "rows") {
            assert_eq!(row["threads"].as_u64(), Some(allowed(&document)));
            check_bursts(row, 4);
            check_locality(row);
        }
        assert!(document.get("results").is_none());
        let local = list(&document, "rows").iter().filter(|row| is_local(row));
        let mut faults = local.map(|row| row["minor_faults_per_burst"].as_f64());
        faults.all(|faults| faults == Some(0.0)).then_some(())
    });
}

/// Returns `true` if the index stays with the CPU.
fn is_local(row: &Value) -> bool {
    row["index"] == "cpu" || row["index"] == "table"
}

/// Checks that no burst is lost: a burst is timed, or the thread was preempted during it.
fn check_bursts(row: &Value, per_thread: u64) {
    let number = |key: &str| row[key].as_u64().expect("a number");
    let (timed, preempted) = (number("bursts_timed"), number("bursts_preempted"));
    let bursts = per_thread * number("threads");
    // The first burst of each thread, a hot one, is repeated if it was interrupted.
    assert!(timed <= bursts && timed + preempted >= bursts, "{row}");
    assert!(timed >= number("threads"), "{row}");
}

/// Checks that every index of this machine is there, once per delay.
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
    if is_local(row) {
        assert_eq!(number("indices_per_cpu_max"), 1.0, "{row}");
        assert_eq!(number("ids_used"), number("threads"), "{row}");
    }
    // The negative control: an index that changes is reported as changing.
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
    let prefaulted = "bench intermittent --delay-ms 1 --warmup 10 --prefault --json";
    until("a burst without a fault", || (first_faults(prefaulted) == 0.0).then_some(()));
}

#[test]
fn one_cpu_is_enough() {
    let machine = json("info --json");
    let first = allowed_cpus(&machine).next().expect("one is allowed")["cpu"].clone();
    let arguments = format!("bench intermittent --delay-ms 1 --warmup 10 --cpus {first} --json");
    let document = json(&arguments);
    assert_eq!(document["selection"]["cpus"], serde_json::json!([first]));
    list(&document, "rows").iter().for_each(|row| assert_eq!(row["threads"], 1));
}

fn allowed_cpus(document: &Value) -> impl Iterator<Item = &Value> {
    list(&document["machine"], "cpus").iter().filter(|cpu| cpu["allowed"] == true)
}

/// Returns the number of different values of `key`.
fn distinct<'a>(cpus: impl Iterator<Item = &'a Value>, key: &str) -> usize {
    let values: std::collections::BTreeSet<Option<u64>> =
        cpus.map(|cpu| cpu[key].as_u64()).collect();
    values.len()
}

#[test]
fn parts_of_the_machine_follow_its_topology() {
    for part in ["one-l3", "one-per-l3", "cores", "threads"] {
        let arguments =
            format!("bench intermittent --cpus {part} --delay-ms 1 --warmup 10 --index cpu --json");
        let document = json(&arguments);
        let selection = &document["selection"];
        let is_in = |cpu: &&Value| list(selection, "cpus").contains(&cpu["cpu"]);
        let chosen = || allowed_cpus(&document).filter(is_in);
        let all = || allowed_cpus(&document);
        assert_eq!(chosen().count(), list(selection, "cpus").len(), "{selection}");
        match part {
            "one-l3" => assert_eq!(distinct(chosen(), "l3"), 1, "{selection}"),
            "one-per-l3" => assert_eq!(chosen().count(), distinct(all(), "l3"), "{selection}"),
            "cores" => assert_eq!(chosen().count(), distinct(all(), "core"), "{selection}"),
            _ => assert_eq!(chosen().count(), all().count(), "{selection}"),
        }
        if part != "threads" {
            assert_eq!(distinct(chosen(), "core"), chosen().count(), "{selection}");
        }
        assert_eq!(selection["lacks"].is_string(), chosen().count() == 1, "{selection}");
        let rows = list(&document, "rows");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["threads"].as_u64(), Some(chosen().count() as u64));
    }
}

/// Returns the processes that a running program has started.
fn children(of: &std::process::Child) -> Vec<String> {
    let path = format!("/proc/{pid}/task/{pid}/children", pid = of.id());
    let text = std::fs::read_to_string(path).expect("the kernel tells a process's children");
    text.split_whitespace().map(str::to_owned).collect()
}

/// Waits until it has as many.
fn children_when(of: &std::process::Child, count: usize) -> Vec<String> {
    until(&format!("{count} children"), || Some(children(of)).filter(|it| it.len() == count))
}

fn is_there(process: &str) -> bool {
    std::path::Path::new("/proc").join(process).exists()
}

#[test]
fn competitors_run_beside_the_benchmark_and_end_with_it() {
    let cpus = allowed(&json("info --json")) as usize;
    let competing = |others: usize| {
        start(&format!(
            "bench intermittent --overcommit {others} --other-memory 64 --delay-ms 10000 --warmup 10"
        ))
    };
    let mut overcommitted = competing(2);
    let competitors = children_when(&overcommitted, 2 * cpus);
    // Each may run on one CPU only, and uses it.
    for process in &competitors {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}"));
        let spent = || {
            let stat = read("stat").expect("it runs");
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            // User time is the fourteenth field; the number and the name are the first two.
            after_name.split_whitespace().nth(11).and_then(|ticks| ticks.parse::<u64>().ok())
        };
        let before = spent();
        until("it spends time on its CPU", || (spent() != before).then_some(()));
        let status = read("status").expect("it runs");
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert!(list.is_some_and(|list| list.trim().parse::<u32>().is_ok()), "{list:?}");
    }
    // The competitors end with the program, for any reason.
    overcommitted.kill().expect("it runs");
    overcommitted.wait().expect("it has ended");
    until("the end of all", || {
        (!competitors.iter().any(|process| is_there(process))).then_some(())
    });
    // The control: without the option there are no competitors. They would exist before the threads
    // that take turns.
    let mut alone = competing(0);
    until("threads that take turns", || has_thread(&alone, "percid-turns").then_some(()));
    assert!(children(&alone).is_empty());
    alone.kill().expect("it runs");
    alone.wait().expect("it has ended");
}

#[test]
fn every_number_of_competitors_has_its_rows() {
    let arguments = "bench intermittent --overcommit 0,1 --other-memory 0,64 --delay-ms 1,2 --warmup 10 \
                     --index cpu,thread --repetitions 2 --json";
    let document = json(arguments);
    let found: Vec<(u64, u64, Option<u64>, &str)> = list(&document, "rows")
        .iter()
        .map(|row| {
            let number = |key: &str| row[key].as_u64().expect("a number");
            check_bursts(row, 2 * 5);
            let index = row["index"].as_str().expect("a name");
            (number("delay_ms"), number("overcommit"), row["other_memory_kib"].as_u64(), index)
        })
        .collect();
    let indices = ["cpu", "thread"];
    let competing = [(0, None), (1, Some(0)), (1, Some(64))];
    let settings = [1, 2].into_iter().flat_map(|delay| competing.map(|of| (delay, of)));
    let expected: Vec<_> = settings
        .flat_map(|(delay, (others, kib))| indices.map(|index| (delay, others, kib, index)))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_published_benchmark_stands_beside_its_forecast() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("published-{}.html", std::process::id()));
    let arguments = format!(
        "bench intermittent --published --repetitions 2 --delay-ms 1,10 --warmup 100 --json --html {}",
        file.display()
    );
    let document = json(&arguments);
    let published = &document["published"];
    let page = std::fs::read_to_string(&file);
    let _ = std::fs::remove_file(file);
    let page = page.expect("the page is written");
    let parts = list(published, "parts");
    assert_eq!(parts.len(), 4);
    let measured = parts.iter().filter(|part| part["measured"] == true);
    let sources = available_sources(&document);
    let indices = 1 + ["kernel", "table"].iter().filter(|name| sources.contains(name)).count();
    let rows = list(published, "rows");
    assert_eq!(rows.len(), measured.count() * 2 * indices);
    for part in parts.iter().filter(|part| part["measured"] == false) {
        assert!(part["lacks"].is_string() || part["same_as"].is_string(), "{part}");
    }
    rows.iter().for_each(|row| check_published(row, &page));
    check_page("published", &page, 1, 1);
    let errors: Vec<f64> =
        rows.iter().map(|row| row["forecast_error"].as_f64().expect("an error")).collect();
    if errors.is_empty() {
        assert!(published["forecast"].is_null());
        return;
    }
    let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    assert_eq!(published["forecast"]["mean_error"].as_f64(), Some(mean));
    assert_eq!(published["forecast"]["worst_error"].as_f64(), Some(worst));
}

fn check_published(row: &Value, page: &str) {
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
    assert_eq!(row["repetitions"], 2, "{row}");
    let measured = number("measured_ns");
    assert!(number("measured_min_ns") <= measured && measured <= number("measured_max_ns"));
    for (forecast, error) in [("forecast_ns", "forecast_error"), ("with_hot_ns", "with_hot_error")]
    {
        assert_eq!(number(error), number(forecast) / measured - 1.0, "{row}");
    }
    // 10 ms were published, 1 ms was not.
    assert_eq!(row["published_ns"].is_f64(), row["delay_ms"] == 10, "{row}");
    if row["index"] != "kernel" {
        assert_eq!(row["indices_per_cpu_max"], 1, "{row}");
    }
    assert!(page.contains(&format!("{measured:.0}")), "{row}");
}

/// The document and the report of all parts.
static EVERYTHING: LazyLock<(Value, String)> = LazyLock::new(|| {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("bench-{}.html", std::process::id()));
    let document = json(&format!("bench --seconds 0.1 --json --html {}", file.display()));
    let page = std::fs::read_to_string(&file).expect("the page is written");
    let _ = std::fs::remove_file(file);
    (document, page)
});

#[test]
fn everything_is_one_document_with_the_keys_of_all_parts() {
    let without_a_word = json("--seconds 0.1 --json");
    for document in [&without_a_word, &EVERYTHING.0] {
        check_ops(document);
        check_mask(document);
        check_wander(document);
        check_rows(document, &[10]);
        check_memory(&document["memory"]);
    }
}

fn check_memory(memory: &Value) {
    let number = |key: &str| memory[key].as_f64().unwrap_or_else(|| panic!("{key}: {memory}"));
    let copies = number("counters") * number("ids");
    assert!(number("ids") >= 1.0 && number("handles") >= 8.0 * number("counters"));
    // The written memory is resident: at least about eight bytes, and less than a cache line.
    assert!((7.5 * copies..64.0 * copies).contains(&number("copies")), "{memory}");
    let total = number("handles") + number("copies");
    assert_eq!(number("per_counter_and_id"), total / copies);
}

/// Returns the program that prints lines, whose colours depend on it and these variables.
fn lines(seconds: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = command(&format!("--seconds {seconds}"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
    command
}

/// Output of `percid` into a pipe, with no argument except the time.
static PLAIN: LazyLock<String> = LazyLock::new(|| {
    let output = bounded(&mut lines("0.1", &[]));
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
});

/// Returns the first lines, after Ctrl-C.
fn first_lines(variables: &[(&str, &str)]) -> String {
    until_enough("something that was measured", |pause| {
        let child = lines("600", variables).spawn().expect("it starts");
        wait_until_it_listens(&child);
        std::thread::sleep(pause);
        let text = String::from_utf8(interrupted(child).stdout).expect("text");
        text.contains("percid Counter").then_some(text)
    })
}

#[test]
fn without_arguments_few_plain_lines_are_printed() {
    let text = &*PLAIN;
    assert!((10..=25).contains(&text.lines().count()), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let operations = accountable().chain(allocators()).chain(PERCID).chain(MASK);
    for name in operations.filter(|name| name.contains('_')) {
        assert!(!text.contains(name), "{name}:\n{text}");
    }
    for said in ["percid Counter", "IDs stay with their CPU", "Memory", "Exact", "--full"] {
        assert!(text.contains(said), "{said}:\n{text}");
    }
}

#[test]
fn colours_are_for_terminals_and_for_those_who_want_them() {
    let has_colours = |variables: &[(&str, &str)]| first_lines(variables).contains('\x1b');
    assert!(!PLAIN.contains('\x1b'), "not in a pipe");
    assert!(has_colours(&[("CLICOLOR_FORCE", "1")]), "the control");
    assert!(!has_colours(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn the_page_has_all_that_the_document_has() {
    let (document, page) = &*EVERYTHING;
    for figure in list(document, "results").iter().chain(list(document, "mask")) {
        let (title, ns) = (figure["title"].as_str().expect("a title"), written(&figure["ns_min"]));
        assert!(page.contains(&title.replace('\'', "&#39;")) && page.contains(&ns), "{figure}");
    }
    for row in list(document, "wander").iter().chain(list(document, "rows")) {
        let ns = if row["ns_median"].is_f64() { &row["ns_median"] } else { &row["ns_hot"] };
        assert!(page.contains(&written(ns)), "{row}");
    }
    check_page("bench", page, 9, 1);
}

/// Formats a value as reports do: whole numbers without a point.
fn written(figure: &Value) -> String {
    figure.as_f64().unwrap_or_else(|| panic!("{figure}: no number")).to_string()
}

/// Checks a report. Some sections, with a chart each, need several CPUs: with one CPU they are
/// empty.
fn check_page(name: &str, html: &str, charts: usize, of_several: usize) {
    let is_alone = allowed(&json("info --json")) == 1;
    let nothing = if is_alone { of_several } else { 0 };
    check_results_but(html, nothing);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    look_at_empty(folder, name, html, charts, nothing);
}

#[test]
fn each_part_has_a_page() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let intermittent = "intermittent --bursts 2 --delay-ms 1 --warmup 20";
    for (part, charts, of_several) in [("mask", 2, 0), ("wander", 1, 1), (intermittent, 1, 0)] {
        let name = part.split(' ').next().expect("a word");
        let file = folder.join(format!("part-{name}-{}.html", std::process::id()));
        let seconds = if part == intermittent { "" } else { "--seconds 0.1" };
        let output =
            bounded(&mut command(&format!("bench {part} {seconds} --html {}", file.display())));
        assert!(output.status.success(), "{part}: {}", String::from_utf8_lossy(&output.stderr));
        let html = std::fs::read_to_string(&file).expect("the page is written");
        let _ = std::fs::remove_file(file);
        assert!(html.contains(&format!("<h1>percid bench {name}</h1>")), "{part}");
        check_page(&format!("part-{name}"), &html, charts, of_several);
    }
}

#[test]
fn text_shows_every_row() {
    let output = bounded(&mut command("bench --seconds 0.1 --full"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    let ops = accountable().chain(allocators()).chain(PERCID).chain(MASK).chain(INDICES);
    let families = ["counters", "lists and pools", "locks", "histograms", "rings", "masks"];
    for word in ops.chain(families) {
        assert!(text.contains(word), "{word}:\n{text}");
    }
}

#[cfg(feature = "metrics-peers")]
#[test]
fn metrics_compares_percids_with_others() {
    let document = json("bench metrics --seconds 0.5 --json");
    assert_eq!(document["metrics_exact"], true);
    let rows = list(&document, "results");
    for op in ["counter_bound", "counter_macro", "histogram_bound", "family_lookup"] {
        let of_op: Vec<&Value> = rows.iter().filter(|row| row["op"] == op).collect();
        let is_percids =
            |row: &&&Value| row["peer"].as_str().is_some_and(|it| it.starts_with("percid"));
        let percids = of_op.iter().filter(is_percids).count();
        assert!(percids >= 3 && of_op.len() > percids, "{op}");
        let times = of_op.iter().filter(|row| row["ns_min"].as_f64() > Some(0.0)).count();
        assert_eq!(times, of_op.len(), "{op}");
    }
    assert_eq!(list(&document, "sizes").len(), if cfg!(target_os = "linux") { 7 } else { 0 });
}

#[cfg(not(feature = "metrics-peers"))]
#[test]
fn metrics_says_how_to_build_what_it_needs() {
    let output = bounded(&mut command("bench metrics"));
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--features metrics-peers") && said.lines().count() == 1, "{said}");
    assert!(output.stdout.is_empty());
}
