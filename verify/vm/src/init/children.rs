//! Runs programs, each within its time.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::ptr;
use std::time::Duration;

use percid_vm::protocol::{Ending, Job, Line, PROGRAMS_PATH};

use crate::port::Port;

/// The status that a shell returns for a command that it cannot start.
const NOT_STARTED: i32 = 127;

/// Runs `job` with its output going to `port`.
pub(crate) fn run(job: &Job, port: &mut Port) -> Ending {
    match start(job, port).and_then(|child| finish(child, job.limit())) {
        Ok(ending) => ending,
        Err(error) => {
            port.say(&Line::Note(format!("could not run `{}`: {error}", job.label())));
            Ending::Exit(NOT_STARTED)
        }
    }
}

/// Ends every process but this one and the kernel's.
pub(crate) fn sweep() {
    // SAFETY: plain system calls; -1 spares the caller, and the first process
    // has none above it to harm.
    unsafe {
        libc::kill(-1, libc::SIGKILL);
        // Orphans are ours to wait for. Ends with ECHILD.
        while libc::waitpid(-1, ptr::null_mut(), 0) > 0 {}
    }
}

fn start(job: &Job, port: &Port) -> io::Result<Child> {
    Command::new(PROGRAMS_PATH)
        .args(job.words())
        // The kernel passes us the unknown parts of its command line.
        .env_clear()
        .env("RUST_BACKTRACE", "1")
        .envs(job.environment().iter().cloned())
        .current_dir("/tmp")
        .stdin(Stdio::null())
        .stdout(port.as_output()?)
        .stderr(port.as_output()?)
        .spawn()
}

fn finish(mut child: Child, limit: Duration) -> io::Result<Ending> {
    if ends_within(&child, limit)? {
        return child.wait().map(ending);
    }
    child.kill()?;
    child.wait()?;
    Ok(Ending::Timeout(limit.as_secs()))
}

fn ending(status: ExitStatus) -> Ending {
    match status.code() {
        Some(code) => Ending::Exit(code),
        None => Ending::Signal(status.signal().unwrap_or(0)),
    }
}

fn ends_within(child: &Child, limit: Duration) -> io::Result<bool> {
    let handle = process_handle(child)?;
    let mut wait = libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let limit = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one entry, which lives through the call.
    match unsafe { libc::poll(&mut wait, 1, limit) } {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns a descriptor that becomes readable when the process ends.
fn process_handle(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: plain system call on integers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0);
    let fd = fd.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
