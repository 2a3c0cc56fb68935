//! The current limits of the process: its threads and its CPUs, as reported by the kernel.

use super::id_limit;
use crate::sys::cpuset::CpuSet;
use crate::sys::{MAX_CPUS, affinity, process};
use percid_rules::space::Limits;

/// The last answers of the kernel. All zero is "never", so it may lie in memory that a fork wipes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct KnownLimits {
    /// The union of all affinities seen (R2, R11).
    allowed: CpuSet,
    /// The affinity of the requesting thread.
    mine: CpuSet,
    /// The size of the union (R3); 0 if the kernel did not report it.
    nr_cpus_allowed: u32,
    /// Number of threads in the process; 0 without `/proc`.
    threads: u32,
    /// One more than the time of the last request, in milliseconds; 0 for never.
    asked_ms: u64,
}

impl KnownLimits {
    /// Returns the limits, for a thread on `cpu`.
    ///
    /// A request takes two system calls, so its answer is used for one tick of the coarse clock (1
    /// to 10 ms). A thread on a CPU outside the union shows that an affinity has been widened
    /// since: then the kernel is asked at once.
    pub(crate) fn now(&mut self, cpu: u32, now_ms: u64) -> Limits {
        if self.asked_ms == now_ms + 1 && self.allowed.contains(cpu) {
            self.known()
        } else {
            self.ask(now_ms)
        }
    }

    /// Returns the limits after asking the kernel.
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
            // Without /proc only the CPUs limit the IDs.
            threads: or(self.threads, u32::MAX),
            most: id_limit::most(),
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::id::{IdLimit, set_id_limit};

    /// More threads than this process has.
    const OLD: u32 = 1_000_000;

    fn never() -> KnownLimits {
        let (allowed, mine) = (CpuSet::new(), CpuSet::new());
        KnownLimits { allowed, mine, nr_cpus_allowed: 0, threads: 0, asked_ms: 0 }
    }

    fn allowed() -> CpuSet {
        let mut set = CpuSet::new();
        assert!(affinity::read_allowed(&mut set));
        set
    }

    #[test]
    fn an_answer_serves_for_a_tick_on_the_cpus_that_are_known() {
        let mut limits = never();
        let here = allowed().last().expect("a CPU");
        let known = limits.now(here, 5);
        assert!((1..OLD).contains(&known.threads));
        assert_eq!(known.allowed as usize, allowed().len());
        limits.threads = OLD;
        assert_eq!(limits.now(here, 5).threads, OLD);
        assert_ne!(limits.now(here, 6).threads, OLD);
        limits.threads = OLD;
        assert_ne!(limits.now(MAX_CPUS as u32 - 1, 6).threads, OLD, "an affinity was widened");
    }

    #[test]
    fn at_the_beginning_of_time_nothing_was_asked() {
        let mut limits = never();
        let here = allowed().last().expect("a CPU");
        limits.allowed.insert(here);
        assert!(limits.now(here, 0).threads < OLD);
    }

    #[test]
    fn what_was_ever_allowed_counts() {
        let mut limits = never();
        let elsewhere = MAX_CPUS as u32 - 1;
        limits.allowed.insert(elsewhere);
        let known = limits.ask(5);
        assert!(limits.allowed.contains(elsewhere));
        assert_eq!(known.allowed as usize, allowed().len() + 1);
    }

    #[test]
    fn what_the_kernel_does_not_say_bounds_nothing() {
        let known = never().known();
        assert_eq!((known.allowed, known.threads), (MAX_CPUS as u32, u32::MAX));
    }

    #[test]
    fn the_limit_is_what_was_asked_for() {
        for (limit, most) in
            [(IdLimit::Strict, 0), (IdLimit::AtMost(16), 16), (IdLimit::Adaptive, u32::MAX)]
        {
            set_id_limit(limit);
            assert_eq!(never().known().most, most);
        }
    }
}
