//! Commands with a limit of time.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::suite::{Line, Program};
use crate::tree::Tree;

/// The way in which a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With the exit status 0.
    Passed,
    /// With another exit status, or by a signal.
    Failed,
    /// It was killed, because its time was over or the machine's memory nearly exhausted.
    Hung,
}

/// The result of a command.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The way in which it ended.
    pub ending: Ending,
    /// Its standard output and error output.
    pub output: String,
}

/// Interval between two checks of a running command.
const LOOK: Duration = Duration::from_millis(20);
/// Memory that must remain available on the machine, in KiB: a loop that a mutant does not end may
/// exhaust the memory.
const MEMORY_LEFT: u64 = 1 << 20;

/// Runs a command in a tree. It and its children are killed when `limit` is over, or when they
/// exhaust the machine's memory.
///
/// # Errors
///
/// Returns an error if it cannot be started, or its output cannot be stored.
pub fn run(tree: &Tree, line: &Line, limit: Duration) -> std::io::Result<Ended> {
    let log = tree.folder().join("output.txt");
    let file = File::create(&log)?;
    let mut command = command(tree, line);
    // A group of its own: what a killed test has started ends with it.
    let child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .process_group(0)
        .spawn()?;
    let ending = wait(child, limit)?;
    Ok(Ended { ending, output: read(&log)? })
}

fn command(tree: &Tree, line: &Line) -> Command {
    let built = tree.built(line.flags.is_some());
    let mut command = match line.program {
        Program::Cargo => Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into())),
        Program::Built(name) => Command::new(built.join("debug").join(name)),
    };
    // The settings for percid in the caller's shell are not part of a suite.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PERCID_") {
            command.env_remove(name);
        }
    }
    command
        .args(&line.arguments)
        .current_dir(tree.root())
        .env("CARGO_TARGET_DIR", built)
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_TERM_COLOR", "never")
        .env("RUSTFLAGS", line.flags.unwrap_or_default());
    command
}

fn wait(mut child: Child, limit: Duration) -> std::io::Result<Ending> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            // Remaining processes must not disturb the next suite.
            kill_group(&child);
            return Ok(if status.success() { Ending::Passed } else { Ending::Failed });
        }
        if Instant::now() > end || available_memory().is_some_and(|left| left < MEMORY_LEFT) {
            kill_group(&child);
            child.wait()?;
            return Ok(Ending::Hung);
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns the memory that the kernel reports as available, in KiB.
fn available_memory() -> Option<u64> {
    let all = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = all.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn kill_group(child: &Child) {
    // SAFETY: the group is the child's own: it was made for it, and no other has its number while
    // a member is left.
    unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
}

fn read(log: &Path) -> std::io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(log)?).into_owned())
}
