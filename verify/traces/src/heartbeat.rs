//! Keeps the clocks of idle CPUs going.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use percid_trace::event::Cpu;

use crate::cpus;

/// Interval of activity on each CPU.
const PERIOD: Duration = Duration::from_millis(10);

/// Runs short work on every CPU regularly during `work`. A scan of the kernel compares the age of
/// an ID with the clock of the CPU's run queue, which stands still while that CPU sleeps: no trace
/// shows that.
pub(crate) fn during<T>(all: &[Cpu], work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for &cpu in all {
            let is_over = &is_over;
            scope.spawn(move || {
                if cpus::restrict(&[cpu]).is_ok() {
                    yield_to_all();
                    while !is_over.load(Relaxed) {
                        thread::sleep(PERIOD);
                    }
                }
            });
        }
        let result = work();
        is_over.store(true, Relaxed);
        result
    })
}

/// Makes the calling thread run only while no other thread can run on its CPU.
fn yield_to_all() {
    // SAFETY: all zero is a valid parameter, and the call reads it.
    unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        // If that is refused, others are preempted sometimes.
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter);
    }
}
