//! A running program: its state, and Ctrl-C.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use super::command;
use super::wait::{ended, until};

/// Starts the program with readable output.
pub(crate) fn start(arguments: &str) -> Child {
    let mut command = command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Waits until the program catches SIGINT, according to its status file.
pub(crate) fn wait_until_it_listens(child: &Child) {
    until("it listens for SIGINT", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let status = status.expect("the program runs");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.expect("a set, unless it has ended").trim();
        let caught = u64::from_str_radix(caught, 16).expect("a hexadecimal set");
        (caught & (1 << (libc::SIGINT - 1)) != 0).then_some(())
    });
}

/// Returns `true` if the program has a thread of this name.
pub(crate) fn has_thread(child: &Child, name: &str) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("it runs");
    let name_of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm"));
    threads.flatten().any(|thread| name_of(thread).is_ok_and(|of| of.trim_end() == name))
}

/// Returns the user-mode CPU time of the program.
pub(crate) fn run_time(child: &Child) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it runs");
    let after_name = stat.rsplit(')').next().expect("fields");
    // The fourteenth field; the number and the name are the first two; in hundredths of a second.
    let ticks = after_name.split_whitespace().nth(11).expect("a field");
    Duration::from_millis(10 * ticks.parse::<u64>().expect("a number"))
}

pub(crate) fn interrupt(child: &Child) {
    // SAFETY: the child has not been waited for, so its process ID is not reused and the signal
    // reaches it.
    let sent = unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    assert_eq!(sent, 0);
}

/// Sends Ctrl-C, and waits for the end: exit status 130.
pub(crate) fn interrupted(child: Child) -> Output {
    interrupt(&child);
    let output = ended(child);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    output
}

/// Reads up to the first line with these words. Returns `true` if there was one. The rest stays
/// unread.
pub(crate) fn reads(from: &mut BufReader<impl Read>, words: &str) -> bool {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        if from.read_line(&mut line).expect("text") == 0 {
            return false;
        }
    }
    true
}
