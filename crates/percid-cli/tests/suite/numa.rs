//! `percid numa`. The process with published balancers is the one that runs these tests.

use crate::percid;

use std::fs::File;
use std::hint;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdout, Output};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use percid::running::{interrupt, interrupted, reads, start, wait_until_it_listens};
use percid::wait::{ended, until, until_enough};
use percid::{bounded, command, document, json, list};
use percid_numa::Balancer;
use serde_json::Value;

const PAGE: usize = 4096;

/// Takes the lock of these tests: publications are visible to all tests of this process.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn report(pid: u32, more: &str) -> Output {
    bounded(&mut command(&format!("numa report --pid {pid} {more}")))
}

/// Returns a report on this process, however long that takes.
fn own_report(more: &str) -> Output {
    report(std::process::id(), &format!("--timeout 600 {more}"))
}

fn number(of: &Value) -> u64 {
    of.as_u64().unwrap_or_else(|| panic!("a number: {of}"))
}

/// Creates a published balancer.
fn published() -> Balancer {
    let balancer = Balancer::new();
    balancer.publish().expect("a memfd and a thread");
    balancer
}

/// Ends a thread that runs beside a test, even if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Returns `true` if the program lists this process among those with balancers.
fn is_listed(document: &Value) -> bool {
    let processes = list(document, "processes").iter();
    processes.map(|process| number(&process["pid"])).any(|pid| pid == u64::from(std::process::id()))
}

#[test]
fn this_machine_has_nodes_and_processes_that_publish() {
    let _turn = turn();
    let before = json("numa report --json");
    let nodes = list(&before, "nodes");
    assert!(!nodes.is_empty());
    for (place, node) in nodes.iter().enumerate() {
        assert_eq!(node["distances"][place], 10, "{node}");
        assert!(number(&node["memory_free"]) <= number(&node["memory_total"]), "{node}");
    }
    assert_eq!(before["moves_pages"] == true, before["moves_pages_error"].is_null());
    assert!(!is_listed(&before));
    let balancer = published();
    assert!(is_listed(&json("numa --json")));
    drop(balancer);
    assert!(!is_listed(&json("numa report --json")));
}

#[test]
fn a_report_is_the_balancers_own() {
    let _turn = turn();
    let balancer = published();
    let mut memory = vec![0u8; 65 * PAGE];
    let start = memory.as_ptr().map_addr(|address| address.next_multiple_of(PAGE));
    let region = balancer.register(start, 64 * PAGE).expect("memory of our own");
    let first = start as usize - memory.as_ptr() as usize;
    for page in 0..40 {
        memory[first + page * PAGE] = 1;
    }
    // Other tests of this process start and end threads, possibly between the two reports.
    let (one, own) = until("as many threads in both reports", || {
        // Without a helper thread that waits for the program.
        let of_this = format!("numa report --pid {} --timeout 600 --json", std::process::id());
        let document = document(&command(&of_this).output().expect("it starts"));
        let [one] = list(&document, "balancers") else { panic!("one: {document}") };
        let own = balancer.report();
        (number(&one["threads"]) == own.threads as u64).then(|| (one.clone(), own))
    });
    let [of_region] = list(&one, "regions") else { panic!("one: {one}") };
    assert_eq!(list(&one, "nodes").len(), own.nodes.len());
    assert_eq!(number(&of_region["start"]), region.range().start as u64);
    assert_eq!(number(&of_region["end"]), region.range().end as u64);
    assert_eq!(of_region["access"], "reported");
    let by_node: u64 =
        of_region["pages_by_node"].as_object().expect("by node").values().map(number).sum();
    let expected = own.regions[0].pages_by_node.iter().map(|(_, pages)| pages).sum::<u64>();
    assert_eq!((by_node, number(&of_region["absent"])), (expected, own.regions[0].absent));
    assert!(
        expected >= 40 || own.regions[0].absent == 64,
        "unless a sandbox hides where pages are"
    );
    assert_eq!(of_region["skipped"].as_object().map(serde_json::Map::len), Some(7));
    // Every report is computed anew.
    drop(region);
    let later = percid::document(&own_report("--json"));
    assert!(list(&later["balancers"][0], "regions").is_empty());
    assert!(number(&later["balancers"][0]["age_ns"]) > number(&one["age_ns"]));
}

#[test]
fn every_balancer_reports_for_itself_and_text_has_them_too() {
    let _turn = turn();
    let balancers = [published(), published(), Balancer::new()];
    let memory = vec![1u8; 3 * PAGE];
    let start = memory.as_ptr().map_addr(|address| address.next_multiple_of(PAGE));
    let _region = balancers[1].register(start, PAGE).expect("memory of our own");
    let output = own_report("");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for part in ["memory: ", "balancer 1: ", "balancer 2: ", "no regions", "pid_inactive"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains("balancer 3"), "{text}");
}

/// The file starts with one page and grows.
#[test]
fn reports_may_be_large() {
    let _turn = turn();
    let balancer = published();
    let memory = vec![1u8; 202 * PAGE];
    let start = memory.as_ptr().map_addr(|address| address.next_multiple_of(PAGE));
    let register = |page: usize| balancer.register(start.wrapping_add(page * PAGE), PAGE);
    let regions: Vec<_> = (0..100).map(|region| register(2 * region).expect("a page")).collect();
    let output = own_report("--json");
    assert!(output.status.success());
    let large = document(&output);
    let shown = list(&large["balancers"][0], "regions");
    let starts: Vec<u64> = shown.iter().map(|region| number(&region["start"])).collect();
    let expected: Vec<u64> = regions.iter().map(|region| region.range().start as u64).collect();
    assert_eq!(starts, expected);
    drop(regions);
    let small = document(&own_report("--json"));
    assert!(list(&small["balancers"][0], "regions").is_empty());
}

#[test]
fn many_may_ask_at_once() {
    let _turn = turn();
    let _balancer = published();
    thread::scope(|scope| {
        let askers: Vec<_> = (0..8).map(|_| scope.spawn(|| own_report("--json"))).collect();
        for asker in askers {
            let output = asker.join().expect("no panic");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    });
}

#[test]
fn without_a_balancer_the_memory_is_shown() {
    let _turn = turn();
    let output = own_report("--json");
    assert_eq!(output.status.code(), Some(1));
    let document = document(&output);
    assert!(list(&document, "balancers").is_empty());
    if std::path::Path::new("/proc/self/numa_maps").exists() {
        let memory = document["memory_by_node"].as_object().expect("by node");
        assert!(memory.values().map(number).sum::<u64>() > 1 << 20, "{document}");
    }
    assert!(String::from_utf8_lossy(&own_report("").stdout).contains("no balancer"));
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    for arguments in ["numa report --pid 4194304", "numa watch 4194304"] {
        let output = bounded(&mut command(arguments));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {said}");
        assert!(output.stdout.is_empty());
        assert!(said.contains("no process 4194304") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_child_of_fork_does_not_answer_for_its_parent() {
    let _turn = turn();
    let _balancer = published();
    // SAFETY: the child only waits for a signal.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        loop {
            // SAFETY: the call takes no argument.
            unsafe { libc::pause() };
        }
    }
    let output = report(child as u32, "--json");
    let listed = json("numa --json");
    // SAFETY: the child was started by this test, and has not been waited for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    assert_eq!(output.status.code(), Some(1));
    assert!(list(&document(&output), "balancers").is_empty());
    let pids: Vec<u64> = list(&listed, "processes").iter().map(|p| number(&p["pid"])).collect();
    assert!(!pids.contains(&(child as u64)) && is_listed(&listed), "{pids:?}");
}

/// Creates a memfd with the name that balancers use, with these first bytes.
fn pretender(bytes: &[u8], seals: i32) -> File {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a NUL-terminated string.
    let file = unsafe { libc::memfd_create(c"percid-numa".as_ptr(), flags) };
    assert!(file >= 0);
    // SAFETY: the descriptor is new and nothing else owns it.
    let file = unsafe { File::from_raw_fd(file) };
    file.write_all_at(bytes, 0).expect("memory");
    // SAFETY: the call takes a descriptor and numbers.
    let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
    assert_eq!(sealed, 0);
    file
}

/// Returns a header with this many answers and a length, followed by `report`.
fn pretended(version: u32, answers: u32, length: u64, report: &[u8]) -> Vec<u8> {
    let mut bytes = b"percidnb".to_vec();
    for word in [version, std::process::id(), 0, answers] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(length.to_ne_bytes());
    bytes.resize(64, 0);
    bytes.extend(report);
    bytes
}

/// Returns the program's message about a process with such a file. If `answers` is set, its answers
/// are counted up on request; otherwise the program waits half a second.
fn said_of(file: &File, answers: bool) -> String {
    let over = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| {
            let (mut requests, mut count) = ([0; 4], 0u32);
            while answers && !over.load(Relaxed) {
                let mut now = [0; 4];
                file.read_exact_at(&mut now, 16).expect("a header");
                if now != requests {
                    requests = now;
                    count += 2;
                    file.write_all_at(&count.to_ne_bytes(), 20).expect("a header");
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let timeout = if answers { "600" } else { "0.5" };
        report(std::process::id(), &format!("--json --timeout {timeout}"))
    });
    assert_eq!(output.status.code(), Some(1));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
    let document = document(&output);
    let [one] = list(&document, "balancers") else { panic!("one: {document}") };
    one["error"].as_str().expect("an error").to_owned()
}

#[test]
fn nothing_that_a_process_publishes_is_believed() {
    let _turn = turn();
    const SHRINK: i32 = libc::F_SEAL_SHRINK;
    let good =
        br#"{"format":1,"nodes":[0],"sequence":0,"passes":0,"period_ns":1,"scan_ns":0,"move_ns":0,
        "age_ns":0,"threads":1,"collisions":0,"events_lost":0,"regions":[]}"#;
    let length = good.len() as u64;
    let garbage: Vec<u8> = (0..8192u32).map(|byte| (byte * 7 % 251) as u8).collect();
    let cases: [(Vec<u8>, i32, bool, &str); 12] = [
        (Vec::new(), 0, false, "not a report"),
        (Vec::new(), SHRINK, false, "not a report"),
        (garbage, SHRINK, false, "not a report"),
        (pretended(1, 0, length, good), 0, true, "not a report"),
        (pretended(1, 0, length, good), SHRINK | libc::F_SEAL_WRITE, false, "cannot be read"),
        (pretended(2, 0, length, good), SHRINK, true, "version 2"),
        (pretended(1, 0, length, good), SHRINK, false, "no answer within 0.5 s"),
        (pretended(1, 1, length, good), SHRINK, false, "no answer within 0.5 s"),
        (pretended(1, 0, 0, good), SHRINK, true, "could not write"),
        (pretended(1, 0, u64::MAX, good), SHRINK, true, "expected 16777216 at most"),
        (pretended(1, 0, length + 1, good), SHRINK, true, "ends before"),
        (pretended(1, 0, length - 1, good), SHRINK, true, "not a report"),
    ];
    for (bytes, seals, answers, expected) in cases {
        let file = pretender(&bytes, seals);
        let said = said_of(&file, answers);
        assert!(said.contains(expected), "{said}: expected {expected}");
        let watch = format!("numa watch {} --timeout 0.2", std::process::id());
        assert_eq!(bounded(&mut command(&watch)).status.code(), Some(1), "{expected}");
    }
    // The positive control: the same without a fault is a report.
    let file = pretender(&pretended(1, 0, length, good), SHRINK);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for count in (2u32..).step_by(2).take_while(|_| !over.load(Relaxed)) {
                file.write_all_at(&count.to_ne_bytes(), 20).expect("a header");
                thread::sleep(Duration::from_millis(20));
            }
        });
        let _over = Over(&over);
        let output = own_report("--json");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    });
}

/// Returns the documents of `watch --json`, and the last one separately.
fn lines(output: &Output) -> (Vec<Value>, Value) {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut documents: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a document a line")).collect();
    let last = documents.pop().expect("a last line");
    (documents, last)
}

/// Starts a watch and waits for its first interval; `None` if it ended without one.
fn watching(arguments: &str) -> Option<(Child, BufReader<ChildStdout>)> {
    let mut child = start(arguments);
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    if reads(&mut stdout, "\"balancers\"") {
        return Some((child, stdout));
    }
    ended(child);
    None
}

/// Returns the last line of a watch.
fn last_line(stdout: BufReader<ChildStdout>) -> Value {
    let last = stdout.lines().last().expect("a last line").expect("text");
    serde_json::from_str(&last).expect("a document")
}

#[test]
fn a_watch_shows_as_many_intervals_as_asked_for() {
    let _turn = turn();
    let _balancers = [published(), published()];
    let pid = std::process::id();
    let watch = format!("numa watch {pid} --interval 0.2 --count 3 --timeout 600");
    let output = bounded(&mut command(&format!("{watch} --json")));
    assert!(output.status.success());
    let (intervals, last) = lines(&output);
    assert_eq!(intervals.len(), 3);
    for interval in &intervals {
        for balancer in list(interval, "balancers") {
            // Measured by the balancer's own clock: each report is requested after a pause of that
            // length.
            assert!(number(&balancer["interval_ns"]) >= 200_000_000, "{balancer}");
        }
        assert_eq!(list(interval, "balancers").len(), 2);
    }
    assert_eq!((&last["ended"], &last["interrupted"]), (&false.into(), &false.into()));
    let watch = format!("numa watch {pid} --interval 0.1 --count 3 --timeout 600");
    let text = bounded(&mut command(&watch));
    let text = String::from_utf8_lossy(&text.stdout);
    assert_eq!(text.lines().count(), 7, "a heading and two lines an interval:\n{text}");
}

#[test]
fn a_watch_ends_with_what_it_watches() {
    let _turn = turn();
    let mut demo = start("numa demo --pairs 1000 --seconds 0.3 --memory 2M --threads 1 --json");
    let mut stderr = BufReader::new(demo.stderr.take().expect("a pipe"));
    let watch = format!("numa watch {} --interval 0.1 --timeout 600 --json", demo.id());
    // Each second run publishes, and may end before a slow watch reads it.
    let (mut watch, stdout) = until("an interval of a run that publishes", || {
        assert!(reads(&mut stderr, "shows it"), "it tells that it publishes");
        watching(&watch)
    });
    demo.kill().expect("it runs");
    demo.wait().expect("it ends");
    assert_eq!(last_line(stdout)["ended"], true);
    let mut said = String::new();
    let mut stderr = watch.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut said).expect("text");
    assert!(ended(watch).status.success());
    assert!(said.contains("ended") || said.contains("nothing more"), "{said}");
}

#[test]
fn a_watch_of_nothing_is_an_error_and_of_something_can_be_ended() {
    let _turn = turn();
    let pid = std::process::id();
    let watch = format!("numa watch {pid} --interval 0.1 --timeout 600 --json");
    let output = bounded(&mut command(&watch));
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let balancer = published();
    let (child, stdout) = watching(&watch).expect("an interval");
    interrupted(child);
    assert_eq!(last_line(stdout)["interrupted"], true);
    // The other case: a publication that ends.
    let (child, stdout) = watching(&watch).expect("an interval");
    drop(balancer);
    assert_eq!(last_line(stdout)["ended"], true);
    assert_eq!(ended(child).status.code(), Some(0));
}

/// Runs a demonstration in which threads wrote at the beginning and at the end of each run: on a
/// busy machine a run may have to be longer.
fn demonstration(arguments: &str) -> Value {
    until_enough("bytes that were written in each part of each run", |length| {
        let seconds = (2 * length).as_secs_f64();
        let document = json(&format!("numa demo --seconds {seconds} {arguments} --json"));
        let has_written = |run: &Value| {
            let rates = ["bytes_per_second_first", "bytes_per_second_last"].map(|name| &run[name]);
            rates.iter().all(|rate| rate.as_f64() > Some(0.0))
        };
        list(&document, "runs").iter().all(has_written).then_some(document)
    })
}

#[test]
fn a_demonstration_has_figures_of_both_runs() {
    for access in ["reported", "trapped"] {
        let document =
            demonstration(&format!("--pairs 1 --memory 6M --threads 3 --access {access}"));
        let runs = list(&document, "runs");
        assert_eq!(number(&document["memory"]), 6 << 20);
        assert_eq!((&runs[0]["balanced"], &runs[1]["balanced"]), (&false.into(), &true.into()));
        for run in runs {
            let pages = run["pages_before"].as_object().expect("by node").values().map(number);
            assert!(
                [0, 6 << 8].contains(&pages.sum::<u64>()),
                "unless a sandbox hides them: {run}"
            );
        }
        assert!(runs[0]["balancer"].is_null());
        if list(&document, "nodes").len() == 1 {
            assert_eq!(runs[1]["balancer"]["scanned"], 0, "nothing to balance");
            assert_eq!(runs[1]["balancer"]["passes"], 0);
        }
    }
}

/// Returns the switch of the kernel's balancing; `None` if this kernel has none.
fn kernel_balancing() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/sys/kernel/numa_balancing").ok()?;
    text.trim().parse().ok()
}

#[test]
fn a_demonstration_compares_pairs_in_turns_and_bounds_its_figure() {
    let document = demonstration("--pairs 3 --memory 4M --threads 2");
    let runs = list(&document, "runs");
    let order: Vec<(u64, bool)> =
        runs.iter().map(|run| (number(&run["pair"]), run["balanced"] == true)).collect();
    assert_eq!(order, [(1, false), (1, true), (2, true), (2, false), (3, false), (3, true)]);
    assert_eq!(document["kernel_balancing"]["value"].as_u64(), kernel_balancing());
    let comparison = &document["comparison"];
    let figure =
        |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{name}: {document}"));
    let estimate = &comparison["estimate"];
    assert_eq!((number(&estimate["pairs"]), figure(comparison, "confidence")), (3, 0.95));
    let [ratio, low, high] = ["ratio", "low", "high"].map(|name| figure(estimate, name));
    assert!(low <= ratio && ratio <= high, "{estimate}");
    // The ratios are with balancing to without, in either order of the runs.
    for (pair, ratio) in list(comparison, "ratios").iter().enumerate() {
        let last = |balanced: bool| {
            let of_pair = runs[2 * pair..2 * pair + 2].iter();
            let run = of_pair.clone().find(|run| run["balanced"] == balanced).expect("one");
            figure(run, "bytes_per_second_last")
        };
        assert_eq!(ratio.as_f64(), Some(last(true) / last(false)));
    }
    let verdict = comparison["verdict"].as_str().expect("a verdict");
    if list(&document, "nodes").len() == 1 {
        assert_eq!(verdict, "nothing_to_gain");
        assert_eq!(comparison["kernel_balances_both"], false);
    } else {
        let expected =
            [(low > 1.0, "faster"), (high < 1.0, "slower"), (true, "no_difference_shown")];
        let expected = expected.into_iter().find(|(is_so, _)| *is_so).map(|(_, name)| name);
        assert_eq!(Some(verdict), expected);
    }
    let is_gain = verdict == "faster" && comparison["placement"] == "better";
    assert_eq!(comparison["gain"].is_object(), is_gain, "{comparison}");
}

#[test]
fn a_demonstration_of_one_pair_has_no_gain_and_the_kernels_balancing_comes_first() {
    let arguments = "numa demo --pairs 1 --seconds 0.2 --memory 4M --threads 2";
    let output = bounded(&mut command(arguments));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("the kernel's own balancing: ") < at("placed %"), "{text}");
    assert!(!text.contains(": gain") && !text.contains(" times"), "no figure: {text}");
    assert!(text.contains("nothing to gain") || text.contains("no verdict"), "{text}");
    let document = json(&format!("{arguments} --json"));
    assert!(
        document["comparison"]["estimate"].is_null() && document["comparison"]["gain"].is_null()
    );
}

/// Interrupts at once, and during a run: in its first part or its second.
#[test]
fn a_demonstration_can_be_ended() {
    for pause in [0, 300] {
        let child = start("numa demo --seconds 3600 --memory 6M --json");
        wait_until_it_listens(&child);
        thread::sleep(Duration::from_millis(pause));
        let document = document(&interrupted(child));
        assert_eq!(document["interrupted"], true);
        assert!(list(&document, "runs").is_empty(), "no pair is finished");
        assert!(document["comparison"]["estimate"].is_null());
    }
}

#[test]
fn a_demonstration_that_is_ended_has_its_finished_pairs() {
    let mut child = start("numa demo --pairs 1000 --seconds 0.1 --memory 2M --threads 2 --json");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut said = stderr.by_ref().map(|line| line.expect("text"));
    assert!(said.any(|line| line.contains("pair 2 of 1000")), "it tells its progress");
    interrupt(&child);
    let said: Vec<String> = said.collect();
    let output = ended(child);
    assert_eq!(output.status.code(), Some(130));
    let document = document(&output);
    assert_eq!((&document["interrupted"], &document["pairs"]), (&true.into(), &1000.into()));
    let runs = list(&document, "runs").len();
    assert!(runs > 0 && runs.is_multiple_of(2) && runs < 2000, "{runs}");
    assert_eq!(list(&document["comparison"], "ratios").len(), runs / 2);
    let end = format!("interrupted after {} of 1000 pairs", runs / 2);
    assert!(said.last().is_some_and(|line| line.ends_with(&end)), "{said:?}");
}

#[test]
fn the_cost_of_the_kernels_balancing_has_a_verdict_or_the_reason_for_none() {
    let document = json("numa check-kernel --json -- sleep 0.2");
    assert_eq!(document["ended"], true);
    assert!(document["seconds"].as_f64().expect("a number") >= 0.2, "{document}");
    let verdict = &document["verdict"];
    if number(&document["nodes_with_memory"]) < 2 {
        assert_eq!(verdict["advice"], "cannot_tell");
        let reason = "one node has memory: there is nothing to balance";
        assert_eq!(verdict["reason"], reason);
    }
    // Keep the CPU busy until the kernel reports it: the kernel counts run time in hundredths of a
    // second, and may count none.
    let over = AtomicBool::new(false);
    let own = thread::scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| {
            while !over.load(Relaxed) {
                hint::spin_loop();
            }
        });
        until_enough("a share of the machine", |length| {
            let (pid, seconds) = (std::process::id(), length.as_secs_f64());
            let own = json(&format!("numa check-kernel --json --seconds {seconds} --pid {pid}"));
            assert_eq!((number(&own["pid"]), &own["ended"]), (pid.into(), &false.into()));
            own["share_of_machine"].is_number().then_some(own)
        })
    });
    // Every thread is on a node, if the kernel records the detected accesses of threads.
    if own["threads"].is_object() {
        let nodes = own["by_node"].as_object().expect("nodes");
        assert!(nodes.values().map(|node| number(&node["threads"])).sum::<u64>() > 0, "{own}");
    }
}

#[test]
fn the_cost_of_nothing_is_an_error() {
    for (arguments, status, said) in [
        ("numa check-kernel", 2, "which process? expected --pid PID, or -- and a command"),
        ("numa check-kernel -- /nowhere/at/all", 1, "cannot run /nowhere/at/all"),
        ("numa check-kernel --pid 4194304", 1, "there is no process 4194304"),
        ("numa check-kernel --pid 1 -- sleep 1", 2, "cannot be used with"),
    ] {
        let output = bounded(&mut command(arguments));
        assert_eq!(output.status.code(), Some(status), "{arguments}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(said), "{arguments}: {text}");
    }
}

#[test]
fn the_cost_so_far_is_printed_when_it_is_ended() {
    let child = start("numa check-kernel --json --seconds 3600 --pid 1");
    wait_until_it_listens(&child);
    let document = document(&interrupted(child));
    assert_eq!(document["interrupted"], true);
    assert!(document["seconds"].as_f64().expect("a number") < 3600.0);
}
