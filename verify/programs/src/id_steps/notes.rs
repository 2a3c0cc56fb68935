//! The notes of a thread of the traced process: the IDs that it sees, and the times at which it
//! ran.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use percid::Source;

use crate::pinning;

/// Between the ends of two threads.
pub(super) const APART_ENDS: Duration = Duration::from_millis(20);

/// Interval between two looks of a thread that stays on its CPU.
pub(super) const LOOKS: Duration = Duration::from_millis(2);

/// The notes, which are kept until the process ends.
static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Pause between a change of a thread's activity and a look at its ID, so that the order of the two
/// is clear from times in microseconds.
const APART: Duration = Duration::from_micros(50);

/// Restricts the calling thread to one CPU, and notes that before the kernel moves the thread.
pub(super) fn pin(cpu: u32) {
    note(format!("{} affinity {} 1", now_us(), pinning::thread_id()));
    pinning::restrict(0, &[cpu]);
}

/// Notes the ID that the calling thread has.
pub(super) fn look() {
    spin(APART);
    let now = now_us();
    if let Some(id) = Source::Kernel.current_id() {
        note(format!("{now} id {} {id}", pinning::thread_id()));
    }
    spin(APART);
}

/// Makes room, so that notes need no memory later.
pub(super) fn reserve() {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner).reserve(1 << 15);
}

/// Prints all notes.
pub(super) fn print() {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|note| println!("{note}"));
}

fn note(text: String) {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner).push(text);
}

/// Stays on the CPU, and notes when it is back after something else ran there. That distinguishes a
/// timer tick after which the thread returned at once from one that was followed by a switch.
pub(super) fn spin(duration: Duration) {
    let start = Instant::now();
    let mut before = start;
    while before - start < duration {
        let now = Instant::now();
        if now - before > GAP {
            be_seen();
        }
        before = now;
    }
}

/// Notes that the thread is in user space.
pub(super) fn be_seen() {
    note(format!("{} back {} 0", now_us(), pinning::thread_id()));
}

/// Sleeps, after a note that it was seen.
pub(super) fn sleep(duration: Duration) {
    be_seen();
    thread::sleep(duration);
}

/// Longer than reading the clock takes, shorter than an interrupt.
const GAP: Duration = Duration::from_micros(8);

/// Returns the clock of the trace, in microseconds.
fn now_us() -> u64 {
    // SAFETY: all zero is a valid time.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes one time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}
