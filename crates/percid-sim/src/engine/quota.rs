//! CPU quotas: a process and its children run for a part of each period, as with `cpu.max` of
//! cgroup v2.
//!
//! The model follows Linux' CFS bandwidth control (`Documentation/scheduler/sched-bwc.rst`,
//! `kernel/sched/fair.c`; Turner, Rao and Rao, "CPU bandwidth control for CFS", Linux Symposium
//! 2010). The group has a pool, which is filled up to the quota when a period begins. CPUs take
//! slices of 5 ms from it. They are charged for run time at ticks and when the thread stops. A CPU
//! is throttled if its slice is used up while the pool is empty. The group's threads then leave
//! that CPU, and those that wake there do not run. A CPU without further threads of the group gives
//! back all but 1 ms. When the pool is filled, throttled CPUs get the time that they overran plus 1
//! ns, and run again. They are served in the order in which they were throttled.
//!
//! The model is simplified. Ticks charge a CPU that runs the group, wake-ups do not. Threads stop
//! at once; Linux 6.18 lets them continue to the end of their system call. There are no nested
//! groups, and no bursts (`cpu.max.burst`).
//!
//! This file has the time of a group and its CPUs. `throttling.rs` stops threads and charges CPUs.

use std::collections::VecDeque;

use super::index::ThreadIndex;
use crate::time::{MS, Ns};
use crate::topology::Cpu;
use crate::workload::Quota;

/// Time that a CPU takes from the pool at once: `sched_cfs_bandwidth_slice_us`.
pub(super) const SLICE: Ns = 5 * MS;

/// The index of a group in the simulation.
pub(super) type BandwidthIndex = u32;

/// A CPU's share of the group's time.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Rest of its slices, in nanoseconds; negative if it ran for longer.
    pub(super) left: i64,
    /// Time up to which its running thread has been charged.
    pub(super) paid: Ns,
    pub(super) is_throttled: bool,
    pub(super) since: Ns,
    /// Threads that would wait for the CPU if it was not throttled, in queue order.
    pub(super) parked: VecDeque<ThreadIndex>,
}

/// A process with its children, and their shared run time.
#[derive(Debug)]
pub(super) struct Bandwidth {
    pub(super) quota: Quota,
    /// Index of the program that the process runs.
    pub(super) part: usize,
    pub(super) pool: Ns,
    /// End of the period; `None` if nothing runs and there is no period.
    pub(super) ends: Option<Ns>,
    /// `true` if no CPU took time from the pool in this period.
    pub(super) is_unused: bool,
    pub(super) slack_is_due: bool,
    pub(super) shares: Vec<Share>,
    /// Throttled CPUs, in the order in which they were throttled.
    pub(super) throttled: VecDeque<Cpu>,
}

impl Bandwidth {
    pub(super) fn new(quota: Quota, part: usize, cpus: u32) -> Bandwidth {
        Bandwidth {
            quota,
            part,
            pool: quota.max,
            ends: None,
            is_unused: true,
            slack_is_due: false,
            shares: (0..cpus).map(|_| Share::default()).collect(),
            throttled: VecDeque::new(),
        }
    }

    pub(super) fn share(&mut self, cpu: Cpu) -> &mut Share {
        &mut self.shares[cpu as usize]
    }

    /// Takes another slice for a CPU whose slices are used up. Returns `true` if it may run.
    pub(super) fn refill(&mut self, cpu: Cpu) -> bool {
        let left = self.share(cpu).left;
        if left > 0 {
            return true;
        }
        let wanted = (SLICE as i64 - left) as u64;
        let taken = wanted.min(self.pool);
        self.pool -= taken;
        self.is_unused = false;
        let share = self.share(cpu);
        share.left += taken as i64;
        share.left > 0
    }
}
