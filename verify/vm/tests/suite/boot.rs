//! Boots real kernels, which takes minutes: only with `PERCID_VM=require`.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use percid_vm::cache::Cache;
use percid_vm::guest::{Entry, Source};
use percid_vm::harness::{Boot, Harness};
use percid_vm::kernel::Kernel;
use percid_vm::platform::{Arch, Platform, Series};
use percid_vm::protocol::{Ending, Job};
use percid_vm::shape::Shape;
use percid_vm::verdict::Fault;

use crate::machines::skipped;

const OLD: Platform = Platform::x86_64(Series::V6_1);
const NEW: Platform = Platform::x86_64(Series::V6_12);
const ARM: Platform = Platform::aarch64(Series::new(7, 3));

/// Returns the kernel for `platform`. Takes a lock, so that tests running side by side fetch it
/// once.
fn kernel(platform: Platform) -> Kernel {
    static FETCH: Mutex<()> = Mutex::new(());
    let _guard = FETCH.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = Cache::find();
    let kernel = Kernel::ready(platform, &cache);
    kernel.unwrap_or_else(|error| panic!("{error}"))
}

fn shape(text: &str) -> Shape {
    text.parse().expect("a good shape")
}

fn job(command: &str) -> Job {
    Job::new(command, Duration::from_secs(60)).expect("a good command")
}

fn fixtures(arch: Arch) -> std::path::PathBuf {
    let built = Source::fixtures().build(&Cache::find(), arch);
    built.expect("the harness's own programs build")
}

fn boot(platform: Platform, shape: Shape, jobs: &[Job], limit: Option<Duration>) -> Boot {
    let fixtures = fixtures(platform.arch);
    let harness = Harness::new(&Cache::find(), &fixtures).expect("the harness is ready");
    harness.boot(&kernel(platform), shape, jobs, limit).expect("the emulator runs")
}

/// Runs all of the harness's own programs, which check what the guest offers
/// and that programs do not disturb each other.
fn check(platform: Platform, size: &str) {
    if skipped(platform.arch) {
        return;
    }
    let entries = Entry::list(&fixtures(Arch::X86_64)).expect("the list is well-formed");
    let jobs = entries.iter().map(|entry| entry.job(Duration::from_secs(60)));
    let mut jobs: Vec<Job> = jobs.collect::<Result<_, _>>().expect("all entries are jobs");
    jobs.push(job("A=1 B= environment A=1 B="));
    let boot = boot(platform, shape(size), &jobs, None);
    let verdict = &boot.verdict;
    println!("{platform} on {size}: {:.1} s, {:?}", boot.wall.as_secs_f64(), verdict.notes);
    for result in &verdict.results {
        assert!(result.ending.passed(), "{}: {:?}", result.label, result.output);
    }
    assert_eq!(verdict.faults, []);
    assert!(verdict.passed());
    assert_eq!(verdict.results.len(), jobs.len());
    let left = |note: &&String| note.contains("`litter` left CPU");
    assert_eq!(verdict.notes.iter().filter(left).count(), 1, "{:?}", verdict.notes);
}

#[test]
fn kernel_6_1_with_8_cpus_on_2_nodes() {
    check(OLD, "8/2");
}

#[test]
fn kernel_6_1_with_16_cpus_on_4_nodes() {
    check(OLD, "16/4");
}

#[test]
fn kernel_6_12_with_8_cpus_on_2_nodes() {
    check(NEW, "8/2");
}

#[test]
fn kernel_6_12_with_16_cpus_on_4_nodes() {
    check(NEW, "16/4");
}

#[test]
fn kernel_6_12_with_64_cpus_on_8_nodes() {
    check(NEW, "64/8");
}

#[test]
fn a_kernel_of_64_bit_arm_with_4_cpus_on_2_nodes() {
    check(ARM, "4/2");
}

/// Its machines end in another way.
#[test]
fn a_machine_of_arm_that_is_turned_off_or_panics_or_lies_has_failed() {
    for (how, expected) in [
        ("power-off", "powered off or rebooted, expected status 33"),
        ("panic", "kernel panic (sysrq triggered crash)"),
        ("exit", "without a summary"),
        ("forge", "powered off or rebooted"),
    ] {
        let Some(boot) = misbehave_on(ARM, &[&format!("misbehave {how}")], None) else {
            return;
        };
        let faults = faults(&boot);
        assert!(faults.contains(expected), "{how}: {faults}");
    }
}

/// Far more CPUs are possible than are up.
#[test]
fn kernel_6_12_with_56_cpus_that_are_not_up() {
    check(NEW, "8+56/2");
}

/// Boots a small machine whose only job is to misbehave, or which does so after other jobs.
fn misbehave(commands: &[&str], limit: Option<Duration>) -> Option<Boot> {
    misbehave_on(NEW, commands, limit)
}

fn misbehave_on(platform: Platform, commands: &[&str], limit: Option<Duration>) -> Option<Boot> {
    if skipped(platform.arch) {
        return None;
    }
    let jobs: Vec<Job> = commands.iter().map(|command| job(command)).collect();
    let boot = boot(platform, shape("2/1"), &jobs, limit);
    println!("{:.1} s, {:?}", boot.wall.as_secs_f64(), boot.verdict);
    Some(boot)
}

/// Returns the faults of a machine that must have failed.
fn faults(boot: &Boot) -> String {
    assert!(!boot.verdict.passed(), "the harness noticed nothing");
    let faults = boot.verdict.faults.iter().map(Fault::to_string);
    faults.collect::<Vec<_>>().join("\n")
}

#[test]
fn programs_that_fail_are_told_apart_and_do_not_stop_the_others() {
    let short = Duration::from_secs(1);
    let commands = ["misbehave fail", "misbehave crash", "misbehave skip", "misbehave cut", "none"];
    let mut jobs: Vec<Job> = commands.iter().map(|command| job(command)).collect();
    jobs.push(job("misbehave hang").within(short));
    jobs.extend(["litter", "clean"].map(job));
    if skipped(Arch::X86_64) {
        return;
    }
    let boot = boot(OLD, shape("2/1"), &jobs, None);
    let endings: Vec<Ending> = boot.verdict.results.iter().map(|result| result.ending).collect();
    let expected = [
        Ending::Exit(1),
        Ending::Signal(6),
        Ending::Exit(77),
        Ending::Exit(0),
        Ending::Exit(2),
        Ending::Timeout(1),
        Ending::Exit(0),
        Ending::Exit(0),
    ];
    assert_eq!(endings, expected);
    assert_eq!(boot.verdict.faults, []);
    assert!(!boot.verdict.passed());
    assert_eq!(boot.verdict.results[0].output, ["about to fail", "as was asked for"]);
    assert_eq!(boot.verdict.results[3].output, ["about to cut", "no end"]);
    let tally = boot.verdict.tally();
    assert_eq!((tally.passed, tally.failed, tally.skipped), (3, 4, 1));
}

#[test]
fn a_machine_that_is_turned_off_early_has_failed() {
    for how in ["power-off", "reboot"] {
        let command = format!("misbehave {how}");
        let Some(boot) = misbehave(&["clock", &command, "clock"], None) else {
            return;
        };
        let faults = faults(&boot);
        assert!(faults.contains("powered off or rebooted, expected status 33"), "{faults}");
        assert!(faults.contains(&format!("while `{command}` was running")), "{faults}");
        assert_eq!(boot.verdict.results.len(), 1);
    }
}

#[test]
fn a_kernel_that_panics_has_failed() {
    let Some(boot) = misbehave(&["misbehave panic"], None) else {
        return;
    };
    let faults = faults(&boot);
    assert!(faults.starts_with("kernel panic (sysrq triggered crash)"), "{faults}");
}

#[test]
fn the_agreed_status_without_the_summary_is_a_failure() {
    let Some(boot) = misbehave(&["misbehave exit"], None) else {
        return;
    };
    assert!(faults(&boot).contains("without a summary"));
}

#[test]
fn the_summary_without_the_agreed_status_is_a_failure() {
    let Some(boot) = misbehave(&["misbehave forge"], None) else {
        return;
    };
    assert!(faults(&boot).contains("powered off or rebooted"));
    assert_eq!(boot.verdict.tally().passed, 1, "the forgery itself is perfect");
}

#[test]
fn a_program_that_speaks_the_harness_language_is_a_failure() {
    let Some(boot) = misbehave(&["misbehave garble"], None) else {
        return;
    };
    assert!(faults(&boot).contains("`PERCID-VM nonsense`"));
}

#[test]
fn a_machine_that_hangs_is_ended() {
    // Long enough to come up on a slow host, shorter than the program's time.
    let limit = Duration::from_secs(20);
    let Some(boot) = misbehave(&["misbehave hang"], Some(limit)) else {
        return;
    };
    let faults = faults(&boot);
    assert!(faults.starts_with("not done after 20 s, ended by the harness"), "{faults}");
}

/// Runs the command itself, as continuous integration calls it.
fn command(binary: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_percid-vm"));
    command.args(["--kernel", "6.12", "--shape", "2/1", "--binary"]).arg(binary).args(arguments);
    command.output().expect("the command starts")
}

#[test]
fn the_command_tells_success_failure_and_no_result_apart() {
    if skipped(Arch::X86_64) {
        return;
    }
    let _ = kernel(NEW);
    let binary = fixtures(Arch::X86_64);
    for (arguments, status, expected) in [
        (["--program", "clock"], 0, "vm: 1 boots, 1 programs: 1 passed, 0 failed"),
        (["--program", "misbehave fail"], 1, "FAILED 1"),
        (["--program", "misbehave power-off"], 1, "vm: 1 boots (1 broken)"),
        (["--program", "misspelt"], 2, "there is no program `misspelt`"),
        (["--keep-logs", "/dev/null/x"], 2, "could not create /dev/null/x"),
    ] {
        let output = command(&binary, &arguments);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}
