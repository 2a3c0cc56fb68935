//! `percid trace`: what it prints, what it refuses, what it writes. Formats and replays are judged
//! where they are made.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use percid_browser::Browser;
use serde_json::Value;

use crate::program::{PATIENCE, command, json, path, run, stderr, stdout};

/// A real trace: many short-lived programs with strange names, recorded by perf.
const TRACE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../percid-trace/tests/fixtures/sched.data");

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trace-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().unwrap_or_else(|| panic!("{key}: {of}"))
}

#[test]
fn wrong_arguments_and_files_get_one_line_that_says_what_is_expected() {
    let folder = folder("wrong");
    let nonsense = folder.join("nonsense");
    fs::write(&nonsense, "nothing that anybody recorded\n").expect("a file");
    let short = folder.join("short.data");
    fs::write(&short, &fs::read(TRACE).expect("the fixture")[..3000]).expect("a file");
    let (nonsense, short) = (path(&nonsense), path(&short));
    let cases: [(&[&str], &str); 31] = [
        (
            &[],
            "a subcommand is expected; allowed are record, top, recover, info, convert, replay, check-ids",
        ),
        (&["nonsense"], "record, top, recover, info, convert, replay, check-ids"),
        (&["replay"], "<FILE>"),
        (&["replay", TRACE, "--policy", "linux-7"], "percid-table"),
        (&["replay", TRACE, "--machine", "nowhere"], "epyc-9654"),
        (&["replay", TRACE, "--limit", "0"], "1 to 1000000"),
        (&["replay", TRACE, "--area-bytes", "0"], "1 to"),
        (&["replay", TRACE, "--process", "nobody"], "--process nobody"),
        (&["replay", "no-such-file"], "no-such-file"),
        (&["latency", TRACE, TRACE], "`latency` takes FILE and no further one; allowed are --from"),
        (&["compare", TRACE, TRACE, TRACE], "`compare` takes FILE and OTHER and no further one"),
        (&["latency", TRACE, "--nonsense"], "found; allowed are --from"),
        (&["info", TRACE, "--from", "soon"], "0 to 1000000000"),
        (&["info", TRACE, "--from", "99999"], "s long"),
        (&["replay", TRACE, "--from", "0.002", "--to", "0.001"], "after --from"),
        (&["info", TRACE, "--process", "nobody"], "--process nobody"),
        (&["replay", nonsense], "line 1"),
        (&["info", short], "byte"),
        (&["convert", TRACE, "trace.txt"], ".parquet, .pftrace"),
        (&["convert", TRACE, "/no/folder/x.parquet"], "folder that exists"),
        (&["convert", TRACE, "x.parquet", "--policy", "per-cpu"], ".pftrace"),
        (&["record", "--pid", "0"], "1 to 4194304"),
        (&["record", "--max-file-size", "5"], "sizes from 64K to 1024T"),
        (&["record", "--flight-recorder", "64M", "--max-file-size", "1G"], "--max-file-size"),
        (&["record", "--counters", "cyles", "--", "true"], "expected cycles, instructions"),
        (&["record", "--counters", "cycles,cycles", "--", "true"], "twice"),
        (&["record", "--counters", "r1,r2,r3,r4,r5,r6,r7,r8,r9"], "9 counters, expected at most 8"),
        (&["counters", TRACE], "`percid trace record --counters cycles,instructions,cache-misses`"),
        (&["recover", TRACE], "ends in .partial"),
        (&["recover", TRACE, "-o", "x.parquet"], "byte 0"),
        (&["record", "--pid", "1", "--", "true"], "--pid"),
    ];
    for (arguments, expected) in cases {
        let output = run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_trace_may_come_from_standard_input_and_be_compressed() {
    let fixtures = Path::new(TRACE).with_file_name("trace-cmd.zstd.txt.gz");
    let kinds = |of: &Value| of["kinds"].to_string();
    let named = json(&["info", path(&fixtures)]);
    let mut child = command(&["info", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let packed = fs::read(&fixtures).expect("a fixture");
    child.stdin.take().expect("a pipe").write_all(&packed).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    let piped: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!((piped["file"].as_str(), kinds(&piped)), (Some("-"), kinds(&named)));
    // Nothing is on standard input here.
    let output = run(&["info", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("-: line 1: no line is that of an event"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn names_of_threads_do_not_reach_the_terminal_as_they_are() {
    let trace = folder("names").join("trace.txt");
    let switch = "sched_switch: prev_comm=\u{1b}[2Jx prev_pid=71 prev_prio=120 prev_state=S ==> next_comm=b next_pid=72 next_prio=98";
    fs::write(&trace, format!("               a-71    [003] d..2.  5.000001: {switch}\n"))
        .expect("a file");
    let arguments = ["replay", path(&trace), "--machine", "epyc-9654"];
    for more in [&["--process", "nobody"][..], &["--policy", "per-cpu"]] {
        let output = run(&[&arguments, more].concat());
        let said = stdout(&output) + &stderr(&output);
        assert!(said.contains(r"\u{1b}[2Jx") && !said.contains('\u{1b}'), "{said:?}");
    }
}

#[test]
fn a_trace_without_processes_is_called_so() {
    let folder = folder("nobody");
    let (trace, page) = (folder.join("trace.txt"), folder.join("report.html"));
    let switch = "sched_switch: prev_comm=swapper/3 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=swapper/3 next_pid=0 next_prio=120";
    fs::write(&trace, format!("          <idle>-0    [003] d..2.  5.000001: {switch}\n"))
        .expect("a file");
    let output = run(&["replay", path(&trace), "--machine", "epyc-9654", "--html", path(&page)]);
    let said = "No process runs in the trace.";
    assert!(stdout(&output).contains(said), "{}", stdout(&output));
    let page = fs::read_to_string(&page).expect("the page");
    assert!(page.contains("0 processes were replayed: no process runs in the trace."));
    assert!(!page.contains("Time line"));
    let output = run(&["replay", path(&trace), "--process", "nobody"]);
    assert!(stderr(&output).trim_end().ends_with("; none runs in it"), "{}", stderr(&output));
}

#[test]
fn a_report_never_takes_the_place_of_the_trace() {
    let folder = folder("spared");
    let (trace, link) = (folder.join("sched.data"), folder.join("report.html"));
    fs::copy(TRACE, &trace).expect("a copy");
    symlink(&trace, &link).expect("a link");
    for page in [&trace, &link] {
        let output = run(&["replay", path(&trace), "--policy", "per-cpu", "--html", path(page)]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("this is the trace"), "{}", stderr(&output));
    }
    assert_eq!(fs::read(&trace).ok(), fs::read(TRACE).ok());
}

#[test]
fn help_is_a_manual() {
    let parts =
        ["", "record", "recover", "info", "convert", "replay", "check-ids", "compare", "counters"];
    for part in parts.into_iter().chain(QUESTIONS.map(|(question, _)| question)) {
        let arguments: Vec<&str> = part.split_whitespace().chain(["--help"]).collect();
        let output = run(&arguments);
        let help = stdout(&output);
        assert!(output.status.success() && stderr(&output).is_empty());
        for section in ["Usage: percid trace", "Examples:", "Exit status:"] {
            assert!(help.contains(section), "{part}: no {section}");
        }
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{part}");
    }
}

#[test]
fn a_replay_says_the_same_as_text_and_as_json() {
    let arguments = ["replay", TRACE, "--machine", "epyc-9654", "--policy", "per-cpu,percid-table"];
    let document = json(&arguments);
    let processes = list(&document, "processes");
    assert!(processes.len() > 3, "{document}");
    for process in processes {
        let policies = list(process, "policies");
        assert_eq!(policies.len(), 2);
        assert!(!list(process, "advice").is_empty());
        for policy in policies {
            let shares = ["same_cpu", "same_core", "same_l3", "same_node"];
            let shares = shares.map(|share| policy[share].as_f64().expect("a share"));
            assert!(shares.is_sorted() && shares[0] >= 0.0 && shares[3] <= 1.0, "{policy}");
            let (ids, bytes) = (&policy["ids_used"], &policy["memory_bytes"]);
            assert_eq!(ids.as_u64().map(|ids| ids * 16384), bytes.as_u64());
        }
    }
    let text = stdout(&run(&[&arguments[..], &["--limit", "1000"]].concat()));
    for process in processes {
        assert!(text.contains(&format!("({})", process["process"])), "{process}");
        let advice = list(process, "advice")[0].as_str().expect("a sentence");
        assert!(text.contains(advice), "{advice}");
    }
}

/// A file of `perf record -F 10 -- CMD`: samples, and only switches away from the command's
/// threads.
const SAMPLED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../percid-trace/tests/fixtures/forks.data");

#[test]
fn what_may_be_concluded_comes_first_and_nothing_is_advised_without_it() {
    for (trace, level) in [(SAMPLED, "insufficient"), (TRACE, "limited")] {
        let arguments = ["replay", trace, "--machine", "epyc-9654", "--policy", "per-cpu"];
        let document = json(&arguments);
        assert_eq!(document["quality"]["level"], level);
        let advice = list(&document, "processes").iter().map(|process| list(process, "advice"));
        let advises = advice.into_iter().any(|advice| !advice.is_empty());
        assert_eq!(advises, level == "limited", "{document}");
        for arguments in [&arguments[..], &["info", trace]] {
            let text = stdout(&run(arguments));
            let first = text.lines().next().unwrap_or("");
            assert!(first.starts_with("Quality: "), "{first}");
            assert_eq!(first.contains("perf record -F 10"), level == "insufficient", "{first}");
        }
        assert_eq!(json(&["info", trace])["quality"], document["quality"]);
    }
}

/// The subcommands that ask questions, and what their documents have figures in.
const QUESTIONS: [(&str, &str); 5] = [
    ("latency", "processes"),
    ("preemptions", "threads"),
    ("migrations", "threads"),
    ("usage", "cpus"),
    ("advise", "findings"),
];

#[test]
fn questions_begin_with_what_may_be_concluded_and_have_no_figures_without_it() {
    for (question, figures) in QUESTIONS {
        for (trace, level) in [(SAMPLED, "insufficient"), (TRACE, "limited")] {
            let document = json(&[question, trace]);
            assert_eq!(document["quality"]["level"], level, "{question}");
            assert_eq!(document[figures].is_null(), level == "insufficient", "{question}");
            let text = stdout(&run(&[question, trace]));
            assert!(text.starts_with("Quality: "), "{question}: {text}");
            let refuses = text.contains("No figures are given.");
            assert_eq!(refuses, level == "insufficient", "{question}: {text}");
        }
        let output = run(&[question, TRACE, "--process", "nobody"]);
        assert_eq!(output.status.code(), Some(2), "{question}");
        let late = run(&[question, TRACE, "--from", "99999"]);
        assert!(stderr(&late).contains("s long"), "{question}: {}", stderr(&late));
    }
}

#[test]
fn questions_have_pages() {
    let folder = folder("questions");
    for (question, _) in QUESTIONS {
        let page = folder.join("report.html");
        let output = run(&[question, TRACE, "--html", path(&page)]);
        assert!(output.status.success(), "{question}: {}", stderr(&output));
        let html = fs::read_to_string(&page).expect("the page");
        assert!(html.contains("Quality: ") && html.contains("<table"), "{question}");
    }
}

#[test]
fn counters_are_told_alike_as_text_as_json_and_on_a_page() {
    let trace = Path::new(TRACE).with_file_name("counters.parquet");
    let page = folder("counters").join("report.html");
    let arguments = ["counters", path(&trace), "--machine", "epyc-9654", "--threads"];
    let document = json(&arguments);
    assert_eq!(document["counters"], serde_json::json!(["page-faults", "task-clock"]));
    let sum = |of: &[Value]| -> u64 { of.iter().filter_map(|line| line["turns"].as_u64()).sum() };
    let [processes, threads, distances] =
        ["processes", "threads", "distances"].map(|key| list(&document, key));
    assert_eq!([sum(processes), sum(threads), sum(distances)], [58; 3]);
    assert_eq!([&document["turns"], &document["switches"]], [58; 2]);
    let faults = &list(&processes[0], "counted")[0];
    assert_eq!([&faults["counter"], &faults["median"]], [&"page-faults".into(), &Value::from(37)]);
    let output = run(&[&arguments[..], &["--html", path(&page)]].concat());
    let (text, html) = (stdout(&output), fs::read_to_string(&page).expect("the page"));
    let mean = format!("{:.2}", faults["mean"].as_f64().expect("a mean"));
    for told in ["after others", "< 10 ms", "Counted in 58 turns", &mean] {
        let escaped = told.replace('<', "&lt;");
        assert!(text.contains(told) && html.contains(&escaped), "{told}: {text}");
    }
    // The modelled costs are those of the machine.
    let warm = |of: &Value| {
        list(of, "distances").iter().map(|line| line["warm_ns"].clone()).collect::<Vec<_>>()
    };
    let other = json(&["counters", path(&trace), "--machine", "ivy-bridge-ex"]);
    assert!(other["threads"].is_null() && warm(&other) != warm(&document));
    let kinds = json(&["info", path(&trace)])["kinds"].to_string();
    assert!(kinds.contains(r#"{"count":58,"event":"count"}"#), "{kinds}");
}

/// A counter that the processor does not have is refused before the command runs, with a list of
/// the available ones.
#[test]
fn a_counter_that_is_not_there_is_refused_before_anything_runs() {
    let folder = folder("no-counter");
    if !may_record(&folder) {
        return;
    }
    let (file, ran) = (folder.join("trace.parquet"), folder.join("ran"));
    let counted = |counters| {
        run(&["record", "-o", path(&file), "--counters", counters, "--", "touch", path(&ran)])
    };
    let refused = counted("task-clock,rffffffffffffffff");
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("rffffffffffffffff") || said.contains("perf"), "{said}");
    assert!(!ran.exists() && !file.exists() && !folder.join("trace.parquet.partial").exists());
    let permitted = said.contains("task-clock, page-faults");
    assert_eq!(counted("task-clock").status.success(), permitted, "{said}");
    assert_eq!(ran.exists(), permitted, "the control");
}

#[test]
fn latencies_are_told_alike_as_text_and_as_json() {
    let document = json(&["latency", TRACE]);
    let processes = list(&document, "processes");
    let sums = processes.iter().map(|process| process["run_queue"]["sum_ns"].as_u64());
    let sums: Vec<u64> = sums.flatten().collect();
    assert!(sums.len() > 3 && sums.is_sorted_by(|a, b| a >= b), "{sums:?}");
    assert_eq!(document["all"]["run_queue"]["sum_ns"].as_u64(), Some(sums.iter().sum()));
    let text = stdout(&run(&["latency", TRACE, "--limit", "1000"]));
    for process in processes {
        assert!(text.contains(&format!("({})", process["process"])), "{process}");
        let counts = list(process, "threads").iter().map(|thread| &thread["run_queue"]["count"]);
        let counts: u64 = counts.filter_map(Value::as_u64).sum();
        assert_eq!(process["run_queue"]["count"].as_u64(), Some(counts));
    }
    let longest = list(&document, "worst")[0]["ns"].as_u64();
    assert_eq!(longest.is_some(), text.contains("The longest waits:"));
    assert!(json(&["latency", TRACE, "--worst", "0"])["worst"] == Value::Array(Vec::new()));
}

#[test]
fn a_recording_compared_with_itself_does_not_differ_and_with_a_part_of_itself_it_does() {
    let folder = folder("compare");
    let part = folder.join("part.parquet");
    json(&["convert", TRACE, path(&part), "--from", "0.03"]);
    let same = json(&["compare", TRACE, TRACE]);
    assert!(list(&same, "names").len() > 3, "{same}");
    assert!(list(&same, "names").iter().all(|pair| pair["a"] == pair["b"]));
    let other = json(&["compare", TRACE, path(&part)]);
    assert!(list(&other, "names").iter().any(|pair| pair["a"] != pair["b"]), "the control");
    let name = list(&same, "names")[0]["name"].as_str().expect("a name");
    let one = json(&["compare", TRACE, path(&part), "--process", name]);
    assert_eq!(list(&one, "names").len(), 1);
    let page = folder.join("report.html");
    let text = stdout(&run(&["compare", TRACE, TRACE, "--html", path(&page)]));
    assert!(text.contains("x 1.00") && text.starts_with("A: Quality: "), "{text}");
    // The processes of this recording with a handful of waits, and the one with thousands.
    assert!(text.contains("too few") && text.contains("between"), "{text}");
    assert!(fs::read_to_string(&page).is_ok_and(|page| page.contains("x 1.00")));
    let nobody = run(&["compare", TRACE, TRACE, "--process", "nobody at all"]);
    assert_eq!(nobody.status.code(), Some(2), "{}", stderr(&nobody));
}

#[test]
fn nothing_is_compared_with_an_insufficient_recording() {
    for arguments in [["compare", TRACE, SAMPLED], ["compare", SAMPLED, TRACE]] {
        let document = json(&arguments);
        assert_eq!(document["names"], Value::Null);
        let text = stdout(&run(&arguments));
        assert!(text.contains("No figures are given.") && !text.contains("B/A"), "{text}");
    }
}

/// A walk of the kernel's NUMA scan, of Linux 6.12.
const SCAN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../percid-trace/tests/fixtures/numa-scan.parquet");

#[test]
fn a_walk_of_the_numa_scan_is_replayed_under_all_rules() {
    let arguments = ["replay", SCAN, "--policy", "percid-table", "--machine", "epyc-9654"];
    let document = json(&arguments);
    let scan = &document["numa_scan"];
    assert_eq!(scan["kernel_rules"], "linux-6.12");
    let process = &list(scan, "processes")[0];
    assert_eq!((&process["source"], &process["kernel"]["pieces"]), (&"probes".into(), &72.into()));
    let of = |name: &str| {
        let found = list(process, "rules").iter().find(|rules| rules["rules"] == name);
        found.unwrap_or_else(|| panic!("{name}: {process}"))
    };
    let own = of("linux-6.12");
    assert_eq!((&own["same"], &own["first_difference"]), (&1.0.into(), &Value::Null));
    assert!(of("base")["same"].as_f64().is_some_and(|same| same < 0.9), "{}", of("base"));
    assert!(of("base")["first_difference"]["time_ns"].as_u64().is_some());
    let text = stdout(&run(&arguments));
    let row = text.lines().find(|line| line.trim_start().starts_with("linux-6.12 *"));
    let row = row.unwrap_or_else(|| panic!("{text}"));
    assert!(row.trim_end().ends_with("100.0"), "{row}");
    let other = ["replay", TRACE, "--policy", "percid-table", "--machine", "epyc-9654"];
    assert_eq!(json(&other)["numa_scan"], Value::Null);
    assert!(!stdout(&run(&other)).contains("NUMA"));
}

#[test]
fn moves_are_a_number_without_a_machine_and_tell_how_far_on_one() {
    let info = json(&["info", TRACE]);
    let replay = json(&["replay", TRACE, "--machine", "epyc-9654", "--policy", "per-cpu"]);
    let mut moves = 0;
    for process in list(&replay, "processes") {
        let same = |other: &&Value| {
            other["process"] == process["process"] && other["begin_ns"] == process["begin_ns"]
        };
        let known = list(&info, "processes").iter().find(same).expect("the same processes");
        let far = ["same_core", "same_l3", "same_node", "other_node"];
        let far = far.map(|far| process["moves"][far].as_u64().expect("a number"));
        assert_eq!(known["moves"].as_u64(), Some(far.iter().sum()), "{process}");
        moves += far.iter().sum::<u64>();
    }
    assert!(moves > 0, "threads that moved");
}

#[test]
fn only_the_processes_that_were_asked_for_are_shown() {
    let all = json(&["replay", TRACE, "--machine", "epyc-9654", "--policy", "per-cpu"]);
    let wanted = list(&all, "processes")[1].clone();
    let number = wanted["process"].to_string();
    let some = json(&[
        "replay",
        TRACE,
        "--machine",
        "epyc-9654",
        "--policy",
        "per-cpu",
        "--process",
        &number,
    ]);
    assert!(list(&some, "processes").contains(&wanted), "the same figures as beside the others");
    assert!(list(&some, "processes").iter().all(|process| process["process"] == wanted["process"]));
}

#[test]
fn a_window_has_the_switches_of_its_time_and_parts_add_up() {
    let folder = folder("window");
    let switches = |arguments: &[&str]| {
        let document = json(arguments);
        document["quality"]["switches"].as_u64().expect("a number")
    };
    let whole = json(&["info", TRACE]);
    let length = whole["duration_ns"].as_u64().expect("a number") as f64 / 1e9;
    let middle = format!("{:.9}", length / 2.0);
    let part = folder.join("part.parquet");
    let first = switches(&["info", TRACE, "--to", &middle]);
    let second = switches(&["info", TRACE, "--from", &middle]);
    assert!(first > 0 && second > 0, "{first} and {second}");
    let inferred = whole["quality"]["inferred"].as_u64().expect("a number");
    let all = switches(&["info", TRACE]);
    assert!((first + second).abs_diff(all) <= inferred, "{first} + {second}, {all}");
    json(&["convert", TRACE, path(&part), "--from", &middle]);
    assert_eq!(switches(&["info", path(&part)]), second, "what is cut out says the same");
    let replay = ["replay", "--machine", "epyc-9654", "--policy", "per-cpu"];
    let turns = |more: &[&str]| {
        let document = json(&[&replay, more].concat());
        let turns = list(&document, "processes").iter().map(|process| process["turns"].as_u64());
        turns.flatten().sum::<u64>()
    };
    assert_eq!(turns(&[TRACE, "--from", &middle]), turns(&[path(&part)]));
    assert!(turns(&[TRACE]) > turns(&[path(&part)]), "the control");
}

#[test]
fn info_shows_the_processes_that_were_asked_for() {
    let all = json(&["info", TRACE]);
    let wanted = list(&all, "processes")[1].clone();
    let some = json(&["info", TRACE, "--process", &wanted["process"].to_string()]);
    assert!(list(&some, "processes").contains(&wanted));
    assert!(list(&some, "processes").len() < list(&all, "processes").len());
}

#[test]
fn a_trace_that_was_converted_says_the_same() {
    let folder = folder("convert");
    let replay = |file: &str| {
        let mut answer =
            json(&["replay", file, "--machine", "epyc-9654", "--policy", "linux-6.14"]);
        answer["processes"].take()
    };
    let original = replay(TRACE);
    for name in ["trace.parquet", "trace.pftrace"] {
        let to = folder.join(name);
        let written = json(&["convert", TRACE, path(&to)]);
        assert_eq!(written["bytes"].as_u64(), fs::metadata(&to).ok().map(|file| file.len()));
        assert_eq!(replay(path(&to)), original, "{name}");
    }
    let names = fs::read_dir(&folder).expect("the folder").count();
    assert_eq!(names, 2, "no half-written file is left");
}

#[test]
fn what_is_no_ordinary_file_is_written_to_and_not_replaced() {
    let folder = folder("targets");
    let (file, link) = (folder.join("file.parquet"), folder.join("link.parquet"));
    fs::write(&file, "old").expect("a file");
    symlink("file.parquet", &link).expect("a link");
    assert!(run(&["convert", TRACE, path(&link)]).status.success());
    assert!(link.is_symlink() && fs::metadata(&file).expect("the file").len() > 3);
    let full = folder.join("full.parquet");
    symlink("/dev/full", &full).expect("a link");
    let output = run(&["convert", TRACE, path(&full)]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(full.is_symlink() && stderr(&output).contains("No space left"));
    let pipe = folder.join("pipe.parquet");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let writer = command(&["convert", TRACE, path(&pipe)])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let read = fs::read(&pipe).expect("the pipe");
    assert!(writer.wait_with_output().expect("it ends").status.success());
    assert!(read == fs::read(&file).expect("the file"), "the same bytes as in a file");
    let names = fs::read_dir(&folder).expect("the folder").count();
    assert_eq!(names, 4, "no half-written file is left");
}

#[test]
fn where_nothing_can_be_written_the_command_does_not_begin() {
    let begun = folder("unwritable").join("begun");
    let output = run(&["record", "-o", "/proc/no.parquet", "--", "touch", path(&begun)]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write /proc/no.parquet"), "{}", stderr(&output));
    assert!(!begun.exists(), "it ran for nothing");
}

#[test]
fn steals_are_on_the_tracks_for_perfetto() {
    let to = folder("steals").join("trace.perfetto-trace");
    let written =
        json(&["convert", TRACE, path(&to), "--policy", "percid-table", "--machine", "epyc-9654"]);
    let count = |key: &str| written[key].as_u64().expect("a number");
    assert!(count("turns") > 50 && count("steals") > 0, "{written}");
}

#[test]
fn a_page_shows_tables_advice_and_time_lines() {
    let folder = folder("page");
    let page = folder.join("report.html");
    let output = run(&[
        "replay",
        TRACE,
        "--machine",
        "epyc-9654",
        "--policy",
        "per-cpu,linux-6.4",
        "--limit",
        "2",
        "--html",
        path(&page),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let html = fs::read_to_string(&page).expect("the page");
    assert!(html.contains("Tracks: what was on ") && html.contains("linux-6.4"));
    let Some(browser) = Browser::find(&folder) else { return };
    for (frame, found) in browser.look_at("replay", &html) {
        let marks: Vec<usize> = found.charts.iter().map(|chart| chart.marks).collect();
        assert_eq!(found.problems(&marks), [] as [String; 0], "{frame:?}");
        assert_eq!(marks.len(), 2 + 2, "where IDs were, time lines");
        assert!(marks.iter().all(|&marks| marks > 0), "nothing is drawn: {marks:?}");
    }
}

/// Returns `true` if this machine permits recording. If it does not, and recording is required, the
/// test fails.
fn may_record(folder: &Path) -> bool {
    let probe = folder.join("probe.parquet");
    let output = run(&["record", "-o", path(&probe), "--", "true"]);
    let required = std::env::var_os("PERCID_TRACE").is_some_and(|wish| wish == "require");
    assert!(output.status.success() || !required, "{}", stderr(&output));
    if !output.status.success() {
        percid_skips::not_checked("percid trace record", &stderr(&output));
    }
    output.status.success()
}

#[test]
fn a_document_has_standard_output_for_itself() {
    let folder = folder("aside");
    if !may_record(&folder) {
        return;
    }
    let file = folder.join("echo.parquet");
    let arguments = ["record", "-o", path(&file), "--json", "--", "echo", "words of the command"];
    let output = run(&arguments);
    let summary: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(summary["status"], 0);
    assert!(stderr(&output).contains("words of the command"));
    let plain = run(&["record", "-o", path(&file), "--", "echo", "words of the command"]);
    assert_eq!(stdout(&plain), "words of the command\n");
}

#[test]
fn a_recording_that_cannot_have_the_numa_scan_says_so() {
    let folder = folder("no-scan");
    if !may_record(&folder) {
        return;
    }
    let file = folder.join("trace.parquet");
    let lacks_scan = |more: &[&str]| {
        let arguments = ["record", "--backend", "perf", "-o", path(&file)];
        let output = run(&[&arguments, more, &["--json", "--", "true"]].concat());
        // Perf events may be forbidden where tracefs is not.
        let document: Value = serde_json::from_slice(&output.stdout).ok()?;
        Some(list(&document, "without").contains(&"the NUMA scan (tracefs has it)".into()))
    };
    assert_ne!(lacks_scan(&["--numa-scan"]), Some(false));
    assert_ne!(lacks_scan(&[]), Some(true));
}

#[test]
fn a_file_that_is_replaced_keeps_its_rights() {
    let folder = folder("rights");
    let file = folder.join("private.parquet");
    fs::write(&file, "old").expect("a file");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("its owner's");
    assert!(run(&["convert", TRACE, path(&file)]).status.success());
    let rights = fs::metadata(&file).expect("there").permissions().mode() & 0o777;
    assert_eq!(rights, 0o600);
    assert!(fs::read(&file).expect("read").starts_with(b"PAR1"), "it was replaced");
}

/// Waits until a process has a child that runs this program.
fn await_child(parent: u32, program: &str) -> libc::pid_t {
    let children = format!("/proc/{parent}/task/{parent}/children");
    let runs = |child: &libc::pid_t| {
        let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        name.trim_end() == program
    };
    let patience = Instant::now() + PATIENCE;
    while Instant::now() < patience {
        let numbers = fs::read_to_string(&children).unwrap_or_default();
        let mut numbers = numbers.split_whitespace().flat_map(str::parse);
        if let Some(child) = numbers.find(runs) {
            return child;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("process {parent} did not start {program}");
}

#[test]
fn a_signal_ends_a_recording_and_nothing_is_lost() {
    let folder = folder("signals");
    if !may_record(&folder) {
        return;
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let file = folder.join(format!("{signal}.parquet"));
        let mut command = command(&["record", "-o", path(&file), "--", "sleep", "300"]);
        let mut recording = command.stderr(Stdio::null()).spawn().expect("the program starts");
        let sleeper = await_child(recording.id(), "sleep");
        // SAFETY: sends a signal to a child that has not been waited for, so the number is still
        // its own.
        let sent = unsafe { libc::kill(recording.id() as libc::pid_t, signal) };
        assert_eq!(sent, 0);
        let status = recording.wait().expect("it ends");
        // SAFETY: ends a process that this test started, which sleeps for minutes yet, so the
        // number is still its own.
        assert_eq!(unsafe { libc::kill(sleeper, libc::SIGTERM) }, 0, "the command goes on");
        assert_eq!(status.code(), Some(130), "{signal}");
        let info = json(&["info", path(&file)]);
        let names = list(&info, "processes").iter().map(|process| process["name"].as_str());
        assert!(names.flatten().any(|name| name == "sleep"), "{info}");
    }
}

/// The file is a pipe, so that the signal comes while it is read.
#[test]
fn ctrl_c_while_a_trace_is_read_ends_with_nothing_printed() {
    let folder = folder("read");
    let pipe = folder.join("pipe.data");
    let name = std::ffi::CString::new(path(&pipe)).expect("no zero byte");
    // SAFETY: the name is a string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let mut command = command(&["info", path(&pipe)]);
    let reading = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let reading = reading.expect("the program starts");
    let mut end = fs::File::options().write(true).open(&pipe).expect("a reader");
    // SAFETY: sends a signal to a child that has not been waited for, so the number is still its
    // own.
    assert_eq!(unsafe { libc::kill(reading.id() as libc::pid_t, libc::SIGINT) }, 0);
    end.write_all(&fs::read(TRACE).expect("the fixture")).expect("it is read");
    drop(end);
    let output = reading.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(stdout(&output), "");
}

/// Waits until a process listens for a signal.
fn wait_for_handler(process: u32, signal: i32) {
    let listens = || {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
        Some(caught >> (signal - 1) & 1 == 1)
    };
    let began = Instant::now();
    while listens() != Some(true) {
        assert!(began.elapsed() < PATIENCE, "it listens for no signal");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Nobody ever writes to the pipe, or opens it for that.
#[test]
fn a_signal_ends_the_wait_for_a_pipe_to_which_nobody_writes() {
    let folder = folder("silent");
    for (signal, is_open) in [(libc::SIGINT, true), (libc::SIGTERM, true), (libc::SIGINT, false)] {
        let pipe = folder.join(format!("pipe-{signal}-{is_open}"));
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let mut command = command(&["replay", path(&pipe)]);
        let reading = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut reading = reading.expect("the program starts");
        let end = is_open.then(|| fs::File::options().write(true).open(&pipe).expect("a reader"));
        wait_for_handler(reading.id(), signal);
        // SAFETY: sends a signal to a child that has not been waited for, so the number is still its
        // own.
        assert_eq!(unsafe { libc::kill(reading.id() as libc::pid_t, signal) }, 0);
        let began = Instant::now();
        let status = loop {
            match reading.try_wait().expect("a child") {
                Some(status) => break status.code(),
                None if began.elapsed() > PATIENCE => break None,
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        drop(end);
        // For the case that it still runs.
        let _ = reading.kill();
        assert_eq!(status, Some(130), "signal {signal}, open for writing: {is_open}");
    }
}

#[test]
fn a_device_that_never_ends_is_refused() {
    let output = run(&["info", "/dev/zero"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing that anybody records"), "{}", stderr(&output));
}

/// The README's figures of a recorded web server's load.
#[test]
fn advice_says_what_the_figures_mean() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../percid-trace/tests/fixtures");
    let file = format!("{fixtures}/nginx.parquet");
    let policies = "linux-6.3,percid-table";
    let answer = json(&["replay", &file, "--machine", "epyc-9654", "--policy", policies]);
    let wrk = &list(&answer, "processes")[0];
    let figures = (&wrk["name"], &wrk["turns"], &wrk["most_running"]);
    assert_eq!(figures, (&"wrk".into(), &11083.into(), &2.into()));
    let said = "On CPUs 0-1 it ran on all 2 CPUs that it had at once";
    assert!(list(wrk, "advice")[0].as_str().is_some_and(|advice| advice.starts_with(said)));
    let same_core = |at: usize| list(wrk, "policies")[at]["same_core"].as_f64();
    assert!(same_core(0).is_some_and(|share| (0.87..0.89).contains(&share)), "Linux 6.3");
    assert!(same_core(1).is_some_and(|share| share > 0.999), "percid's table");
}

#[test]
fn a_conversion_says_what_the_format_has_no_place_for() {
    let folder = folder("left-out");
    let counters = Path::new(TRACE).with_file_name("counters.parquet");
    let to = |name: &str| folder.join(name);
    let (perfetto, parquet) = (to("x.pftrace"), to("x.parquet"));
    let of = |file: &str, to: &Path, key: &str| -> u64 {
        json(&["convert", file, path(to)])["left_out"][key].as_u64().expect("a number")
    };
    assert_eq!(of(path(&counters), &perfetto, "counted_turns"), 58);
    assert_eq!(of(path(&counters), &parquet, "counted_turns"), 0);
    assert!(of(SCAN, &perfetto, "numa_events") > 0);
    assert_eq!(of(SCAN, &parquet, "numa_events"), 0);
    let said = stdout(&run(&["convert", path(&counters), path(&perfetto)]));
    assert!(said.contains("(page-faults, task-clock); .parquet keeps it."), "{said}");
    let said = stdout(&run(&["convert", TRACE, path(&perfetto)]));
    assert!(!said.contains("Left out"), "{said}");
}

#[test]
fn what_usage_does_not_know_has_a_reason() {
    let inferred = Path::new(TRACE).with_file_name("pool_inferred.parquet");
    let reasons = json(&["usage", path(&inferred)])["not_seen_because"].to_string();
    assert!(reasons.contains("380 of its switches were not recorded"), "{reasons}");
    let said = stdout(&run(&["usage", path(&inferred)]));
    let because = said.lines().find(|line| line.starts_with("Not seen because "));
    assert!(because.is_some_and(|line| line.contains("one command's threads only")), "{said}");
    let whole = json(&["usage", TRACE]);
    let unseen = list(&whole, "cpus").iter().any(|cpu| cpu["not_seen_ns"] != 0);
    assert_eq!(list(&whole, "not_seen_because").is_empty(), !unseen);
}
