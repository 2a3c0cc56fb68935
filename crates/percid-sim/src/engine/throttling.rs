//! Throttling: the threads of a group leave a CPU whose time is used up, and run there again later.
//!
//! `quota.rs` describes the model.

use std::collections::VecDeque;

use super::index::ThreadIndex;
use super::queue::Event;
use super::quota::{Bandwidth, BandwidthIndex, SLICE};
use super::simulation::Simulation;
use super::thread::RunState;
use crate::time::{MS, Ns};
use crate::topology::Cpu;
use crate::workload::Quota;

/// Time that a CPU without further threads of the group keeps: `min_cfs_rq_runtime`.
const MIN_KEPT_QUOTA: Ns = MS;
/// Delay until throttled CPUs get the time that was given back: `cfs_bandwidth_slack_period`.
const SLACK: Ns = 5 * MS;
/// Remaining time of a period, besides [`SLACK`], in which nothing is redistributed:
/// `min_bandwidth_expiration`.
const NEAR_END: Ns = 2 * MS;

impl Simulation<'_> {
    fn bandwidth_of(&self, thread: ThreadIndex) -> Option<BandwidthIndex> {
        self.processes[self.threads[thread].process].bandwidth
    }

    /// Creates the group of a new process with the quota of its program, and returns its index.
    pub(super) fn new_bandwidth(&mut self, quota: Quota, part: usize) -> BandwidthIndex {
        self.bandwidths.push(Bandwidth::new(quota, part, self.cpus.topology.cpus()));
        self.bandwidths.len() as BandwidthIndex - 1
    }

    /// Returns `true` if a CPU is throttled for a thread's group.
    pub(super) fn is_throttled(&self, thread: ThreadIndex, cpu: Cpu) -> bool {
        let index = self.bandwidth_of(thread);
        index.is_some_and(|index| self.bandwidths[index as usize].shares[cpu as usize].is_throttled)
    }

    /// Returns `true` if any CPU is throttled: its threads will run again, although `expected` does
    /// not count them.
    pub(super) fn any_throttled(&self) -> bool {
        self.bandwidths.iter().any(|group| !group.throttled.is_empty())
    }

    /// Returns `true` if a thread may begin to run on a CPU. Otherwise, throttles the CPU.
    pub(super) fn has_quota(&mut self, thread: ThreadIndex, cpu: Cpu) -> bool {
        let Some(index) = self.bandwidth_of(thread) else { return true };
        self.begin_period(index);
        let group = &mut self.bandwidths[index as usize];
        if group.share(cpu).is_throttled {
            return false;
        }
        let may_run = group.refill(cpu);
        group.share(cpu).paid = self.now;
        if !may_run {
            self.throttle(index, cpu);
        }
        may_run
    }

    /// Charges a CPU for the time that it ran a thread's group since the last charge. Returns
    /// `true` if the thread may continue.
    pub(super) fn pay(&mut self, thread: ThreadIndex, cpu: Cpu) -> bool {
        let Some(index) = self.bandwidth_of(thread) else { return true };
        self.begin_period(index);
        let now = self.now;
        let group = &mut self.bandwidths[index as usize];
        let share = group.share(cpu);
        share.left -= (now - share.paid) as i64;
        share.paid = now;
        group.refill(cpu)
    }

    /// Gives back the rest of a CPU's slices after a thread stopped there, unless another thread of
    /// its group waits for the CPU.
    pub(super) fn give_back(&mut self, thread: ThreadIndex, cpu: Cpu) {
        let Some(index) = self.bandwidth_of(thread) else { return };
        let waits = |other: ThreadIndex| self.bandwidth_of(other) == Some(index);
        if self.cpus.first_waiting(cpu, waits).is_some() {
            return;
        }
        let now = self.now;
        let group = &mut self.bandwidths[index as usize];
        let share = group.share(cpu);
        let given = share.left - MIN_KEPT_QUOTA as i64;
        if given <= 0 {
            return;
        }
        share.left = MIN_KEPT_QUOTA as i64;
        group.pool += given as u64;
        let is_worth_it = group.ends.is_some_and(|ends| ends > now + SLACK + NEAR_END);
        let is_wanted = group.pool > SLICE && !group.throttled.is_empty();
        if is_wanted && is_worth_it && !group.slack_is_due {
            group.slack_is_due = true;
            self.queue.put(now + SLACK, Event::Slack(index));
        }
    }

    /// Throttles a CPU and parks the group's threads that wait for it. The caller must stop a
    /// running one.
    fn throttle(&mut self, index: BandwidthIndex, cpu: Cpu) {
        let group = &mut self.bandwidths[index as usize];
        let share = group.share(cpu);
        share.is_throttled = true;
        share.since = self.now;
        group.throttled.push_back(cpu);
        self.outcome.parts[group.part].throttling.throttled += 1;
        let is_ours = |thread: ThreadIndex| self.bandwidth_of(thread) == Some(index);
        let waiting: Vec<ThreadIndex> =
            self.cpus.all_waiting(cpu).filter(|&t| is_ours(t)).collect();
        for thread in waiting {
            self.cpus.remove_waiting(cpu, thread);
            self.park(thread, cpu);
        }
    }

    /// Parks a thread until its CPU is no longer throttled, behind the parked threads.
    pub(super) fn park(&mut self, thread: ThreadIndex, cpu: Cpu) {
        if let Some(parked) = self.parked(thread, cpu) {
            parked.push_back(thread);
        }
    }

    /// Parks a thread in front of the parked threads, because it ran or was about to run.
    pub(super) fn park_first(&mut self, thread: ThreadIndex, cpu: Cpu) {
        if let Some(parked) = self.parked(thread, cpu) {
            parked.push_front(thread);
        }
    }

    fn parked(&mut self, thread: ThreadIndex, cpu: Cpu) -> Option<&mut VecDeque<ThreadIndex>> {
        self.threads[thread].state = RunState::Parked;
        let index = self.bandwidth_of(thread)?;
        Some(&mut self.bandwidths[index as usize].share(cpu).parked)
    }

    /// Removes a thread from the parked threads of its CPU.
    pub(super) fn unpark(&mut self, thread: ThreadIndex) {
        let cpu = self.threads[thread].cpu;
        if let Some(index) = self.bandwidth_of(thread) {
            self.bandwidths[index as usize].share(cpu).parked.retain(|&other| other != thread);
        }
    }

    /// Throttles the CPU of a running thread that has no quota left.
    pub(super) fn stop_for_quota(&mut self, cpu: Cpu, thread: ThreadIndex) {
        let Some(index) = self.bandwidth_of(thread) else { return };
        self.throttle(index, cpu);
        self.interrupt(cpu);
        self.park_first(thread, cpu);
        self.leave(cpu);
    }

    fn begin_period(&mut self, index: BandwidthIndex) {
        let group = &mut self.bandwidths[index as usize];
        if group.ends.is_none() {
            let ends = self.now + group.quota.period;
            group.ends = Some(ends);
            self.queue.put(ends, Event::Period(index));
        }
    }

    /// Ends a period and begins another one, unless nothing ran in it.
    pub(super) fn end_period(&mut self, index: BandwidthIndex) {
        let group = &mut self.bandwidths[index as usize];
        group.pool = group.quota.max;
        if group.is_unused && group.throttled.is_empty() {
            group.ends = None;
            return;
        }
        group.is_unused = group.throttled.is_empty();
        let ends = self.now + group.quota.period;
        group.ends = Some(ends);
        self.queue.put(ends, Event::Period(index));
        self.outcome.parts[group.part].throttling.periods += 1;
        self.distribute(index);
    }

    /// Distributes the time that was given back [`SLACK`] ago to throttled CPUs.
    pub(super) fn end_slack(&mut self, index: BandwidthIndex) {
        let group = &mut self.bandwidths[index as usize];
        group.slack_is_due = false;
        let is_late = group.ends.is_none_or(|ends| ends <= self.now + NEAR_END);
        if !is_late && group.pool > SLICE {
            self.distribute(index);
        }
    }

    /// Lets throttled CPUs run again until the pool is empty.
    fn distribute(&mut self, index: BandwidthIndex) {
        let mut released = Vec::new();
        let group = &mut self.bandwidths[index as usize];
        while let Some(&cpu) = group.throttled.front().filter(|_| group.pool > 0) {
            let owed = (1 - group.share(cpu).left).max(0) as u64;
            let given = owed.min(group.pool);
            group.pool -= given;
            let now = self.now;
            let share = group.share(cpu);
            share.left += given as i64;
            if share.left <= 0 {
                break;
            }
            share.is_throttled = false;
            let since = share.since;
            self.outcome.parts[group.part].throttling.throttled_ns += now - since;
            group.throttled.pop_front();
            released.push(cpu);
        }
        for cpu in released {
            self.release(index, cpu);
        }
    }

    /// Queues the parked threads of a CPU again, and runs one if the CPU is idle.
    fn release(&mut self, index: BandwidthIndex, cpu: Cpu) {
        let parked = std::mem::take(&mut self.bandwidths[index as usize].share(cpu).parked);
        for thread in parked {
            self.threads[thread].state = RunState::Queued;
            self.cpus.push_waiting(cpu, thread);
        }
        if self.cpus.is_idle(cpu) {
            self.resume(cpu);
        }
    }

    /// Adds the time of the CPUs that are still throttled at the end of the run.
    pub(super) fn finish_throttling(&mut self) {
        for group in &self.bandwidths {
            for &cpu in &group.throttled {
                let since = group.shares[cpu as usize].since;
                let throttling = &mut self.outcome.parts[group.part].throttling;
                throttling.throttled_ns += self.now.saturating_sub(since);
            }
        }
    }
}
