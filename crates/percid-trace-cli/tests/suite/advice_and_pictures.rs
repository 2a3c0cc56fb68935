//! Tests of `percid trace advise` with recordings in which the lost time is known by construction,
//! and of the pictures of long recordings: their size, their contents, and zooming.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use percid_browser::{Browser, Findings, Frame, Scheme};
use serde_json::Value;

use crate::program::{json, path, run, stderr, stdout};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../percid-trace/tests/fixtures");

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pictures-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes a recording as text. Each switch has a time in microseconds, a CPU, the thread that
/// stops, its state, and the thread that runs.
fn recording(folder: &Path, switches: &[(u64, u32, u32, &str, u32)]) -> PathBuf {
    let name = |tid: u32, cpu: u32| match tid {
        0 => format!("swapper/{cpu}"),
        tid => format!("t{tid}"),
    };
    let mut lines = String::new();
    for &(us, cpu, prev, state, next) in switches {
        let (from, to) = (name(prev, cpu), name(next, cpu));
        let seconds = format!("{}.{:06}", 5 + us / 1_000_000, us % 1_000_000);
        let _ = writeln!(
            lines,
            "{from:>16}-{prev} [{cpu:03}] d..2. {seconds}: sched_switch: prev_comm={from} prev_pid={prev} prev_prio=120 \
             prev_state={state} ==> next_comm={to} next_pid={next} next_prio=120"
        );
    }
    let file = folder.join("trace.txt");
    fs::write(&file, lines).expect("a file");
    file
}

/// Threads 71 and 72 take turns of 10 ms on CPU 0, and CPU 1 idles: from 10 ms to 100 ms one of them
/// waits, 71 for 50 ms and 72 for 40 ms.
fn two_on_one_cpu() -> Vec<(u64, u32, u32, &'static str, u32)> {
    let mut all = vec![(0, 0, 0, "R", 71), (0, 1, 90, "S", 0)];
    for turn in 1..10 {
        let (prev, next) = if turn % 2 == 1 { (71, 72) } else { (72, 71) };
        all.push((10_000 * turn, 0, prev, "R+", next));
    }
    all.extend([(100_000, 0, 72, "S", 71), (100_000, 1, 0, "R", 90)]);
    all
}

#[test]
fn advice_tells_what_was_lost_by_construction_in_its_order_and_where_to_look() {
    let folder = folder("lost");
    let file = recording(&folder, &two_on_one_cpu());
    let page = folder.join("advice.html");
    let arguments = ["advise", path(&file), "--machine", "epyc-9654"];
    let document = json(&arguments);
    assert_eq!(document["quality"]["level"], "good");
    let findings = document["findings"].as_array().expect("findings");
    let told = findings.iter().map(|finding| {
        let ns = ["at_least_ns", "lost_ns", "at_most_ns"].map(|key| finding[key].as_u64());
        (finding["kind"].as_str(), finding["process"].as_u64(), ns)
    });
    let told: Vec<_> = told.collect();
    let exactly = |ms: u64| [Some(1_000_000 * ms); 3];
    let expected = [
        (Some("not-migrated"), Some(71), exactly(50)),
        (Some("not-migrated"), Some(72), exactly(40)),
    ];
    assert_eq!(told, expected);
    let sentence = |key: &str| findings[0][key].as_str().unwrap_or_default();
    assert!(sentence("evidence").contains("is not in the recording"), "it has no affinities");
    assert!(sentence("change").contains("bind the two"), "it has one thread");
    let first = &findings[0]["moments"][0];
    let moment = ["clock_from_ns", "clock_to_ns", "since_ns", "queue_cpu", "idle_cpu", "thread"];
    let moment = moment.map(|key| first[key].as_u64());
    let expected = [5_010_000_000, 5_020_000_000, 10_000_000, 0, 1, 71].map(Some);
    assert_eq!(moment, expected);

    let said = text(&[&arguments[..], &["--html", path(&page)]].concat());
    assert!(said.starts_with("Quality: good."), "{said}");
    assert!(said.contains("1. t71 (71), not-migrated: 50.000 ms lost, exactly"), "{said}");
    let html = fs::read_to_string(&page).expect("the page");
    for finding in findings {
        for key in ["change", "evidence", "refuted_by", "computed"] {
            let sentence = finding[key].as_str().expect("a sentence");
            assert!(said.contains(sentence) && html.contains(sentence), "{sentence}");
            let is_of_cpus = key == "change" || key == "evidence";
            assert!(!is_of_cpus || sentence.starts_with("On CPUs 0-1 "), "{sentence}");
        }
    }
    assert!(
        said.contains("(ts 5010000000 to 5020000000): t71 (71) in the queue of CPU 0"),
        "{said}"
    );

    // The command that opens a moment works, and its file has the time that was printed.
    let open = first["open"].as_str().expect("a command");
    let words: Vec<&str> = open.split(' ').collect();
    let to = folder.join("moment.pftrace");
    let [_, _, convert, from, _, rest @ ..] = &words[..] else { panic!("{open}") };
    text(&[&[*convert, *from, path(&to)], rest].concat());
    let info = json(&["info", path(&to)]);
    assert_eq!(info["quality"]["switches"], 2, "{info}");
}

/// Thread 71 waits while five others run on the only CPU. Thread 72 runs for 14 ms, and each of the
/// others for 1 ms less than the one before.
#[test]
fn all_that_delay_a_process_are_one_finding() {
    let mut all = vec![(0, 0, 0, "R", 71), (10_000, 0, 71, "R+", 72)];
    let mut at = 10_000;
    for other in 72..77 {
        at += 1000 * (14 - u64::from(other - 72));
        all.push((at, 0, other, "S", if other == 76 { 71 } else { other + 1 }));
    }
    all.push((100_000, 0, 71, "S", 0));
    let file = recording(&folder("neighbours"), &all);
    let found = json(&["advise", path(&file), "--machine", "epyc-9654"]);
    let of_71 = |finding: &&Value| finding["process"] == 71;
    let of_71: Vec<&Value> =
        found["findings"].as_array().expect("a list").iter().filter(of_71).collect();
    let [finding] = of_71[..] else { panic!("{found}") };
    assert_eq!(
        (&finding["kind"], &finding["by"]["process"]),
        (&"other-process".into(), &72.into())
    );
    for bound in ["lost_ns", "at_most_ns"] {
        assert_eq!(finding[bound], 60_000_000, "{bound}");
    }
    let lost = finding["others"].as_array().expect("a list").iter().map(|other| &other["lost_ns"]);
    assert!(
        lost.eq([14, 13, 12, 11, 10].map(|ms| Value::from(1_000_000 * ms)).iter()),
        "{finding}"
    );
    let said = text(&["advise", path(&file), "--machine", "epyc-9654"]);
    assert!(
        said.contains("while the CPU ran t72 (72), t73 (73), t74 (74) and 2 other processes"),
        "{said}"
    );
}

#[test]
fn where_nothing_is_lost_advice_says_so() {
    let folder = folder("nothing");
    let apart = [
        (0, 0, 0, "R", 71),
        (0, 1, 0, "R", 72),
        (50_000, 1, 72, "S", 0),
        (90_000, 1, 0, "R", 72),
        (100_000, 0, 71, "S", 0),
        (100_000, 1, 72, "S", 0),
    ];
    let file = recording(&folder, &apart);
    let arguments = ["advise", path(&file), "--machine", "epyc-9654"];
    assert_eq!(json(&arguments)["findings"], Value::Array(Vec::new()));
    let said = text(&arguments);
    assert!(said.contains("On CPUs 0-1 nothing was found that cost 0.500 ms or more"), "{said}");
    // Less than half a percent of the time is no finding, and more is one.
    for (us, findings) in [(450, 0), (550, 1)] {
        let mut late = two_on_one_cpu();
        late.retain(|(at, ..)| *at == 0 || *at == 100_000);
        late.extend([(50_000, 0, 71, "R+", 72), (50_000 + us, 0, 72, "S", 71)]);
        late.sort_by_key(|switch| (switch.0, switch.1));
        late.retain(|(at, cpu, ..)| *at < 100_000 || *cpu == 1);
        late.push((100_000, 0, 71, "S", 0));
        let file = recording(&folder, &late);
        let found = json(&["advise", path(&file), "--machine", "epyc-9654"]);
        assert_eq!(found["findings"].as_array().map(Vec::len), Some(findings), "{us}: {found}");
    }
}

#[test]
fn nothing_is_advised_from_an_insufficient_recording() {
    let file = format!("{FIXTURES}/forks.data");
    let document = json(&["advise", &file]);
    assert_eq!(document["findings"], Value::Null);
    assert!(document["quality"]["limitations"].as_array().is_some_and(|all| !all.is_empty()));
    let said = text(&["advise", &file]);
    assert!(said.starts_with("Quality: INSUFFICIENT"), "{said}");
    assert!(said.contains("perf record -F 10") && !said.contains("change: "), "{said}");
}

/// Writes a recording with 50,000 switches of 40 threads on 8 CPUs, whose turns last about 100 µs.
fn long(folder: &Path) -> PathBuf {
    let mut all = Vec::new();
    let mut runs = [0_u32; 8];
    let mut state = 1_u64;
    for n in 0_u64.. {
        if all.len() == 50_000 {
            break;
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let cpu = (n % 8) as u32;
        let next = match state >> 60 {
            0..3 => 0,
            _ => 100 + 5 * cpu + ((state >> 40) % 5) as u32,
        };
        let prev = std::mem::replace(&mut runs[cpu as usize], next);
        if prev != next {
            let why = if prev == 0 { "R" } else { "S" };
            all.push((n * 12 + (state >> 50) % 10, cpu, prev, why, next));
        }
    }
    recording(folder, &all)
}

#[test]
fn pages_of_long_recordings_are_small_whatever_is_asked() {
    let folder = folder("long");
    let file = long(&folder);
    let page = folder.join("report.html");
    let size = |question: &str| {
        let wide = ["replay", "advise", "migrations"].contains(&question);
        let machine: &[&str] = if wide { &["--machine", "epyc-9654"] } else { &[] };
        text(&[&[question, path(&file), "--html", path(&page)], machine].concat());
        fs::metadata(&page).expect("the page").len()
    };
    for question in ["replay", "advise", "latency", "preemptions", "migrations", "usage"] {
        let size = size(question);
        println!("{question}: {size} bytes");
        assert!(size < 1_000_000, "{question}: {size} bytes");
        assert!(size > 50_000, "{question}: {size} bytes, which cannot have a picture");
    }
}

fn shown(name: &str, arguments: &[&str]) -> Option<(String, Findings)> {
    let folder = folder(name);
    let page = folder.join("report.html");
    text(&[arguments, &["--html", path(&page)]].concat());
    let html = fs::read_to_string(&page).expect("the page");
    let browser = Browser::find(&folder)?;
    let frame = Frame { scheme: Scheme::Light, width: 1300 };
    let found = browser.inspect(name, &html, frame);
    Some((html, found))
}

#[test]
fn time_lines_are_drawn_and_zoomed_into_together() {
    let file = long(&folder("zoom-trace"));
    let policies = "per-cpu,percid-table,linux-6.14";
    let arguments =
        ["replay", path(&file), "--machine", "epyc-9654", "--policy", policies, "--limit", "1"];
    let Some((_, found)) = shown("zoom", &arguments) else { return };
    let marks: Vec<usize> = found.charts.iter().map(|chart| chart.marks).collect();
    assert_eq!(found.problems(&marks), [] as [String; 0]);
    assert!(marks.len() == 1 + 3 && marks.iter().all(|&marks| marks > 0), "{marks:?}");
    let [whole, closer, closer_still, ..] = &found.zooms[..] else { panic!("{:?}", found.zooms) };
    for zoom in &found.zooms {
        assert_eq!(zoom.views.len(), 3);
        assert!(zoom.views.iter().all(|view| *view == zoom.views[0]), "linked: {zoom:?}");
        assert!(zoom.marks.iter().all(|&marks| marks > 0), "{zoom:?}");
    }
    let length = |at: usize| found.zooms[at].length();
    assert!((length(0) / length(1) - 2.0).abs() < 1e-6, "{whole:?} {closer:?}");
    assert!((length(1) / length(2) - 2.0).abs() < 1e-6, "{closer:?} {closer_still:?}");
    assert_eq!(found.zooms.last().map(|zoom| &zoom.views), Some(&whole.views), "and back");
}

#[test]
fn numbers_in_pictures_are_those_of_the_document() {
    let file = format!("{FIXTURES}/nginx.parquet");
    let document = json(&["usage", &file]);
    let mut ran: std::collections::BTreeMap<u64, u64> = Default::default();
    for thread in document["threads"].as_array().expect("threads") {
        let of = |key: &str| thread[key].as_u64().expect("a number");
        *ran.entry(of("process")).or_default() += of("run_ns");
    }
    let mut ran: Vec<(u64, u64)> = ran.into_iter().collect();
    ran.sort_by_key(|&(process, ns)| (std::cmp::Reverse(ns), process));
    let page = folder("numbers").join("usage.html");
    text(&["usage", &file, "--html", path(&page)]);
    let html = fs::read_to_string(&page).expect("the page");
    let ms = |ns: u64| format!("{}.{:03}", ns / 1_000_000, ns / 1000 % 1000);
    for (process, ns) in ran.iter().take(5) {
        assert!(html.contains(&format!("({process}): {} ms, ", ms(*ns))), "{process}: {ns}");
    }
    assert!(html.contains(&format!("{} other processes</li>", ran.len() - 5)));
}
