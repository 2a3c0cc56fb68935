//! CPU quotas: a process and its children run for a part of each period, as under `cpu.max` of
//! cgroup v2.
//!
//! After Linux' CFS bandwidth control (`Documentation/scheduler/sched-bwc.rst`, `kernel/sched/fair.c`;
//! Turner, Rao and Rao, "CPU bandwidth control for CFS", Linux Symposium 2010). The group has a pool,
//! which is filled up to the quota when a period begins. CPUs take slices of 5 ms from it, and pay
//! for what they run: at ticks, and when the thread stops. One whose slice is used up while the
//! pool is empty is throttled: its threads of the group leave it, and those that wake there do not
//! run. A CPU that has no more threads of the group gives back all but 1 ms. When the pool is
//! filled, throttled CPUs get what they owe and a nanosecond, in the order in which they were
//! throttled, and run again.
//!
//! Simplified: a wake-up on a CPU that runs the group does not make it pay, ticks do; threads stop
//! at once, where Linux 6.18 lets them go on to the end of their system call; there are no groups
//! inside each other, and no bursts (`cpu.max.burst`).

use std::collections::VecDeque;

use super::index::ThreadIndex;
use super::queue::Event;
use super::simulation::Simulation;
use super::thread::State;
use crate::time::{MS, Ns};
use crate::topology::Cpu;
use crate::workload::Quota;

/// What a CPU takes from the pool: `sched_cfs_bandwidth_slice_us`.
const SLICE: Ns = 5 * MS;
/// What a CPU keeps that has no more threads of the group: `min_cfs_rq_runtime`.
const KEPT: Ns = MS;
/// How long after something was given back throttled CPUs get it: `cfs_bandwidth_slack_period`.
const SLACK: Ns = 5 * MS;
/// How near to the end of the period that is not worth it: `min_bandwidth_expiration`, besides
/// [`SLACK`].
const NEAR_END: Ns = 2 * MS;

/// The place of a group among those of the simulation.
pub(super) type BandwidthIndex = u32;

/// What a CPU has of the group's time.
#[derive(Debug, Default)]
struct Share {
    /// What is left of its slices, in nanoseconds; negative if it ran for longer.
    left: i64,
    /// Until when its running thread has been paid for.
    paid: Ns,
    is_throttled: bool,
    since: Ns,
    /// Threads that would wait for the CPU if it was not throttled, the first one first.
    parked: VecDeque<ThreadIndex>,
}

/// A process with its children, and the time that they may run.
#[derive(Debug)]
pub(super) struct Bandwidth {
    quota: Quota,
    /// Which program the process runs.
    part: usize,
    pool: Ns,
    /// When the period ends; none while nothing runs, and no period does.
    ends: Option<Ns>,
    /// Whether no CPU took anything in this period.
    is_unused: bool,
    slack_is_due: bool,
    shares: Vec<Share>,
    /// In the order in which they were throttled.
    throttled: VecDeque<Cpu>,
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

    fn share(&mut self, cpu: Cpu) -> &mut Share {
        &mut self.shares[cpu as usize]
    }

    /// Lets a CPU whose slices are used up take another one. Returns whether it may run.
    fn refill(&mut self, cpu: Cpu) -> bool {
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

impl Simulation<'_> {
    fn bandwidth_of(&self, thread: ThreadIndex) -> Option<BandwidthIndex> {
        self.processes[self.threads[thread].process].bandwidth
    }

    /// The group of a new process of a program, which has the quota of that.
    pub(super) fn new_bandwidth(&mut self, quota: Quota, part: usize) -> BandwidthIndex {
        self.bandwidths.push(Bandwidth::new(quota, part, self.cpus.topology.cpus()));
        self.bandwidths.len() as BandwidthIndex - 1
    }

    /// Whether a CPU is throttled for a thread's group.
    pub(super) fn is_throttled(&self, thread: ThreadIndex, cpu: Cpu) -> bool {
        let index = self.bandwidth_of(thread);
        index.is_some_and(|index| self.bandwidths[index as usize].shares[cpu as usize].is_throttled)
    }

    /// Whether any CPU is throttled: its threads will run, though no event says so.
    pub(super) fn any_throttled(&self) -> bool {
        self.bandwidths.iter().any(|group| !group.throttled.is_empty())
    }

    /// Whether a thread may begin to run on a CPU. If not, the CPU is throttled.
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

    /// Lets a CPU pay for what it ran of a thread's group since it did so last. Returns whether the
    /// thread may go on.
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

    /// A thread does not run on a CPU any more: what is left of its slices is given back, if no
    /// other one of its group waits there.
    pub(super) fn give_back(&mut self, thread: ThreadIndex, cpu: Cpu) {
        let Some(index) = self.bandwidth_of(thread) else { return };
        let waits = |other: ThreadIndex| self.bandwidth_of(other) == Some(index);
        if self.cpus.first_waiting(cpu, waits).is_some() {
            return;
        }
        let now = self.now;
        let group = &mut self.bandwidths[index as usize];
        let share = group.share(cpu);
        let given = share.left - KEPT as i64;
        if given <= 0 {
            return;
        }
        share.left = KEPT as i64;
        group.pool += given as u64;
        let is_worth_it = group.ends.is_some_and(|ends| ends > now + SLACK + NEAR_END);
        let is_wanted = group.pool > SLICE && !group.throttled.is_empty();
        if is_wanted && is_worth_it && !group.slack_is_due {
            group.slack_is_due = true;
            self.queue.put(now + SLACK, Event::Slack(index));
        }
    }

    /// Throttles a CPU: its threads of the group that wait for it are parked. One that runs has to
    /// be taken from it.
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

    /// Lets a thread wait until its CPU is not throttled any more, behind those that do already.
    pub(super) fn park(&mut self, thread: ThreadIndex, cpu: Cpu) {
        if let Some(parked) = self.parked(thread, cpu) {
            parked.push_back(thread);
        }
    }

    /// The same, before those that do already: for one that ran, or was about to.
    pub(super) fn park_first(&mut self, thread: ThreadIndex, cpu: Cpu) {
        if let Some(parked) = self.parked(thread, cpu) {
            parked.push_front(thread);
        }
    }

    fn parked(&mut self, thread: ThreadIndex, cpu: Cpu) -> Option<&mut VecDeque<ThreadIndex>> {
        self.threads[thread].state = State::Parked;
        let index = self.bandwidth_of(thread)?;
        Some(&mut self.bandwidths[index as usize].share(cpu).parked)
    }

    /// Takes a parked thread out of those of its CPU.
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

    /// A period ends and, unless nothing ran in it, another one begins.
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

    /// What was given back a while ago goes to throttled CPUs.
    pub(super) fn end_slack(&mut self, index: BandwidthIndex) {
        let group = &mut self.bandwidths[index as usize];
        group.slack_is_due = false;
        let is_late = group.ends.is_none_or(|ends| ends <= self.now + NEAR_END);
        if !is_late && group.pool > SLICE {
            self.distribute(index);
        }
    }

    /// Lets throttled CPUs run again, for as long as there is something in the pool.
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

    /// Lets the parked threads of a CPU wait for it as before, and one run if it idles.
    fn release(&mut self, index: BandwidthIndex, cpu: Cpu) {
        let parked = std::mem::take(&mut self.bandwidths[index as usize].share(cpu).parked);
        for thread in parked {
            self.threads[thread].state = State::Queued;
            self.cpus.push_waiting(cpu, thread);
        }
        if self.cpus.is_idle(cpu) {
            self.resume(cpu);
        }
    }

    /// Counts how long CPUs have been throttled that still are.
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
