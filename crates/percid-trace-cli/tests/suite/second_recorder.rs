//! Compares percid's figures of a command with a second recorder beside it: the kernel's own text of an
//! instance of tracefs that nothing filters, on a machine that others keep busy. The figures are computed
//! here from that text, without anything of percid.

#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::program::{json, path, run, stderr};

/// The name of this check, if it cannot be made.
const WHAT: &str = "percid trace record against a second recorder";

/// An instance of tracefs, which ends with this value.
struct Instance(PathBuf);

impl Instance {
    /// `None` if nothing may be recorded on this machine, and that is not required.
    fn new() -> Option<Instance> {
        let name = format!("percid-second-{}", std::process::id());
        let folder = Path::new("/sys/kernel/tracing/instances").join(name);
        let required = std::env::var_os("PERCID_TRACE").is_some_and(|wish| wish == "require");
        if let Err(why) = fs::create_dir(&folder) {
            assert!(!required, "{}: {why}", folder.display());
            percid_skips::not_checked(WHAT, &why.to_string());
            return None;
        }
        let instance = Instance(folder);
        instance.set("buffer_size_kb", "16384");
        instance.set("trace_clock", "mono");
        for event in ["sched_switch", "sched_wakeup", "sched_wakeup_new", "sched_process_fork"] {
            instance.set(&format!("events/sched/{event}/enable"), "1");
        }
        Some(instance)
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap_or_else(|why| panic!("{file}: {why}"));
    }

    /// Returns the text recorded since the last call.
    fn take(&self) -> String {
        self.set("tracing_on", "0");
        let text = fs::read(self.0.join("trace")).expect("the text");
        self.set("trace", "");
        self.set("tracing_on", "1");
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The figures of a thread. Times are microseconds, which is what the text has.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Thread {
    ran: f64,
    waits: u64,
    waited: f64,
    longest: f64,
    /// From how many moments they were computed.
    moments: u64,
}

/// The figures of all threads, computed from the text.
#[derive(Default)]
struct Second {
    threads: BTreeMap<u32, Thread>,
    parents: HashMap<u32, u32>,
    running: HashMap<u32, f64>,
    ready: HashMap<u32, f64>,
}

impl Second {
    fn read(text: &str) -> Second {
        let mut second = Second::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((head, (event, rest))) =
                line.split_once(": ").and_then(|(head, rest)| Some((head, rest.split_once(": ")?)))
            else {
                continue;
            };
            let time: f64 =
                head.rsplit(' ').next().and_then(|time| time.parse().ok()).expect("a time");
            second.take(time * 1e6, event.trim(), rest);
        }
        second
    }

    fn take(&mut self, time: f64, event: &str, fields: &str) {
        let number = |key: &str| -> u32 {
            let value = fields.rsplit_once(key).map(|(_, value)| value).unwrap_or_default();
            let digits = value.split(|letter: char| !letter.is_ascii_digit()).next();
            digits
                .and_then(|digits| digits.parse().ok())
                .unwrap_or_else(|| panic!("{key} {fields}"))
        };
        match event {
            "sched_process_fork" => {
                self.parents.insert(number("child_pid="), number(" pid="));
            }
            "sched_wakeup" | "sched_wakeup_new" => self.wake(time, number(" pid=")),
            "sched_switch" => {
                let is_runnable = fields.contains("prev_state=R");
                self.leave(time, number("prev_pid="), is_runnable);
                self.arrive(time, number("next_pid="));
            }
            _ => {}
        }
    }

    fn wake(&mut self, time: f64, thread: u32) {
        if !self.running.contains_key(&thread) {
            self.ready.entry(thread).or_insert(time);
        }
    }

    fn leave(&mut self, time: f64, thread: u32, is_runnable: bool) {
        if let Some(since) = self.running.remove(&thread) {
            let found = self.threads.entry(thread).or_default();
            found.ran += time - since;
            found.moments += 2;
        }
        if is_runnable {
            self.ready.insert(thread, time);
        }
    }

    fn arrive(&mut self, time: f64, thread: u32) {
        self.running.insert(thread, time);
        if let Some(since) = self.ready.remove(&thread) {
            let found = self.threads.entry(thread).or_default();
            found.waits += 1;
            found.waited += time - since;
            found.longest = found.longest.max(time - since);
            found.moments += 2;
        }
    }

    /// Returns the descendants of a command, without its first thread, which existed before percid
    /// recorded.
    fn of(&self, command: u32) -> BTreeMap<u32, Thread> {
        let comes_of = |thread: u32| {
            let mut at = thread;
            while let Some(&parent) = self.parents.get(&at).filter(|_| at != command) {
                at = parent;
            }
            at == command && thread != command
        };
        self.threads
            .iter()
            .filter(|&(&thread, _)| comes_of(thread))
            .map(|(&t, &f)| (t, f))
            .collect()
    }
}

/// Returns the same figures by percid.
fn by_percid(file: &Path) -> BTreeMap<u32, Thread> {
    let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
    let us =
        |of: &Value, key: &str| of[key].as_f64().unwrap_or_else(|| panic!("{key}: {of}")) / 1e3;
    let number = |of: &Value| of["thread"].as_u64().expect("a thread") as u32;
    let list = |of: &Value, key: &str| of[key].as_array().cloned().unwrap_or_default();
    for thread in list(&json(&["usage", path(file)]), "threads") {
        threads.entry(number(&thread)).or_default().ran = us(&thread, "run_ns");
    }
    for process in list(&json(&["latency", path(file)]), "processes") {
        for thread in list(&process, "threads") {
            let found = threads.entry(number(&thread)).or_default();
            let waits = &thread["run_queue"];
            found.waits = waits["count"].as_u64().expect("a number");
            found.waited = us(waits, "sum_ns");
            found.longest = waits["max_ns"].as_f64().unwrap_or(0.0) / 1e3;
        }
    }
    threads
}

/// Returns a difference between the two, if any. A time in the text may be up to a microsecond
/// early, since fractions are cut off. Another may be late, since the kernel takes the time for
/// each recorder separately.
fn difference(ours: &BTreeMap<u32, Thread>, theirs: &BTreeMap<u32, Thread>) -> Option<String> {
    let within =
        |ours: f64, theirs: f64, moments: u64| (ours - theirs).abs() <= 2.0 * moments as f64;
    theirs.iter().find_map(|(thread, theirs)| {
        let ours = ours.get(thread).copied().unwrap_or_default();
        let is_same = ours.waits == theirs.waits
            && within(ours.ran, theirs.ran, theirs.moments)
            && within(ours.waited, theirs.waited, theirs.moments)
            && within(ours.longest, theirs.longest, 2);
        (!is_same).then(|| format!("thread {thread}: percid {ours:?}, second recorder {theirs:?}"))
    })
}

/// Programs that keep all CPUs busy, and end with this value.
struct Others(Vec<Child>);

impl Others {
    fn start() -> Others {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let busy = |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            command.spawn().expect("a shell")
        };
        Others((0..2 * cpus).map(busy).collect())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for other in &mut self.0 {
            let _ = other.kill();
            let _ = other.wait();
        }
    }
}

/// Processes that begin and end, wake each other and wait for a CPU.
const COMMAND: &str = "echo $$; for n in 1 2 3 4 5 6 7 8; do seq 20000 | sort -n | tail -n 1; done";

/// A recording is tried again if the host took a CPU away between the two moments at which the kernel took the
/// time of one event: well below a microsecond for each of some thousand events, so that less than one
/// recording in ten is hit even if the host does so ten times a second. All are with a chance below 1e-9.
const TRIES: u32 = 10;

#[test]
fn what_is_said_of_a_command_is_what_a_second_recorder_saw() {
    let Some(instance) = Instance::new() else { return };
    let _others = Others::start();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("second-recorder.parquet");
    let mut differences = Vec::new();
    for _ in 0..TRIES {
        let (command, text) = recorded(&instance, &file, &[]);
        let theirs = Second::read(&text).of(command);
        assert!(theirs.len() > 20, "the command's own: {theirs:?}");
        assert!(theirs.values().map(|thread| thread.waited).sum::<f64>() > 1e3, "they had to wait");
        let info = json(&["info", path(&file)]);
        // Kernels of some guests report few switches from idle. The second recorder lacks them too.
        if info["trustworthiness"]["grade"] != "good" {
            continue;
        }
        assert!(info["subject_processes"].as_u64() > Some(20), "{info}");
        let ours = by_percid(&file);
        // The control: it would be noticed if one wake-up were missing.
        let less = Second::read(&text.replacen("sched_wakeup_new: ", "lost: ", 1));
        assert!(difference(&less.threads, &Second::read(&text).threads).is_some());
        match difference(&ours, &theirs) {
            None => return,
            Some(difference) => differences.push(difference),
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    percid_skips::not_checked(WHAT, "no recording was good");
}

/// Records the command by percid, and at once by the second recorder. Returns the command's number.
fn recorded(instance: &Instance, file: &Path, arguments: &[&str]) -> (u32, String) {
    drop(instance.take());
    let all = [&["record", "-o", path(file)], arguments, &["--", "sh", "-c", COMMAND]].concat();
    let output = run(&all);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    let command = said.lines().next().and_then(|line| line.parse().ok());
    (command.unwrap_or_else(|| panic!("no number: {said}")), instance.take())
}
