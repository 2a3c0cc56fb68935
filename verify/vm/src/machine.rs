//! One running machine: started, watched, ended.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::tool;

/// Interval between two checks of the machine.
const GLANCE: Duration = Duration::from_millis(10);

/// Maximum log size: more than any normal run writes; stops one that would fill the disk.
const MAX_LOG: u64 = 64 << 20;

/// The files that a machine writes.
#[derive(Debug, Clone, Copy)]
pub struct Logs<'a> {
    /// The kernel's console.
    pub console: &'a Path,
    /// The report of the guest's first process and its programs.
    pub report: &'a Path,
    /// QEMU's own messages.
    pub emulator: &'a Path,
}

/// The way in which a machine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It ended itself; contains QEMU's exit status.
    Exited(ExitStatus),
    /// The harness ended it when this time was over.
    Overdue(Duration),
    /// The harness ended it because it wrote without end.
    Flooded,
}

/// The results of an ended machine.
#[derive(Debug, Clone)]
pub struct Remains {
    /// The way in which it ended.
    pub end: End,
    /// Its duration by the host's clock.
    pub wall: Duration,
    /// The kernel's console.
    pub console: String,
    /// The guest's report.
    pub report: String,
    /// QEMU's own messages.
    pub emulator: String,
}

/// Runs `command`, which writes `logs`, for at most `limit`.
pub fn run(mut command: Command, logs: Logs<'_>, limit: Duration) -> Result<Remains> {
    let messages = File::create(logs.emulator).map_err(Error::file("write", logs.emulator))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages);
    die_with_parent(&mut command);
    let started = Instant::now();
    let child = command.spawn().map_err(|error| start_error(&error, &command))?;
    let end = Watched(child).watch(logs, started, limit)?;
    Ok(Remains {
        end,
        wall: started.elapsed(),
        console: text(logs.console),
        report: text(logs.report),
        emulator: text(logs.emulator),
    })
}

/// A child that is ended if we leave early, so that no error path leaves a
/// machine running.
struct Watched(Child);

impl Watched {
    fn watch(mut self, logs: Logs<'_>, started: Instant, limit: Duration) -> Result<End> {
        loop {
            let state = self.0.try_wait().map_err(watch_error)?;
            if let Some(status) = state {
                return Ok(End::Exited(status));
            }
            if started.elapsed() >= limit {
                return Ok(End::Overdue(limit));
            }
            if length(logs.console) + length(logs.report) > MAX_LOG {
                return Ok(End::Flooded);
            }
            thread::sleep(GLANCE);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Both do nothing for a child that has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes the machine die with this process, even if it is killed: a machine that is not ended spins
/// forever.
fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let hook = move || {
        // SAFETY: plain system calls on integers, allowed between fork and exec.
        let parent_now = unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::getppid()
        };
        // The parent may have died before the request for the signal.
        if parent_now.unsigned_abs() == parent {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::Interrupted))
        }
    };
    // SAFETY: the hook neither allocates nor takes a lock.
    unsafe { command.pre_exec(hook) };
}

fn start_error(error: &io::Error, command: &Command) -> Error {
    Error::ToolFailed {
        task: "start a machine".to_owned(),
        command: format!("{}: {error}", tool::words(command)),
        stderr: String::new(),
    }
}

fn watch_error(error: io::Error) -> Error {
    Error::ToolFailed {
        task: "watch a machine".to_owned(),
        command: format!("waiting for the emulator: {error}"),
        stderr: String::new(),
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns a log as text. A missing one is an empty one: the machine never got there.
fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.replace('\r', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Scratch;

    /// Longer than the slowest host needs for any of these scripts.
    const AGES: Duration = Duration::from_secs(1800);

    /// Runs a shell script in place of QEMU; `$1` is the console, `$2` the
    /// report.
    fn run_script(script: &str, limit: Duration) -> Remains {
        let scratch = Scratch::new().expect("temporary directory");
        let path = |name| scratch.path().join(name);
        let (console, report, emulator) = (path("console"), path("report"), path("emulator"));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "sh"]).arg(&console).arg(&report);
        let logs = Logs { console: &console, report: &report, emulator: &emulator };
        run(command, logs, limit).expect("the shell runs")
    }

    #[test]
    fn all_that_was_said_is_kept() {
        let script = "echo kernel >$1; printf 'guest\\r\\n' >$2; echo oh >&2; exit 33";
        let remains = run_script(script, AGES);
        assert!(matches!(remains.end, End::Exited(status) if status.code() == Some(33)));
        assert_eq!(remains.console, "kernel\n");
        assert_eq!(remains.report, "guest\n");
        assert_eq!(remains.emulator, "oh\n");
    }

    #[test]
    fn an_overdue_machine_is_ended() {
        let limit = Duration::from_millis(100);
        let remains = run_script(&format!("exec sleep {}", AGES.as_secs()), limit);
        assert_eq!(remains.end, End::Overdue(limit));
        assert!(remains.wall < AGES, "it came to its end by itself");
    }

    #[test]
    fn an_endless_log_is_stopped() {
        let remains = run_script("exec yes >$2", AGES);
        assert_eq!(remains.end, End::Flooded);
    }
}
