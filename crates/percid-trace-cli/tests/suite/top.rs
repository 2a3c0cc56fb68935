//! `percid trace top` of commands whose schedule is known, in each of its forms, and on a terminal.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_percid-trace"));
    command.arg("top").args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether anything may be recorded on this machine; if not, and that is not required, it is said.
fn is_permitted() -> bool {
    let output = run(&["--", "true"]);
    let required = std::env::var_os("PERCID_TRACE").is_some_and(|wish| wish == "require");
    let said = text(&output.stderr);
    assert!(output.status.success() || !required, "{said}");
    if !output.status.success() {
        eprintln!("nothing was checked: {said}");
    }
    output.status.success()
}

/// The documents of a command in intervals of 0.3 s.
fn documents(arguments: &[&str], script: &str) -> (Option<i32>, Vec<Value>) {
    let all = [&["--json", "--interval", "0.3"], arguments, &["--", "sh", "-c", script]].concat();
    let mut command = command(&all);
    // SAFETY: between `fork` and `exec` it makes one system call, on a value of its own.
    unsafe {
        command.pre_exec(|| {
            let mut first: libc::cpu_set_t = std::mem::zeroed();
            let mut all: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of_val(&all), &mut all);
            let any = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &all));
            libc::CPU_SET(any.unwrap_or(0), &mut first);
            libc::sched_setaffinity(0, size_of_val(&first), &first);
            Ok(())
        });
    }
    let output = command.output().expect("the program starts");
    let lines = text(&output.stdout);
    let parsed = lines.lines().map(|line| serde_json::from_str(line).expect("a document a line"));
    (output.status.code(), parsed.collect())
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key}: {of}"))
}

/// Two threads on one CPU, each of which always runs or waits, and one that sleeps.
const LOOPS: &str =
    "while :; do :; done & a=$!; while :; do :; done & b=$!; sleep 2; kill $a $b; exit 7";

#[test]
fn who_never_sleeps_runs_or_waits_and_no_time_is_lost_at_the_ends_of_intervals() {
    if !is_permitted() {
        return;
    }
    let (status, documents) = documents(&[], LOOPS);
    assert_eq!(status, Some(7), "that of the command");
    assert!(documents.len() >= 6, "{} intervals", documents.len());
    for (before, after) in documents.iter().zip(&documents[1..]) {
        assert_eq!(before["until_ns"], after["since_ns"]);
    }
    // In between, when both are there all the time.
    let whole = &documents[1..documents.len() - 2];
    let span: u64 = whole.iter().map(|one| number(one, "until_ns") - number(one, "since_ns")).sum();
    let of = |interval: &Value, nth: usize| interval["threads"][nth].clone();
    let busy = [of(&whole[0], 0), of(&whole[0], 1)].map(|line| number(&line, "thread"));
    for tid in busy {
        let lines = whole.iter().flat_map(|one| one["threads"].as_array().expect("threads"));
        let lines: Vec<&Value> = lines.filter(|line| number(line, "thread") == tid).collect();
        assert_eq!(lines.len(), whole.len(), "it is in each interval");
        let sum = |key: &str| lines.iter().map(|line| number(line, key)).sum::<u64>();
        // Also one that ends after that time, and began within.
        let all = documents.iter().flat_map(|one| one["threads"].as_array().expect("threads"));
        let waits = all.filter(|line| number(line, "thread") == tid);
        let longest = waits.map(|line| number(line, "longest_wait_ns")).max().unwrap_or(0);
        let (ran, waited) = (sum("run_ns"), sum("waited_ns"));
        // A wait at either end of the time that is looked at may be in it or not.
        let most = 2 * longest + span / 100;
        assert!(ran + waited <= span + most, "{ran} + {waited} of {span}, longest {longest}");
        // Even a loop sleeps where the kernel fetches a page of it, which a busy machine has put away.
        // Then it was switched away and not preempted.
        let slept = sum("switches") > sum("preempted") + 1;
        assert!(
            slept || ran + waited + most >= span,
            "{ran} + {waited} of {span}, longest {longest}"
        );
        assert!(sum("preempted") > 10 && sum("switches") > 10, "they take turns: {lines:?}");
    }
    let sleeps = |line: &&Value| line["name"] == "sleep";
    let all = documents.iter().flat_map(|one| one["threads"].as_array().expect("threads"));
    let ran: u64 = all.filter(sleeps).map(|line| number(line, "run_ns")).sum();
    assert!(ran < span / 10, "the control: what sleeps does not run, {ran} of {span}");
}

#[test]
fn lines_are_in_the_order_that_is_asked_for() {
    if !is_permitted() {
        return;
    }
    let orders = [("wait", "waited_ns"), ("run", "run_ns"), ("switches", "switches")];
    for (sort, key) in orders {
        let (_, documents) = documents(&["--sort", sort, "--count", "2", "--processes"], LOOPS);
        assert_eq!(documents.len(), 2);
        let lines = documents[1]["processes"].as_array().expect("processes");
        assert!(lines.len() >= 2 && lines[0].get("thread").is_none(), "{lines:?}");
        assert!(lines.is_sorted_by_key(|line| u64::MAX - number(line, key)), "{sort}: {lines:?}");
    }
    let (_, few) = documents(&["--count", "1", "--rows", "1"], LOOPS);
    assert_eq!(few[0]["threads"].as_array().map(Vec::len), Some(1));
}

/// A thread may have a name that moves the cursor.
#[test]
fn what_is_no_terminal_gets_no_escapes() {
    if !is_permitted() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("top-names");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let script = "cp \"$(command -v sleep)\" \"$0/a\x1b[31mb\" && \"$0/a\x1b[31mb\" 0.5";
    let path = folder.to_str().expect("an ordinary path");
    let output = run(&["--interval", "0.2", "--", "sh", "-c", script, path]);
    let said = text(&output.stdout);
    assert!(said.contains(r"a\u{1b}[31mb ("), "{said}");
    assert!(!output.stdout.contains(&0x1b), "{said}");
    assert!(said.matches("\nBusy:").count() >= 2, "screens follow each other: {said}");
    assert!(said.contains("% of a CPU"), "its own cost is told: {said}");
}

#[test]
fn what_cannot_be_watched_is_told_as_by_record() {
    let gone = run(&["--pid", "4194304"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(text(&gone.stderr).contains("there is no process 4194304"));
    if is_permitted() {
        let missing = run(&["--", "/no/such/command"]);
        assert_eq!(missing.status.code(), Some(127), "{}", text(&missing.stderr));
    }
    let both = run(&["--pid", "1", "--", "true"]);
    assert_eq!(both.status.code(), Some(2));
}

/// Both ends of a terminal.
struct Pair {
    ours: File,
    theirs: OwnedFd,
}

impl Pair {
    fn open(lines: u16, columns: u16) -> Pair {
        let (mut ours, mut theirs) = (-1, -1);
        let none = std::ptr::null_mut();
        // SAFETY: the call writes two descriptors, which have no other owner then.
        let pair = unsafe {
            assert_eq!(libc::openpty(&mut ours, &mut theirs, none, none.cast(), none.cast()), 0);
            Pair { ours: File::from_raw_fd(ours), theirs: OwnedFd::from_raw_fd(theirs) }
        };
        pair.resize(lines, columns);
        pair
    }

    fn resize(&self, lines: u16, columns: u16) {
        let size = libc::winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the call reads a value that is there.
        let set = unsafe { libc::ioctl(self.ours.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        assert_eq!(set, 0);
    }

    fn start(&self, mut command: Command) -> Child {
        let theirs = self.theirs.try_clone().expect("a descriptor");
        command.env("TERM", "xterm");
        command.stdout(theirs).stderr(Stdio::null()).spawn().expect("the program starts")
    }

    /// Reads until a text has come so many times.
    fn read_until(&mut self, text: &str, times: usize) -> String {
        let mut all = String::new();
        let began = Instant::now();
        let mut bytes = [0; 4096];
        while all.matches(text).count() < times {
            assert!(began.elapsed() < Duration::from_secs(60), "{all:?}");
            let read = self.ours.read(&mut bytes).expect("a terminal");
            all.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        all
    }
}

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
const HOME: &str = "\x1b[H";

/// The lines of the screens that were drawn as a whole.
fn screens(drawn: &str) -> Vec<Vec<String>> {
    // The terminal puts a return before every line feed.
    let drawn = drawn.replace("\r\r\n", "\r\n");
    let whole = drawn.split(HOME).skip(1).filter_map(|screen| screen.split_once("\x1b[J"));
    whole.map(|(screen, _)| screen.split("\x1b[K\r\n").map(str::to_owned).collect()).collect()
}

#[test]
fn a_terminal_is_filled_followed_and_given_back() {
    if !is_permitted() {
        return;
    }
    let mut pair = Pair::open(9, 50);
    let mut child = pair.start(command(&["--interval", "0.2"]));
    let small = pair.read_until("\x1b[J", 2);
    assert!(small.starts_with(ENTER), "{small:?}");
    pair.resize(30, 100);
    let large = pair.read_until("\x1b[J", 4);
    // SAFETY: sends a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
    let mut end = pair.read_until(LEAVE, 1);
    assert_eq!(child.wait().expect("a child").code(), Some(130), "as of `record`");
    thread::sleep(Duration::from_millis(50));
    end.push_str(&pair.read_until("From ", 1 + end.matches("From ").count()));
    for (drawn, lines, columns) in [(&small, 9, 50), (&large, 30, 100)] {
        let screens = screens(drawn);
        let last = screens.last().expect("a screen");
        assert!(last.len() <= lines, "{} lines: {last:?}", last.len());
        let width = last.iter().map(|line| line.trim_end_matches("\x1b[K").chars().count()).max();
        assert!(width.is_some_and(|width| width <= columns), "{width:?}: {last:?}");
    }
    let lines = |drawn: &str| screens(drawn).last().map_or(0, Vec::len);
    assert!(lines(&small) == 9 && lines(&large) > 9, "{} {}", lines(&small), lines(&large));
    let (_, after) = end.rsplit_once(LEAVE).expect("it is left");
    assert!(after.contains("From ") && !after.contains('\x1b'), "the last screen stays: {after:?}");
    assert!(end.contains("\x1b[?25h") && end.contains("\x1b[?7h"), "cursor and lines are back");
}

/// The command that is watched ends, or so many screens have been shown.
#[test]
fn a_terminal_is_given_back_at_every_end() {
    if !is_permitted() {
        return;
    }
    for arguments in [&["--count", "1", "--interval", "0.1"][..], &["--", "sleep", "0.2"]] {
        let mut pair = Pair::open(24, 80);
        let mut child = pair.start(command(arguments));
        let drawn = pair.read_until(LEAVE, 1);
        assert!(drawn.starts_with(ENTER), "{drawn:?}");
        assert_eq!(child.wait().expect("a child").code(), Some(0));
    }
    let mut pair = Pair::open(24, 80);
    let mut refused = pair.start(command(&["--pid", "4194304"]));
    assert_eq!(refused.wait().expect("a child").code(), Some(1));
    pair.theirs = File::open("/dev/null").expect("a file").into();
    let mut drawn = Vec::new();
    // Whoever reads when nobody writes any more is told an error.
    let _ = pair.ours.read_to_end(&mut drawn);
    assert!(!drawn.contains(&0x1b), "nothing is drawn before it is known that it can be");
}
