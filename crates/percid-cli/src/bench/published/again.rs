//! This program once more, in a process of its own: the kernel remembers which IDs a process had,
//! and what is published was measured in new ones.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use serde_json::Value;

/// How often is looked whether it has ended, after it should have. This process runs on a CPU that
/// is measured, so not often.
const LOOK: Duration = Duration::from_millis(20);
/// How often progress is told meanwhile.
const TELL: Duration = Duration::from_secs(1);

/// Runs it with these arguments, which takes about `expected`, and reads the document that it
/// prints. Calls `tell` now and then. Nothing if Ctrl-C is pressed meanwhile: then it is ended.
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
        // It may have ended by itself: Ctrl-C reaches it too.
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
