//! Child processes that use the structure.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::{io, ptr};

use crate::guarded::guarded;
use crate::random::Random;
use crate::structure::Structure;

/// Operations of a child.
const OPERATIONS: usize = 100;

/// Seconds after which the kernel ends a child that hangs.
const LIMIT: u32 = 60;

/// Forks. The child operates, visits and audits; the parent waits for it.
///
/// # Errors
///
/// The child's audit, panic or end by a signal. Returns `Ok(false)` if there is no child.
pub(crate) fn check(structure: &dyn Structure, random: &mut Random) -> Result<bool, String> {
    let Ok((reader, writer)) = io::pipe() else { return Ok(false) };
    // SAFETY: the child ends by `_exit` in `be_child`, and does only what the structure does.
    match unsafe { libc::fork() } {
        -1 => Ok(false),
        0 => be_child(structure, random, writer),
        child => {
            drop(writer);
            wait_for(child, reader).map(|()| true)
        }
    }
}

fn be_child(structure: &dyn Structure, random: &mut Random, mut writer: PipeWriter) -> ! {
    // SAFETY: no pointers.
    unsafe { libc::alarm(LIMIT) };
    let done = guarded(|| {
        (0..OPERATIONS).for_each(|_| structure.operate(random));
        structure.visit();
        structure.audit()
    });
    let result = done.and_then(|audited| audited);
    if let Err(text) = &result {
        // Without the text the parent has the status.
        let _ = writer.write_all(text.as_bytes());
    }
    // SAFETY: ends the process without the parent's exit handlers.
    unsafe { libc::_exit(i32::from(result.is_err())) }
}

fn wait_for(child: libc::pid_t, mut reader: PipeReader) -> Result<(), String> {
    let mut text = String::new();
    let read = reader.read_to_string(&mut text);
    let mut status = 0;
    loop {
        // SAFETY: the status is writable.
        let waited = unsafe { libc::waitpid(child, ptr::from_mut(&mut status), 0) };
        if waited == child {
            break;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Err("cannot wait for a child".to_owned());
        }
    }
    if libc::WIFSIGNALED(status) {
        return Err(format!("signal {} has ended a child", libc::WTERMSIG(status)));
    }
    match (libc::WEXITSTATUS(status), read) {
        (0, _) => Ok(()),
        (_, Ok(_)) => Err(text),
        (status, Err(_)) => Err(format!("a child has ended with status {status}")),
    }
}
