//! Talking to the program that drives the machine.

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use percid_race_guest::Line;

use crate::actor::spin_until;

/// The host stops the whole machine while it decides, so this is time in which it does not.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes a line to the console.
pub(crate) fn say(line: &Line) {
    // In one piece, and on a line of its own. If it fails, the host misses the line and reports
    // that.
    let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
}

/// Says `line`, and waits until the host has answered `wanted`, or more. Spins: the host answers by
/// writing into the address space of the process that runs on this CPU.
pub(crate) fn ask(line: &Line, answer: &AtomicU32, wanted: u32) -> Result<(), String> {
    say(line);
    if spin_until(PATIENCE, || answer.load(Ordering::Acquire) >= wanted) {
        return Ok(());
    }
    Err(format!("no answer to `{line}`"))
}
