//! Time that threads lose though they might run: what keeps ready threads from running, and whether
//! another placement could avoid it.
//!
//! Each moment of a wait is attributed to one cause. Either the CPU in whose queue the thread is
//! idles. Or it runs something else while another CPU idles on which the thread may run, or may not
//! run. Or no CPU idles.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use percid_sim::run_control::RunControl;

use super::affinities::{ALL, Affinities, SetNumber};
use super::follower::{Follower, Listener, Scene};
use super::idle_clock::IdleClock;
use super::turn::{Stay, Turn, Wait, Who};
use crate::event::{Cpu, Tid};
use crate::threads::{ThreadNumber, Threads};
use crate::trace::Trace;
use crate::window::Window;

/// Whose time is looked at.
#[derive(Debug, Clone, Default)]
pub struct LossesSettings {
    /// The window to analyse.
    pub window: Window,
    /// The processes whose threads are analysed; all if it is empty.
    pub processes: Vec<Tid>,
    /// Processes that are reported as one, each with the process that represents it, such as the
    /// compilers of a build. Other processes represent themselves.
    pub programs: HashMap<Tid, Tid>,
}

impl LossesSettings {
    /// Returns the process that represents a process.
    fn program(&self, process: Tid) -> Tid {
        self.programs.get(&process).copied().unwrap_or(process)
    }
}

/// The result of [`losses`].
#[derive(Debug, Clone, Default)]
pub struct Losses {
    /// The losses, in no order. They are independent: two of them may concern the same idle CPU.
    pub all: Vec<Loss>,
    /// Start of the window, in nanoseconds since the first event.
    pub from: u64,
    /// End of the window.
    pub to: u64,
    /// The identities of the threads.
    pub known: Threads,
    /// `true` if the whole window was analysed.
    pub is_whole: bool,
}

/// The reason why a thread that is ready does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossKind {
    /// Its CPU runs something else, and the only idle CPUs are those on which it may not run.
    Bound,
    /// Its CPU runs something else, and a CPU idles on which it may run.
    NotMigrated,
    /// It was preempted, and its CPU idles: CPU quotas have this effect.
    Throttled,
    /// It was woken, and its CPU still idles.
    SlowWakeUp,
    /// No CPU idles, and its CPU runs another process.
    OtherProcess,
    /// No CPU idles, and its CPU runs another thread of the same process.
    SameProcess,
}

/// Time that the threads of one process lost for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The reason.
    pub kind: LossKind,
    /// The process whose threads waited.
    pub process: Tid,
    /// The process that ran instead, if losses of this kind are separated by it.
    pub by: Option<Tid>,
    /// The CPUs that the threads may use, as a list; `None` if all, or if it does not matter.
    pub allowed: Option<String>,
    /// The time lost, in nanoseconds: at each moment one for each thread that waited, and no more than
    /// there were CPUs to run them.
    pub lost_ns: u64,
    /// The same sum, with only one thread at a time.
    pub at_least_ns: u64,
    /// The same sum, with all threads that waited.
    pub at_most_ns: u64,
    /// Number of stays in queues.
    pub stays: u64,
    /// Different threads.
    pub threads: u64,
    /// The stays in which most was lost, those first.
    pub moments: Vec<LostMoment>,
}

/// A thread was in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostMoment {
    /// The thread.
    pub thread: ThreadNumber,
    /// The CPU in whose queue it was.
    pub cpu: Cpu,
    /// Time since which it was there, in nanoseconds since the first event.
    pub since: u64,
    /// Time until which it was there.
    pub until: u64,
    /// The part of this time that was lost for this reason, in nanoseconds.
    pub lost_ns: u64,
    /// A CPU that idled when it came into the queue or left it, if that is the reason.
    pub idle_cpu: Option<Cpu>,
}

/// Maximum number of stays that are reported for each loss.
const MOMENTS: usize = 3;

/// Finds out why threads lose time. Reads the events twice, and adds them to `progress` each time.
pub fn losses(trace: &Trace, settings: &LossesSettings, progress: &RunControl) -> Losses {
    let mut foresight = Foresight::default();
    // Beyond the window too: idle times and waits at its end are known only by their own ends.
    let saw_all = Follower::new(trace, &Window::default()).follow(&mut foresight, progress);
    foresight.finish();
    let mut watch = Watch::new(trace, settings, foresight);
    let mut follower = Follower::new(trace, &settings.window);
    let is_whole = saw_all && follower.follow(&mut watch, progress);
    Losses {
        from: watch.from,
        to: watch.to,
        // If only some threads were recorded, the cause of a wait is not known.
        all: match trace.origin.coverage.filtered {
            true => Vec::new(),
            false => watch.into_losses(),
        },
        known: follower.into_threads(),
        is_whole,
    }
}

/// Facts that are known only after all events have been read.
#[derive(Default)]
struct Foresight {
    /// Times at which CPUs began and ceased to idle, for idle times of which both are known.
    changes: Vec<(u64, bool, Cpu)>,
    /// Times at which threads that have not run since entered their queues.
    pending: HashMap<ThreadNumber, Vec<u64>>,
    /// Stays in queues that are no waits, by when they began.
    doubtful: HashSet<(ThreadNumber, u64)>,
}

impl Foresight {
    /// Threads that never run have not been seen to wait.
    fn finish(&mut self) {
        let threads: Vec<ThreadNumber> = self.pending.keys().copied().collect();
        threads.into_iter().for_each(|thread| self.doubt(thread));
    }
}

impl Listener for Foresight {
    fn enqueue(&mut self, _: &Scene, now: u64, thread: ThreadNumber, _: Cpu) {
        self.pending.entry(thread).or_default().push(now);
    }

    fn doubt(&mut self, thread: ThreadNumber) {
        let stays = self.pending.remove(&thread).unwrap_or_default();
        self.doubtful.extend(stays.into_iter().map(|since| (thread, since)));
    }

    fn wait(&mut self, _: &Scene, wait: &Wait) {
        self.pending.remove(&wait.thread);
    }

    fn turn(&mut self, _: &Scene, turn: Turn) {
        if turn.who == Who::Idle && turn.since < turn.until {
            self.changes.push((turn.since, true, turn.cpu));
            self.changes.push((turn.until, false, turn.cpu));
        }
    }
}

struct Watch<'s> {
    settings: &'s LossesSettings,
    from: u64,
    to: u64,
    now: u64,
    affinities: Affinities,
    /// Clocks for the CPUs of each set, and for the CPUs outside it.
    idle: IdleClock,
    /// Changes that `idle` has not received yet, the next one last.
    to_come: Vec<(u64, bool, Cpu)>,
    cpus: Vec<CpuState>,
    waiters: HashMap<ThreadNumber, Waiter>,
    crowds: HashMap<(Tid, SetNumber), Crowd>,
    sums: HashMap<(LossKind, Tid, Option<Tid>, SetNumber), Sum>,
    /// Threads that were preempted and have not run since.
    preempted: HashSet<ThreadNumber>,
    doubtful: HashSet<(ThreadNumber, u64)>,
}

#[derive(Default, Clone)]
struct CpuState {
    /// The process that it runs, if it is known to run any.
    runs: Option<Tid>,
    queue: Vec<ThreadNumber>,
    /// Number of its threads by process.
    counts: Vec<(Tid, u64)>,
    /// Time until which delays were counted, and idle time of any CPU at that time.
    counted: u64,
    idle_then: u64,
}

/// A thread in a queue.
struct Waiter {
    process: Tid,
    set: Option<SetNumber>,
    cpu: Cpu,
    since: u64,
    was_preempted: bool,
    /// Idle time of its CPU when it entered the queue.
    own_idle: u64,
    /// Idle time of the CPUs on which it may run, and of all CPUs, when its CPU began to run
    /// something.
    crowded: Option<[u64; 2]>,
    /// Time lost while a CPU idled on which it may run, and while only other CPUs did. Below, those
    /// CPUs.
    lost: [u64; 2],
    idle_cpus: [Option<Cpu>; 2],
}

impl Waiter {
    fn see_idle(&mut self, seen: [Option<Cpu>; 2]) {
        for (known, seen) in self.idle_cpus.iter_mut().zip(seen) {
            *known = known.or(seen);
        }
    }
}

/// Threads of one process with one set of CPUs, which wait for CPUs that run something.
#[derive(Default)]
struct Crowd {
    threads: u64,
    /// Readings when that changed last: of the set, of all, of the others; each of one CPU at once and
    /// of as many as there are threads.
    then: [[u64; 2]; 3],
}

/// A loss as it grows.
#[derive(Default)]
struct Sum {
    lost_ns: u64,
    at_least_ns: u64,
    at_most_ns: u64,
    stays: u64,
    threads: HashSet<ThreadNumber>,
    moments: Vec<LostMoment>,
}

impl Sum {
    fn add(&mut self, [at_least, lost, at_most]: [u64; 3]) {
        self.at_least_ns = self.at_least_ns.saturating_add(at_least);
        self.lost_ns = self.lost_ns.saturating_add(lost);
        self.at_most_ns = self.at_most_ns.saturating_add(at_most);
    }

    fn note(&mut self, moment: LostMoment) {
        self.stays += 1;
        self.threads.insert(moment.thread);
        self.moments.push(moment);
        self.moments.sort_by_key(|moment| (Reverse(moment.lost_ns), moment.since));
        self.moments.truncate(MOMENTS);
    }
}

impl<'s> Watch<'s> {
    fn new(trace: &Trace, settings: &'s LossesSettings, foresight: Foresight) -> Watch<'s> {
        let ends = trace.events.first().zip(trace.events.last());
        let length = ends.map_or(0, |(first, last)| last.time.saturating_sub(first.time));
        let cpus = trace.largest_cpu().map_or(0, |cpu| cpu as usize + 1);
        let affinities = Affinities::from_trace(trace);
        let others = |set: &Vec<bool>| set.iter().map(|has| !has).collect();
        let sets = affinities.sets().iter().flat_map(|set| [set.clone(), others(set)]);
        let idle_clock = IdleClock::new(sets, cpus);
        let mut to_come = foresight.changes;
        to_come.sort_unstable_by(|one, other| other.cmp(one));
        Watch {
            settings,
            from: settings.window.from.min(length),
            to: settings.window.to.min(length),
            now: 0,
            affinities,
            idle: idle_clock,
            to_come,
            cpus: vec![CpuState::default(); cpus],
            waiters: HashMap::new(),
            crowds: HashMap::new(),
            sums: HashMap::new(),
            preempted: HashSet::new(),
            doubtful: foresight.doubtful,
        }
    }

    fn into_losses(self) -> Vec<Loss> {
        let affinities = &self.affinities;
        let told = self.sums.into_iter().filter(|(_, sum)| sum.stays > 0 && sum.at_most_ns > 0);
        let told = told.map(|((kind, process, by, set), sum)| Loss {
            kind,
            process,
            by,
            allowed: (set != ALL).then(|| affinities.list(set)),
            lost_ns: sum.lost_ns,
            at_least_ns: sum.at_least_ns,
            at_most_ns: sum.at_most_ns,
            stays: sum.stays,
            threads: sum.threads.len() as u64,
            moments: sum.moments,
        });
        told.collect()
    }

    /// Advances the time to now. Time outside the window does not count.
    fn pass(&mut self, now: u64) {
        while let Some(&(time, idles, cpu)) = self.to_come.last().filter(|next| next.0 <= now) {
            self.idle.change(cpu, idles, time.clamp(self.from, self.to));
            self.to_come.pop();
        }
        self.now = now.clamp(self.from, self.to).max(self.now);
    }

    fn reading(&self, set: SetNumber, at_once: u64) -> u64 {
        self.idle.reading(2 * set as usize, at_once as usize, self.now)
    }

    /// CPUs that idle now, in a set and beside it.
    fn idle_cpus(&self, set: Option<SetNumber>) -> [Option<Cpu>; 2] {
        let set = 2 * set.unwrap_or(ALL) as usize;
        [self.idle.one_of(set), self.idle.one_of(set + 1)]
    }

    fn readings(&self, set: SetNumber, threads: u64) -> [[u64; 2]; 3] {
        let of = |counter: usize| {
            [1, threads].map(|at_once| self.idle.reading(counter, at_once as usize, self.now))
        };
        [of(2 * set as usize), of(2 * ALL as usize), of(2 * set as usize + 1)]
    }

    fn sum(&mut self, kind: LossKind, process: Tid, by: Option<Tid>, set: SetNumber) -> &mut Sum {
        self.sums.entry((kind, process, by, set)).or_default()
    }

    /// Adds the delays on a CPU until now, by process.
    fn count_delays(&mut self, cpu: Cpu) {
        let (now, idle) = (self.now, self.reading(ALL, 1));
        let state = &mut self.cpus[cpu as usize];
        let passed = now.saturating_sub(std::mem::replace(&mut state.counted, now));
        let idled = idle.saturating_sub(std::mem::replace(&mut state.idle_then, idle));
        let ns = passed.saturating_sub(idled);
        let Some(by) = state.runs.filter(|_| ns > 0) else { return };
        let counts = std::mem::take(&mut state.counts);
        for &(process, threads) in &counts {
            let all = threads * ns;
            match by == process {
                // The CPU works for the process: fewer waits would not finish its work sooner.
                true => self.sum(LossKind::SameProcess, process, Some(by), ALL).add([0, 0, all]),
                false => self.sum(LossKind::OtherProcess, process, Some(by), ALL).add([0, ns, all]),
            }
        }
        self.cpus[cpu as usize].counts = counts;
    }

    /// Notes that one more or one less thread of a process waits for a CPU that runs something.
    fn change_crowd(&mut self, process: Tid, set: SetNumber, joins: bool) {
        let threads = self.crowds.get(&(process, set)).map_or(0, |crowd| crowd.threads);
        if threads > 0 {
            let now = self.readings(set, threads);
            let then = self.crowds.get(&(process, set)).map_or(now, |crowd| crowd.then);
            let [own, all, others] = [0, 1, 2]
                .map(|at| [0, 1].map(|nth: usize| now[at][nth].saturating_sub(then[at][nth])));
            let inside = [own[0], own[1], threads * own[0]];
            let outside =
                [all[0].saturating_sub(own[0]), all[1].saturating_sub(own[1]), threads * others[0]];
            self.sum(LossKind::NotMigrated, process, None, set).add(inside);
            self.sum(LossKind::Bound, process, None, set).add(outside);
        }
        let threads = if joins { threads + 1 } else { threads.saturating_sub(1) };
        let then = self.readings(set, threads);
        self.crowds.insert((process, set), Crowd { threads, then });
    }

    /// Notes that a CPU for which a thread waits begins to run something.
    fn crowd(&mut self, thread: ThreadNumber) {
        let Some(waiter) = self.waiters.get(&thread).filter(|waiter| waiter.crowded.is_none())
        else {
            return;
        };
        let (process, set) = (waiter.process, waiter.set);
        let readings = [self.reading(set.unwrap_or(ALL), 1), self.reading(ALL, 1)];
        let idle_cpus = self.idle_cpus(set);
        if let Some(set) = set {
            self.change_crowd(process, set, true);
        }
        if let Some(waiter) = self.waiters.get_mut(&thread) {
            waiter.crowded = Some(readings);
            waiter.see_idle(idle_cpus);
        }
    }

    /// It runs nothing any more, or the thread leaves the queue.
    fn disperse(&mut self, thread: ThreadNumber) {
        let Some(waiter) = self.waiters.get_mut(&thread) else { return };
        let Some(then) = waiter.crowded.take() else { return };
        let (process, set) = (waiter.process, waiter.set);
        let now = [self.reading(set.unwrap_or(ALL), 1), self.reading(ALL, 1)];
        let [own, all] = [0, 1].map(|at: usize| now[at].saturating_sub(then[at]));
        let idle_cpus = self.idle_cpus(set);
        if let Some(set) = set {
            self.change_crowd(process, set, false);
        }
        if let Some(waiter) = self.waiters.get_mut(&thread) {
            waiter.lost[0] += own;
            waiter.lost[1] += all.saturating_sub(own);
            waiter.see_idle(idle_cpus);
        }
    }

    /// Adds the time lost in a stay to the sum of each reason.
    fn put_down(&mut self, scene: &Scene, stay: Stay, waiter: &Waiter) {
        let since = waiter.since;
        let all = self.now.saturating_sub(since);
        let own_idle = self.idle.of_cpu(stay.cpu, self.now).saturating_sub(waiter.own_idle);
        let [not_moved, bound] = waiter.lost;
        let contended = all.saturating_sub(own_idle + not_moved + bound);
        let Waiter { process, idle_cpus, .. } = *waiter;
        let Stay { thread, cpu, since, until } = stay;
        let moment =
            |lost_ns, idle_cpu| LostMoment { thread, cpu, since, until, lost_ns, idle_cpu };
        if own_idle > 0 {
            let (kind, most) = match waiter.was_preempted {
                true => (LossKind::Throttled, all),
                false => (LossKind::SlowWakeUp, own_idle),
            };
            let sum = self.sum(kind, process, None, ALL);
            sum.add([own_idle, own_idle, most]);
            sum.note(moment(own_idle, Some(cpu)));
        }
        if let Some(set) = waiter.set {
            let kinds = [(LossKind::NotMigrated, not_moved), (LossKind::Bound, bound)];
            for ((kind, ns), idle_cpu) in kinds.into_iter().zip(idle_cpus) {
                if ns > 0 {
                    self.sum(kind, process, None, set).note(moment(ns, idle_cpu));
                }
            }
        }
        if contended > 0 {
            for (by, ns) in self.instead(scene, stay) {
                let kind =
                    if by == process { LossKind::SameProcess } else { LossKind::OtherProcess };
                self.sum(kind, process, Some(by), ALL).note(moment(ns.min(contended), None));
            }
        }
    }

    /// The processes that ran while a thread was in a queue, of the last 64 turns of its CPU.
    fn instead(&self, scene: &Scene, stay: Stay) -> HashMap<Tid, u64> {
        let mut ran = HashMap::new();
        for (who, ns) in scene.recent.during(stay.cpu, stay.since.max(self.from), stay.until) {
            if let Who::Thread(thread) = who {
                let process = scene.threads.get(thread).process_or_self();
                *ran.entry(self.settings.program(process)).or_default() += ns;
            }
        }
        ran
    }
}

impl Listener for Watch<'_> {
    fn begin(&mut self, scene: &Scene, now: u64, cpu: Cpu, who: Who) {
        self.pass(now);
        if cpu as usize >= self.cpus.len() {
            return;
        }
        self.count_delays(cpu);
        let runs = match who {
            Who::Thread(thread) => {
                let known = scene.threads.get(thread);
                self.preempted.remove(&thread);
                self.affinities.see(known.tid, cpu, now);
                Some(self.settings.program(known.process_or_self()))
            }
            Who::Idle | Who::Unknown => None,
        };
        let before = std::mem::replace(&mut self.cpus[cpu as usize].runs, runs);
        if before.is_some() != runs.is_some() {
            for thread in self.cpus[cpu as usize].queue.clone() {
                match runs {
                    Some(_) => self.crowd(thread),
                    None => self.disperse(thread),
                }
            }
        }
    }

    fn preempt(&mut self, _: &Scene, _: u64, thread: ThreadNumber, _: Who) {
        self.preempted.insert(thread);
    }

    fn enqueue(&mut self, scene: &Scene, now: u64, thread: ThreadNumber, cpu: Cpu) {
        self.pass(now);
        let known = scene.threads.get(thread);
        let process = known.process_or_self();
        let wanted = &self.settings.processes;
        let is_wanted = (wanted.is_empty() || wanted.contains(&process))
            && !self.affinities.is_bound_by_kernel(known.tid)
            && !self.doubtful.contains(&(thread, now));
        if cpu as usize >= self.cpus.len() || !is_wanted {
            return;
        }
        self.count_delays(cpu);
        let process = self.settings.program(process);
        let waiter = Waiter {
            process,
            set: self.affinities.get(known.tid, now),
            cpu,
            since: self.now,
            was_preempted: self.preempted.contains(&thread),
            own_idle: self.idle.of_cpu(cpu, self.now),
            crowded: None,
            lost: [0; 2],
            idle_cpus: [None; 2],
        };
        self.waiters.insert(thread, waiter);
        let state = &mut self.cpus[cpu as usize];
        state.queue.push(thread);
        match state.counts.iter_mut().find(|(counted, _)| *counted == process) {
            Some((_, threads)) => *threads += 1,
            None => state.counts.push((process, 1)),
        }
        if state.runs.is_some() {
            self.crowd(thread);
        }
    }

    fn dequeue(&mut self, scene: &Scene, stay: Stay) {
        self.pass(stay.until);
        if self.waiters.get(&stay.thread).is_none_or(|waiter| waiter.cpu != stay.cpu) {
            return;
        }
        self.count_delays(stay.cpu);
        self.disperse(stay.thread);
        let Some(waiter) = self.waiters.remove(&stay.thread) else { return };
        let state = &mut self.cpus[stay.cpu as usize];
        state.queue.retain(|&thread| thread != stay.thread);
        if let Some((_, threads)) =
            state.counts.iter_mut().find(|(counted, _)| *counted == waiter.process)
        {
            *threads -= 1;
        }
        state.counts.retain(|&(_, threads)| threads > 0);
        self.put_down(scene, stay, &waiter);
    }
}
