//! What the process may use now: its threads and its CPUs, as the kernel says.

use super::density;
use crate::sys::cpuset::CpuSet;
use crate::sys::{MAX_CPUS, affinity, process};
use percid_rules::space::Limits;

/// What was asked last. All zero is "never", so it may lie in memory that a fork wipes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct KnownLimits {
    /// The union of all affinities seen (R2, R11).
    allowed: CpuSet,
    /// The affinity of the thread that asks.
    mine: CpuSet,
    /// The size of the union (R3); 0 if the kernel did not say.
    nr_cpus_allowed: u32,
    /// The threads of the process; 0 without `/proc`.
    threads: u32,
    /// One more than the time of the last question, in milliseconds; 0 for never.
    asked_ms: u64,
}

impl KnownLimits {
    /// The limits, for a thread on `cpu`.
    ///
    /// Asking takes two system calls, so the answer serves for one tick of the coarse clock (1 to
    /// 10 ms). A thread on a CPU outside the union shows that an affinity has been widened since:
    /// that is asked at once.
    pub(crate) fn now(&mut self, cpu: u32, now_ms: u64) -> Limits {
        if self.asked_ms == now_ms + 1 && self.allowed.contains(cpu) {
            self.known()
        } else {
            self.ask(now_ms)
        }
    }

    /// The limits, asked for.
    pub(crate) fn ask(&mut self, now_ms: u64) -> Limits {
        if affinity::read_allowed(&mut self.mine) {
            self.allowed.add_all(&self.mine);
            self.nr_cpus_allowed = self.allowed.len() as u32;
        }
        self.threads = process::threads().unwrap_or(0);
        self.asked_ms = now_ms + 1;
        self.known()
    }

    fn known(&self) -> Limits {
        let or = |number: u32, unknown: u32| if number == 0 { unknown } else { number };
        Limits {
            allowed: or(self.nr_cpus_allowed, MAX_CPUS as u32),
            // Without /proc only the CPUs bound the IDs.
            threads: or(self.threads, u32::MAX),
            most: density::most(),
        }
    }
}
