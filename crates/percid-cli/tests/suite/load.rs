//! Measurements next to programs that never sleep: they end, and their times are not shown. No time
//! is judged: the loops are runnable from before the first sample of the program to after its last,
//! independently of the scheduler.

use crate::percid;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use percid::{allowed, bounded, command, document, list};

/// Processes that never sleep, until this is dropped.
struct Loops(Vec<Child>);

impl Loops {
    /// Starts more processes than the machine has CPUs, even if each of the measuring program's
    /// threads were mistaken for one of them. Waits until all have begun.
    fn start() -> Loops {
        let cpus = list(&percid::json("info --json")["machine"], "cpus").len();
        let mut loops = Loops(Vec::new());
        for _ in 0..cpus + 8 {
            let mut shell = Command::new("sh");
            shell.args(["-c", "echo begun; while :; do :; done"]).stdout(Stdio::piped());
            loops.0.push(shell.spawn().expect("a shell"));
        }
        loops.0.iter_mut().for_each(|one| {
            let mut line = String::new();
            let output: &mut ChildStdout = one.stdout.as_mut().expect("its output");
            BufReader::new(output).read_line(&mut line).expect("it says that it has begun");
            assert_eq!(line, "begun\n");
        });
        loops
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for one in &mut self.0 {
            let _ = one.kill();
            let _ = one.wait();
        }
    }
}

/// Returns the program as users start it.
fn judging(arguments: &str) -> Command {
    let mut command = command(arguments);
    command.env_remove("PERCID_BUSY");
    command
}

const MASK: &str = "bench mask --seconds 0.2 --json";

#[test]
fn beside_busy_loops_times_are_hidden_and_counts_are_not() {
    let loops = Loops::start();
    let busy = document(&bounded(&mut judging(MASK)));
    let noise = &list(&busy, "noise")[0];
    assert_eq!(noise["part"], "mask");
    assert!(noise["runnable_threads"].as_u64() >= noise["cpus"].as_u64(), "{noise}");
    assert_eq!(busy["mask_exact"], true);
    for row in list(&busy, "mask") {
        assert!(row["ns_min"].is_null() && row["ns_median"].is_null(), "{row}");
        assert!(row["ratio_to_plain_add"].is_null() && row["rounds"].is_u64(), "{row}");
    }
    // The control: the same with its times.
    let kept = document(&bounded(judging(MASK).env("PERCID_BUSY", "ignore")));
    assert_eq!(list(&kept, "noise")[0]["part"], "mask");
    list(&kept, "mask").iter().for_each(|row| assert!(row["ns_min"].is_f64(), "{row}"));

    let output = bounded(&mut judging("info --check --seconds 1"));
    drop(loops);
    let text = String::from_utf8(output.stdout).expect("text");
    // The machine may be so busy that no abort by the kernel was detected.
    let not_checked = output.status.code() == Some(3) && text.contains("NOT CHECKED");
    assert!(not_checked || output.status.success() && text.contains("as promised"), "{text}");
    if allowed(&kept) > 1 {
        let said = |line: &str| {
            line.contains("the machine was busy: ") && line.contains(" runnable threads on ")
        };
        assert!(text.lines().any(said), "{text}");
        assert!(!text.contains("above bare"), "{text}");
    }
}

#[test]
#[ignore = "long: a process that hardly ever gets a CPU"]
fn at_the_lowest_priority_beside_busy_loops_it_ends() {
    let loops = Loops::start();
    for arguments in [MASK, "info --check --seconds 1 --json"] {
        let mut idle = Command::new("chrt");
        let program = judging(arguments);
        idle.args(["--idle", "0"]).arg(program.get_program()).args(program.get_args());
        let found = document(&bounded(
            idle.env_remove("PERCID_BUSY").stdout(Stdio::piped()).stderr(Stdio::piped()),
        ));
        assert!(!list(found.get("check").unwrap_or(&found), "noise").is_empty(), "{arguments}");
    }
    drop(loops);
}
