//! `percid trace top` of commands whose schedule is known, in each of its forms, and on a terminal.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{self, PATIENCE};

fn command(arguments: &[&str]) -> Command {
    program::command(&[&["top"], arguments].concat())
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns `true` if this machine permits a recording. Reports it if not, and panics if a
/// recording is required.
fn is_permitted() -> bool {
    let output = run(&["--", "true"]);
    let required = std::env::var_os("PERCID_TRACE").is_some_and(|wish| wish == "require");
    let said = text(&output.stderr);
    assert!(output.status.success() || !required, "{said}");
    if !output.status.success() {
        percid_skips::not_checked("percid trace top", &said);
    }
    output.status.success()
}

/// `percid trace top` of a script, which reads a line at its end.
struct Watch {
    child: Child,
    /// Closed, it ends the script, also where a test fails.
    script: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Watch {
    /// Starts the script on one CPU, so that threads which never sleep have to wait.
    fn start(arguments: &[&str], script: &[&str]) -> Watch {
        let mut command = command(&[arguments, &["--", "sh", "-c"], script].concat());
        // SAFETY: between `fork` and `exec`, `confine` only makes system calls on its own local
        // values.
        unsafe { command.pre_exec(confine) };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Watch { script: child.stdin.take(), child, lines }
    }

    /// The documents of [`LOOPS`] in intervals of 0.3 s.
    fn documents(arguments: &[&str]) -> Watch {
        Watch::start(&[&["--json", "--interval", "0.3"], arguments].concat(), &[LOOPS])
    }

    /// The next line that it prints.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.lines.read_line(&mut line).expect("a pipe");
        (length > 0).then_some(line)
    }

    fn document(&mut self) -> Option<Value> {
        self.line().map(|line| serde_json::from_str(&line).expect("a document a line"))
    }

    /// Reads until something is so of all documents.
    fn read_until(&mut self, what: &str, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let (mut all, began) = (Vec::new(), Instant::now());
        while !is_so(&all) {
            assert!(began.elapsed() < PATIENCE, "{what}: {all:?}");
            all.push(self.document().expect("it goes on"));
        }
        all
    }

    /// Returns the documents until it ends by itself, and the status.
    fn all(mut self) -> (Vec<Value>, Option<i32>) {
        let all = std::iter::from_fn(|| self.document()).collect();
        (all, self.child.wait().expect("a child").code())
    }

    /// Ends the script. Returns the documents that come yet, and the status.
    fn end(mut self) -> (Vec<Value>, Option<i32>) {
        self.script = None;
        self.all()
    }
}

/// Restricts the calling process to the first of its CPUs.
fn confine() -> std::io::Result<()> {
    // SAFETY: all zero is an empty set, and the calls stay within it.
    unsafe {
        let mut first: libc::cpu_set_t = std::mem::zeroed();
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&all), &mut all);
        let any = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &all));
        libc::CPU_SET(any.unwrap_or(0), &mut first);
        libc::sched_setaffinity(0, size_of_val(&first), &first);
    }
    Ok(())
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key}: {of}"))
}

/// Two threads on one CPU, each of which always runs or waits, and one that sleeps.
const LOOPS: &str = "while :; do :; done & a=$!; while :; do :; done & b=$!; \
                     sleep 100000 & c=$!; read line; kill $a $b $c; exit 7";

fn threads(of: &Value) -> &[Value] {
    of["threads"].as_array().expect("threads")
}

/// The lines of a thread.
fn lines_of(documents: &[Value], thread: u64) -> Vec<&Value> {
    let all = documents.iter().flat_map(threads);
    all.filter(|line| number(line, "thread") == thread).collect()
}

/// The two threads that never sleep, and the last intervals in which both are there all the time, none
/// of which was skipped.
fn loops(documents: &[Value]) -> Option<([u64; 2], &[Value])> {
    let [first, second, ..] = threads(documents.last()?) else { return None };
    let busy = [first, second].map(|line| number(line, "thread"));
    let has_both =
        |one: &Value| busy.iter().all(|&tid| !lines_of(std::slice::from_ref(one), tid).is_empty());
    let ends = |one: &&Value| number(one, "intervals_skipped") > 0 || !has_both(one);
    let length = documents.iter().rev().take_while(|one| !ends(one)).count();
    // In the first of them one may have begun.
    let whole = &documents[documents.len() - length..];
    whole.get(1..).map(|whole| (busy, whole))
}

/// `true` if there is enough to judge: the two have taken turns often, and the third one sleeps.
fn is_enough(documents: &[Value]) -> bool {
    loops(documents).is_some_and(|(busy, whole)| {
        let often = |key: &str, tid| {
            lines_of(whole, tid).iter().map(|line| number(line, key)).sum::<u64>() > 10
        };
        let take_turns = busy.iter().all(|&tid| often("preempted", tid) && often("switches", tid));
        take_turns && whole.len() >= 5 && ran(whole, "sleep") == 0
    })
}

/// Returns the run time of a command.
fn ran(documents: &[Value], name: &str) -> u64 {
    let all = documents.iter().flat_map(threads).filter(|line| line["name"] == name);
    all.map(|line| number(line, "run_ns")).sum()
}

#[test]
fn who_never_sleeps_runs_or_waits_and_no_time_is_lost_at_the_ends_of_intervals() {
    if !is_permitted() {
        return;
    }
    let mut watch = Watch::documents(&[]);
    let documents = watch.read_until("two take turns, and one sleeps", is_enough);
    let (rest, status) = watch.end();
    assert_eq!(status, Some(7), "that of the command");
    for (before, after) in documents.iter().zip(&documents[1..]) {
        let follows = before["until_ns"] == after["since_ns"];
        assert_eq!(follows, number(after, "intervals_skipped") == 0, "{before} {after}");
    }
    assert!(ran(&documents, "sleep") > 0, "the control: it was there, and does not run any more");
    let (busy, whole) = loops(&documents).expect("as it was read");
    let span: u64 = whole.iter().map(|one| number(one, "until_ns") - number(one, "since_ns")).sum();
    for tid in busy {
        let lines = lines_of(whole, tid);
        assert_eq!(lines.len(), whole.len(), "it is in each interval");
        let sum = |key: &str| lines.iter().map(|line| number(line, key)).sum::<u64>();
        // Also one that ends after that time, and began within.
        let waits = [lines_of(&documents, tid), lines_of(&rest, tid)].concat();
        let longest = waits.iter().map(|line| number(line, "longest_wait_ns")).max().unwrap_or(0);
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
    }
}

#[test]
fn lines_are_in_the_order_that_is_asked_for() {
    if !is_permitted() {
        return;
    }
    let orders = [("wait", "waited_ns"), ("run", "run_ns"), ("switches", "switches")];
    let lines = |one: &Value, kind: &str| one[kind].as_array().expect("lines").clone();
    for (sort, key) in orders {
        let mut watch = Watch::documents(&["--sort", sort, "--processes"]);
        let has_two = |all: &[Value]| all.iter().any(|one| lines(one, "processes").len() >= 2);
        for one in watch.read_until("two processes", has_two) {
            let lines = lines(&one, "processes");
            assert!(lines.iter().all(|line| line.get("thread").is_none()), "{lines:?}");
            let ordered = lines.is_sorted_by_key(|line| u64::MAX - number(line, key));
            assert!(ordered, "{sort}: {lines:?}");
        }
    }
    let mut few = Watch::documents(&["--rows", "1"]);
    let has_one = |one: &Value| lines(one, "threads").len() == 1;
    let has_some = |all: &[Value]| all.iter().filter(|one| has_one(one)).count() == 3;
    let few = few.read_until("three intervals with a thread", has_some);
    assert!(few.iter().all(|one| lines(one, "threads").len() <= 1), "{few:?}");
    let (all, _) = Watch::documents(&["--count", "2"]).all();
    assert_eq!(all.len(), 2);
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
    // It does something in every interval.
    let script = "cp \"$(command -v sh)\" \"$0/a\x1b[31mb\"; \
                  \"$0/a\x1b[31mb\" -c 'while :; do sleep 0.02; done' & c=$!; read line; kill $c";
    let path = folder.to_str().expect("an ordinary path");
    let mut watch = Watch::start(&["--interval", "0.2"], &[script, path]);
    let (mut said, began) = (String::new(), Instant::now());
    let is_told = |said: &str| {
        let screens = said.matches("\nBusy:").count();
        screens >= 2 && said.contains(r"a\u{1b}[31mb (")
    };
    while !is_told(&said) {
        assert!(began.elapsed() < PATIENCE, "screens follow each other, with the name: {said}");
        said.push_str(&watch.line().expect("it goes on"));
    }
    assert!(!said.contains('\x1b'), "{said}");
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

    /// Reads until something is so of what has come.
    fn read_until(&mut self, is_so: impl Fn(&str) -> bool) -> String {
        let mut all = String::new();
        let began = Instant::now();
        let mut bytes = [0; 4096];
        while !is_so(&all) {
            assert!(began.elapsed() < PATIENCE, "{all:?}");
            let read = self.ours.read(&mut bytes).expect("a terminal");
            all.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        all
    }

    /// Reads all output until no process writes any more.
    fn read_to_end(&mut self) -> String {
        self.theirs = File::open("/dev/null").expect("a file").into();
        let mut drawn = Vec::new();
        // The read returns an error once no process writes any more.
        let _ = self.ours.read_to_end(&mut drawn);
        String::from_utf8_lossy(&drawn).into_owned()
    }
}

/// Threads that do something all the time, so that there is more to show than has room.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn start() -> Busy {
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..40 {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Relaxed) {
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        Busy(over)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
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

/// Returns `true` if a screen with so many lines was drawn.
fn has_lines(drawn: &str, lines: usize) -> bool {
    screens(drawn).iter().any(|screen| screen.len() == lines)
}

#[test]
fn a_terminal_is_filled_followed_and_given_back() {
    if !is_permitted() {
        return;
    }
    let _busy = Busy::start();
    let mut pair = Pair::open(9, 50);
    let mut child = pair.start(command(&["--interval", "0.2"]));
    let small = pair.read_until(|drawn| has_lines(drawn, 9));
    assert!(small.starts_with(ENTER), "{small:?}");
    pair.resize(30, 100);
    let large = pair.read_until(|drawn| has_lines(drawn, 30));
    // SAFETY: sends a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
    let end = pair.read_to_end();
    assert_eq!(child.wait().expect("a child").code(), Some(130), "as of `record`");
    for (drawn, lines, columns) in [(&small, 9, 50), (&large, 30, 100)] {
        for screen in screens(drawn) {
            assert!(screen.len() <= lines, "{} lines: {screen:?}", screen.len());
            let lines = screen.iter().map(|line| line.trim_end_matches("\x1b[K").chars().count());
            assert!(lines.max().is_some_and(|width| width <= columns), "{screen:?}");
        }
    }
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
        let drawn = pair.read_until(|drawn| drawn.contains(LEAVE));
        assert!(drawn.starts_with(ENTER), "{drawn:?}");
        assert_eq!(child.wait().expect("a child").code(), Some(0));
    }
    let mut pair = Pair::open(24, 80);
    let mut refused = pair.start(command(&["--pid", "4194304"]));
    assert_eq!(refused.wait().expect("a child").code(), Some(1));
    assert!(
        !pair.read_to_end().contains('\x1b'),
        "nothing is drawn before it is known that it can be"
    );
}
