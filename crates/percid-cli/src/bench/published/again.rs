//! Runs this program again in a new process: the kernel remembers the IDs of a process, and the
//! published values were measured in new processes.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use serde_json::Value;

/// Interval at which the end of an overdue process is checked. It is long, because this process
/// runs on a CPU that is measured.
const LOOK: Duration = Duration::from_millis(20);
/// Interval between two progress reports.
const TELL: Duration = Duration::from_secs(1);

/// Runs it with these arguments, which takes about `expected`, and reads the document that it
/// prints. Calls `tell` regularly. Ctrl-C ends the process; the result is `None` then.
pub(super) fn run(
    arguments: &[String],
    expected: Duration,
    interrupt: &Interrupt,
    tell: impl Fn(),
) -> Result<Option<Value>, Failure> {
    let failed = |cause| Failure::new(format!("percid {}", arguments.join(" ")), cause);
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let mut stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe.into()).map_err(failed)?;
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        stdout.read_to_end(&mut text).map(|_| text)
    });
    let should_end = Instant::now() + expected;
    while !reader.is_finished() && !interrupt.pressed() {
        tell();
        interrupt.sleep(should_end.saturating_duration_since(Instant::now()).clamp(LOOK, TELL));
    }
    let is_cut_short = interrupt.pressed();
    if is_cut_short {
        // It may have ended by itself: Ctrl-C is sent to it too.
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed)?;
    let text = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    if is_cut_short {
        return Ok(None);
    }
    if !status.success() {
        return Err(failed(io::Error::other(format!("it ended with {status}"))));
    }
    let document = serde_json::from_slice(&text.map_err(failed)?);
    document.map(Some).map_err(|error| failed(error.into()))
}
