//! Child processes that use the structure.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::time::Duration;
use std::{io, ptr, thread};

use crate::guarded::guarded;
use crate::random::Random;
use crate::structure::Structure;

/// Operations of a child.
const OPERATIONS: usize = 100;

/// Number of waits after which a child that hangs is killed. Several, since a process that is
/// stopped loses one of them only.
const WAITS: usize = 60_000;
const WAIT: Duration = Duration::from_millis(1);

/// Bytes of a child's text, which fit into a pipe.
const MOST_TEXT: usize = 1024;

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
    let done = guarded(|| {
        (0..OPERATIONS).for_each(|_| structure.operate(random));
        structure.visit();
        structure.audit()
    });
    let result = done.and_then(|audited| audited);
    if let Err(text) = &result {
        // Without the text the parent has the status.
        let _ = writer.write_all(&text.as_bytes()[..text.len().min(MOST_TEXT)]);
    }
    // SAFETY: ends the process without the parent's exit handlers.
    unsafe { libc::_exit(i32::from(result.is_err())) }
}

fn wait_for(child: libc::pid_t, mut reader: PipeReader) -> Result<(), String> {
    let status = match wait(child) {
        Ok(Some(status)) => status,
        Ok(None) => {
            // SAFETY: the child is this process's, and was not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            wait(child).ok();
            return Err("a child does not end".to_owned());
        }
        Err(error) => return Err(format!("cannot wait for a child: {error}")),
    };
    if libc::WIFSIGNALED(status) {
        return Err(format!("signal {} has ended a child", libc::WTERMSIG(status)));
    }
    let mut text = Vec::new();
    let read = reader.read_to_end(&mut text);
    match (libc::WEXITSTATUS(status), read) {
        (0, _) => Ok(()),
        (_, Ok(length)) if length > 0 => {
            Err(format!("in a child: {}", String::from_utf8_lossy(&text)))
        }
        (status, _) => Err(format!("a child has ended with status {status}")),
    }
}

/// Waits for a child. Returns its status; `None` if it does not end.
fn wait(child: libc::pid_t) -> io::Result<Option<libc::c_int>> {
    for _ in 0..WAITS {
        let mut status = 0;
        // SAFETY: the status is writable.
        match unsafe { libc::waitpid(child, ptr::from_mut(&mut status), libc::WNOHANG) } {
            0 => thread::sleep(WAIT),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => return Ok(Some(status)),
        }
    }
    Ok(None)
}
