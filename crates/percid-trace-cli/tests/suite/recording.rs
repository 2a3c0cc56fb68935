//! `percid trace record` while it writes: what is there when it is killed, when the disk is full, when
//! there is enough, and of a flight recorder. The command that is recorded is `sh`, which starts
//! programs all the time, or `cat`, which is written to.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{PATIENCE, command, json, path, run, stderr};

/// A folder of this test's own. `None` if nothing may be recorded on this machine, and that is not
/// required.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recording-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let probe = folder.join("probe.parquet");
    let output = run(&["record", "-o", path(&probe), "--", "true"]);
    let required = std::env::var_os("PERCID_TRACE").is_some_and(|wish| wish == "require");
    assert!(output.status.success() || !required, "{}", stderr(&output));
    if !output.status.success() {
        percid_skips::not_checked("percid trace record", &stderr(&output));
    }
    output.status.success().then_some(folder)
}

/// The buffers limit how much arrives at once, also when the recorder did not get its CPU.
const LITTLE_AT_ONCE: [&str; 2] = ["--kernel-buffer-kib", "8"];

/// Room for all that a busy machine does while the recorder waits for its CPU.
const MUCH_AT_ONCE: [&str; 2] = ["--kernel-buffer-kib", "16384"];

/// Starts programs without end, and writes a line after each for the reader of its output.
const BUSY: [&str; 3] = ["sh", "-c", "while :; do /bin/true; echo; done"];

/// A recording of [`BUSY`] in its own group of processes, which ends with this value.
struct Recording {
    recorder: Child,
}

impl Recording {
    fn start(arguments: &[&str]) -> Recording {
        let all = [&["record"], arguments, &["--"], &BUSY[..]].concat();
        let mut command = command(&all);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut recorder = command.spawn().expect("the program starts");
        let mut output = recorder.stdout.take().expect("a pipe");
        // When it has written something it has begun, and nothing may make it wait later.
        let mut first = [0; 100];
        output.read_exact(&mut first).expect("it runs");
        thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Recording { recorder }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: sends a signal to a child that has not been waited for, so the number is still its
        // own.
        assert_eq!(unsafe { libc::kill(self.recorder.id() as libc::pid_t, signal) }, 0);
    }

    /// Returns its status and standard error, when it has ended.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = Vec::new();
        let mut pipe = self.recorder.stderr.take().expect("a pipe");
        wait_until("it ends", || self.recorder.try_wait().expect("a child").is_some());
        let status = self.recorder.wait().expect("a child");
        self.end_group();
        pipe.read_to_end(&mut said).expect("a pipe");
        (status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Ends what is recorded.
    fn end_group(&self) {
        // SAFETY: the group is of a child of ours, whose number is not given to another group while one
        // of its processes runs; if none does, nothing is ended, or what has just got its number: the
        // numbers are not given again for long.
        unsafe { libc::kill(-(self.recorder.id() as libc::pid_t), libc::SIGKILL) };
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.recorder.kill();
        self.end_group();
    }
}

/// Waits until something is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key}: {of}"))
}

#[test]
fn what_was_written_before_a_kill_is_read_and_finished() {
    let Some(folder) = folder("killed") else { return };
    let (file, partial) = (folder.join("t.parquet"), folder.join("t.parquet.partial"));
    let recording = Recording::start(&["-o", path(&file)]);
    wait_until("it writes", || size(&partial) > 20_000);
    // It grows, and nothing else is there yet.
    let before = size(&partial);
    wait_until("it writes on", || size(&partial) > before);
    assert!(!file.exists());
    let refused = run(&["recover", path(&partial)]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("still being recorded"), "{}", stderr(&refused));
    recording.signal(libc::SIGKILL);
    let (status, _) = recording.end();
    assert_eq!(status, None, "by the signal");

    let info = json(&["info", path(&partial)]);
    assert!(number(&info, "events") > 1000, "{info}");
    let limitations = info["quality"]["limitations"].to_string();
    assert!(limitations.contains("last 0.25 s"), "{limitations}");
    let missing = run(&["info", path(&file)]);
    assert!(stderr(&missing).contains("percid trace recover"), "{}", stderr(&missing));
    let again = run(&["record", "-o", path(&file), "--", "true"]);
    assert_eq!(again.status.code(), Some(2), "it is not overwritten");
    assert!(stderr(&again).contains("cut off"), "{}", stderr(&again));

    let recovered = json(&["recover", path(&partial)]);
    assert_eq!(recovered["cut_off"], true);
    assert!(number(&recovered, "events") >= number(&info, "events"));
    assert!(file.exists() && !partial.exists());
    let whole = json(&["info", path(&file)]);
    assert_eq!(whole["events"], recovered["events"]);
    assert!(whole["quality"]["limitations"].to_string().contains("last 0.25 s"));
    assert!(run(&["replay", path(&file), "--policy", "percid-table"]).status.success());
}

/// Negative control of the test above: a complete recording does not look cut off, and leaves
/// nothing.
#[test]
fn a_recording_that_ends_is_whole() {
    let Some(folder) = folder("whole") else { return };
    let (file, partial) = (folder.join("t.parquet"), folder.join("t.parquet.partial"));
    let recording = Recording::start(&["-o", path(&file)]);
    wait_until("it writes", || size(&partial) > 20_000);
    recording.signal(libc::SIGINT);
    let (status, said) = recording.end();
    assert_eq!(status, Some(130), "{said}");
    assert!(!partial.exists() && !said.contains("cut off"), "{said}");
    let info = json(&["info", path(&file)]);
    assert!(!info["quality"].to_string().contains("end is missing"), "{info}");
    let refused = run(&["recover", path(&file)]);
    assert_eq!(refused.status.code(), Some(2), "it is no .partial");
}

#[test]
fn a_command_that_cannot_be_started_leaves_nothing() {
    let Some(folder) = folder("nothing") else { return };
    let file = folder.join("t.parquet");
    let output = run(&["record", "-o", path(&file), "--", "/no/such/command"]);
    assert_eq!(output.status.code(), Some(127));
    let left = fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(left, 1, "the probe's");
}

#[test]
fn a_recording_stops_before_it_is_larger_than_it_may_be() {
    let Some(folder) = folder("max-size") else { return };
    let file = folder.join("t.parquet");
    let most = 256 << 10;
    let arguments = ["-o", path(&file), "--max-file-size", "256K"];
    let recording = Recording::start(&[&arguments[..], &LITTLE_AT_ONCE].concat());
    let (status, said) = recording.end();
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("STOPPED because more than the 262144 bytes"), "{said}");
    assert!(size(&file) <= most && size(&file) > most / 4, "{} bytes", size(&file));
    let info = json(&["info", path(&file)]);
    assert!(number(&info, "events") > 1000, "{info}");
    assert!(!info["quality"].to_string().contains("end is missing"), "it is whole");
    let ample = run(&["record", "-o", path(&file), "--max-file-size", "1G", "--", "true"]);
    assert!(ample.status.success() && !stderr(&ample).contains("STOPPED"), "the control");
}

/// `ulimit -f`, in blocks of 512 bytes, simulates a disk without room.
#[test]
fn a_full_disk_is_told_and_nothing_that_was_written_is_lost() {
    let Some(folder) = folder("full") else { return };
    let (file, partial) = (folder.join("t.parquet"), folder.join("t.parquet.partial"));
    let limited = |blocks: u32| {
        let program = env!("CARGO_BIN_EXE_percid-trace");
        let line = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, program, "record", "-o", path(&file), "--seconds", "3600"]);
        shell.args(LITTLE_AT_ONCE).arg("--");
        shell.args(["sh", "-c", "n=0; while [ $n -lt 3000 ]; do /bin/true; n=$((n+1)); done"]);
        let mut shell = shell.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a shell");
        let mut said = String::new();
        let mut pipe = shell.stderr.take().expect("a pipe");
        let status = shell.wait().expect("a child");
        // The command goes on and holds the pipe: nothing more is read than is there.
        read_what_is_there(&mut pipe, &mut said);
        (status.code(), said)
    };
    let (status, said) = limited(100);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("THE RECORDING ENDED EARLY: cannot write"), "{said}");
    assert!(said.contains("File too large"), "{said}");
    let info = match partial.exists() {
        // The file would have been too large as well.
        true => {
            assert!(said.contains("percid trace recover"), "{said}");
            let info = json(&["info", path(&partial)]);
            let recovered = json(&["recover", path(&partial)]);
            assert_eq!(recovered["left_out_bytes"], 0, "it ends with a whole frame");
            info
        }
        false => json(&["info", path(&file)]),
    };
    assert!(number(&info, "events") > 1000, "{info}");
    assert!(info["quality"].to_string().contains("no room left"), "{info}");
    let (status, said) = limited(1 << 20);
    assert_eq!(status, Some(0), "the control: {said}");
}

fn read_what_is_there(pipe: &mut std::process::ChildStderr, to: &mut String) {
    use std::os::fd::AsRawFd;

    // SAFETY: changes the flags of a descriptor that is open.
    assert_eq!(unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    let mut bytes = Vec::new();
    let _ = pipe.read_to_end(&mut bytes);
    to.push_str(&String::from_utf8_lossy(&bytes));
}

/// A disk of 256 KiB that the recorder fills, as the superuser only.
#[test]
fn a_disk_without_room_keeps_what_was_written() {
    // SAFETY: the call has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return percid_skips::not_checked("a disk without room", "only the superuser mounts");
    }
    let Some(folder) = folder("disk") else { return };
    let disk = folder.join("disk");
    fs::create_dir(&disk).expect("a folder");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "percid-test", path(&disk)])
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        return percid_skips::not_checked("a disk without room", "no tmpfs can be mounted");
    }
    let (file, partial) = (disk.join("t.parquet"), disk.join("t.parquet.partial"));
    let arguments = ["-o", path(&file)];
    let recording = Recording::start(&[&arguments[..], &LITTLE_AT_ONCE].concat());
    let (status, said) = recording.end();
    let elsewhere = folder.join("t.parquet");
    // The file may have had the room that a frame did not have.
    let is_to_recover = partial.exists();
    let kept = match is_to_recover {
        true => {
            run(&["recover", path(&partial), "-o", path(&elsewhere), "--json"]).status.success()
        }
        false => fs::copy(&file, &elsewhere).is_ok(),
    };
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(said.contains("percid trace recover"), is_to_recover, "{said}");
    assert!(kept, "{said}");
    let info = json(&["info", path(&elsewhere)]);
    assert!(number(&info, "events") > 5000, "{info}");
}

/// A shell that reads names, starts a program of each name, and then writes a line.
const ON_DEMAND: &str = "while read name; do cp /bin/true \"$0/$name\"; \"$0/$name\"; echo; done";

/// The names of processes in a file.
fn names(file: &Path) -> Vec<String> {
    let info = json(&["info", path(file)]);
    let processes = info["processes"].as_array().expect("processes");
    processes.iter().filter_map(|process| process["name"].as_str()).map(str::to_owned).collect()
}

/// The programs are started, and have ended, before the signal for which the file must contain
/// them. Only their events are recorded, so a slow recorder loses none of them.
#[test]
fn a_flight_recorder_keeps_the_end_and_writes_it_when_asked() {
    let Some(folder) = folder("ring") else { return };
    let (file, dump) = (folder.join("t.parquet"), folder.join("t.1.parquet"));
    let second = folder.join("t.2.parquet");
    fs::write(&second, "not ours").expect("a file");
    let arguments = ["record", "-o", path(&file), "--flight-recorder", "1M", "--only"];
    let script = ["--", "sh", "-c", ON_DEMAND, path(&folder)];
    let mut command = command(&[&arguments[..], &script].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = command.process_group(0).spawn().expect("the program starts");
    let mut names_to = recorder.stdin.take().expect("a pipe");
    let mut has_run = recorder.stdout.take().expect("a pipe");
    let recording = Recording { recorder };
    let mut start = |name: &str| {
        writeln!(names_to, "{name}").expect("a pipe");
        has_run.read_exact(&mut [0]).expect("it has run");
    };
    start("first");
    recording.signal(libc::SIGUSR1);
    wait_until("it is written", || dump.exists());
    assert!(!file.exists() && !folder.join("t.parquet.partial").exists());
    let dumped = names(&dump);
    let has = |names: &[String], name: &str| names.iter().any(|there| there == name);
    assert!(has(&dumped, "first") && !has(&dumped, "second"), "{dumped:?}");
    start("second");
    recording.signal(libc::SIGUSR1);
    let third = folder.join("t.3.parquet");
    wait_until("it goes on, and overwrites nothing", || third.exists());
    assert_eq!(fs::read(&second).expect("a file"), b"not ours");
    let dumped = names(&third);
    assert!(has(&dumped, "first") && has(&dumped, "second"), "{dumped:?}");
    start("third");
    recording.signal(libc::SIGINT);
    let (status, said) = recording.end();
    assert_eq!(status, Some(130), "{said}");
    assert!(said.contains("t.1.parquet: ") && said.contains("t.3.parquet: "), "{said}");
    let kept = names(&file);
    assert!(["first", "second", "third"].iter().all(|name| has(&kept, name)), "{kept:?}");
}

/// The last program of many has a name of its own.
#[test]
fn the_newest_events_are_those_that_are_kept() {
    let Some(folder) = folder("newest") else { return };
    let line = "for n in $(seq 1 5000); do /bin/true; done; cp /bin/true $0/last; $0/last";
    let record = |ring: &[&str], name: &str| {
        let file = folder.join(name);
        let arguments = ["record", "-o", path(&file), "--only"];
        let output = run(&[&arguments, ring, &["--", "sh", "-c", line, path(&folder)]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        json(&["info", path(&file)])
    };
    let whole = record(&[], "whole.parquet");
    let ring = record(&["--flight-recorder", "256K"], "ring.parquet");
    let events = |info: &Value| number(info, "events");
    assert!(events(&ring) < events(&whole) * 3 / 4, "{} {}", events(&ring), events(&whole));
    assert!(events(&ring) > 10_000, "{}", events(&ring));
    for info in [&ring, &whole] {
        let processes = info["processes"].as_array().expect("processes");
        assert!(processes.iter().any(|process| process["name"] == "last"), "the newest");
    }
}

/// A process that is there beside a recording, and is none of its command's.
struct Stranger(Child);

impl Stranger {
    fn start() -> Stranger {
        let mut command = Command::new("sh");
        Stranger(command.args(["-c", "while :; do :; done"]).spawn().expect("a shell"))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Keeps this thread, and what it starts from now on, on the CPU where it is.
fn stay_on_one_cpu() {
    // SAFETY: an empty set of CPUs is all zeros. The size passed is that of the set, and the calls
    // keep no pointer.
    let pinned = unsafe {
        let mut here: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut here);
        libc::sched_setaffinity(0, size_of_val(&here), &raw const here)
    };
    assert_eq!(pinned, 0);
}

#[test]
fn a_command_is_recorded_among_all_others_and_asked_about_alone() {
    let Some(folder) = folder("others") else { return };
    stay_on_one_cpu();
    let stranger = Stranger::start();
    let (whole, own) = (folder.join("whole.parquet"), folder.join("own.parquet"));
    // All on one CPU, so that the stranger has had turns before its time has changed.
    let busy = format!(
        "ran() {{ cut -d ' ' -f 14,15 /proc/{}/stat; }}; began=$(ran); \
         until [ \"$(ran)\" != \"$began\" ]; do /bin/true; done",
        stranger.0.id()
    );
    for (file, only) in [(&whole, &[][..]), (&own, &["--only"][..])] {
        let output = run(&[
            &["record", "-o", path(file)],
            &MUCH_AT_ONCE[..],
            only,
            &["--", "sh", "-c", &busy],
        ]
        .concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let processes = |arguments: &[&str]| -> Vec<u64> {
        let info = json(arguments);
        let all = info["processes"].as_array().expect("processes").iter();
        all.map(|process| number(process, "process")).collect()
    };
    let stranger = u64::from(stranger.0.id());
    assert!(!processes(&["info", path(&whole)]).contains(&stranger));
    assert!(processes(&["info", path(&whole), "--all"]).contains(&stranger));
    for question in ["latency", "preemptions", "migrations", "usage", "replay", "advise"] {
        let of_all = json(&[question, path(&whole), "--all"]);
        let (of_whole, of_own) = (json(&[question, path(&whole)]), json(&[question, path(&own)]));
        assert!(of_whole["trace"]["subject_processes"].as_u64() > Some(2), "{question}");
        assert_eq!(of_all["trace"]["subject_processes"], Value::Null, "{question}");
        let limited = |answer: &Value| answer["quality"].to_string().contains("was not seen");
        assert!(limited(&of_own) && !limited(&of_whole), "{question}");
    }
    let advice = |file| String::from_utf8_lossy(&run(&["advise", path(file)]).stdout).into_owned();
    let unseen = "The causes of waits were not seen";
    assert!(advice(&own).contains(unseen) && !advice(&whole).contains(unseen), "{}", advice(&own));
    let ran = |arguments: &[&str]| {
        let usage = json(&[&["usage", path(&whole)], arguments].concat());
        let threads = usage["threads"].as_array().expect("threads").clone();
        threads.iter().any(|thread| number(thread, "thread") == stranger)
    };
    assert!(ran(&["--all"]) && !ran(&[]));
    let both = run(&["info", path(&whole), "--all", "--process", "sh"]);
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
}

/// The most memory that a process has had, in KiB.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Some hundred thousand events, each of which would be 32 bytes in memory. Those of other programs
/// are left out, because what is kept of each thread stays.
#[test]
fn memory_does_not_grow_with_time() {
    let Some(folder) = folder("memory") else { return };
    let (file, partial) = (folder.join("t.parquet"), folder.join("t.parquet.partial"));
    // No more waits in the kernel than this, however late the recorder comes.
    let arguments = ["record", "-o", path(&file), "--only", "--kernel-buffer-kib", "256", "--"];
    let mut pong = command(&[&arguments[..], &["sh", "-c", "exec cat | cat"]].concat());
    pong.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut recorder = pong.spawn().expect("the program starts");
    let mut to = recorder.stdin.take().expect("a pipe");
    let mut from = recorder.stdout.take().expect("a pipe");
    let mut rounds_until = |bytes: u64| {
        let (mut byte, began) = ([7], Instant::now());
        while size(&partial) < bytes {
            assert!(began.elapsed() < PATIENCE, "{} bytes", size(&partial));
            for _ in 0..1000 {
                to.write_all(&byte).expect("a pipe");
                from.read_exact(&mut byte).expect("a pipe");
            }
        }
        peak(recorder.id()).expect("it runs")
    };
    let early = rounds_until(200 << 10);
    let late = rounds_until(3 << 19);
    drop((to, from));
    recorder.wait().expect("a child");
    let events = number(&json(&["info", path(&file)]), "events");
    let grown = late.saturating_sub(early);
    let all = events * 32 / 1024;
    assert!(all > 6000, "the control: {events} events would be that many KiB");
    assert!(grown < all / 2, "from {early} to {late} KiB while {events} events were recorded");
    assert!(late < 64 << 10, "{late} KiB");
}
