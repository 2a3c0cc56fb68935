//! Follows a recorded schedule: which thread runs on which CPU, in which address space. A
//! [`Listener`] receives the events that a policy needs.
//!
//! A trace is never complete: it begins in the middle, and events may be lost. If an event shows
//! that something must have happened before it, that is inferred:
//!
//! - A thread that is switched away from was running.
//! - A thread that begins to run on a CPU no longer runs on another one.
//! - A thread that runs on another CPU than before was migrated.
//! - A thread that runs or is queued on a CPU outside its affinity may now run anywhere.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use percid_sim::cpu_set::CpuSet;
use percid_sim::policies::{Process, Thread};
use percid_sim::run_control::RunControl;
use percid_sim::topology::{Cpu, Topology};
use percid_sim::{Ns, SECOND};

use super::membership::Membership;
use super::space::{RunningRows, Space, SpaceNumber, SpaceSummary};
use crate::event::{Event, IDLE, Shares, Tid, UNKNOWN, What};
use crate::filtered::Followed;
use crate::interner::Text;
use crate::trace::Trace;
use percid_sim::cpu_list;

/// Gets what happens to the address spaces, in the terms of [`percid_sim::policies::Policy`]. The
/// space is as it is after the change.
pub(super) trait Listener {
    /// A thread was created.
    fn spawn(&mut self, _at: SpaceMoment<'_>, _thread: Thread) {}
    /// A thread replaced the program; it is alone in this new address space, and runs.
    fn exec(&mut self, _at: SpaceMoment<'_>, _cpu: Cpu, _thread: Thread) {}
    /// A thread may use other CPUs than before.
    fn affinity(&mut self, _at: SpaceMoment<'_>, _thread: Thread) {}
    /// A thread that ran on `from` is queued on `to`.
    fn migrate(&mut self, _at: SpaceMoment<'_>, _thread: Thread, _from: Cpu, _to: Cpu) {}
    /// A CPU switches within the space, into it or out of it.
    fn switch(
        &mut self,
        _at: SpaceMoment<'_>,
        _cpu: Cpu,
        _prev: Option<Thread>,
        _next: Option<Thread>,
    ) {
    }
    /// The timer tick found a thread running.
    fn tick(&mut self, _at: SpaceMoment<'_>, _cpu: Cpu, _thread: Thread) {}
    /// A running thread begins to end.
    fn exit(&mut self, _at: SpaceMoment<'_>, _cpu: Cpu, _thread: Thread) {}
    /// No thread uses the space any more.
    fn end(&mut self, number: SpaceNumber, summary: SpaceSummary);
    /// A CPU begins to run something, or to idle.
    fn busy(&mut self, _now: Ns, _cpu: Cpu, _is_busy: bool) {}
}

/// A moment in an address space.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpaceMoment<'a> {
    pub(super) now: Ns,
    pub(super) number: SpaceNumber,
    pub(super) space: &'a Space,
    pub(super) topology: &'a Topology,
    idle_row: &'a [Option<Thread>],
}

impl<'a> SpaceMoment<'a> {
    /// Returns the view of the process that a policy gets.
    pub(super) fn view(&self) -> Process<'a> {
        self.space.view(self.now, self.topology, self.idle_row)
    }
}

/// A living thread.
#[derive(Debug)]
struct Runner {
    /// Its space and its number there; `None` if it is the kernel's.
    place: Option<(SpaceNumber, Thread)>,
    /// The CPU that runs it or in whose queue it is.
    cpu: Option<Cpu>,
    /// The CPU of its last turn.
    last_turn: Option<Cpu>,
    since: Ns,
    affinity: usize,
    /// It runs, and the listener knows.
    is_running: bool,
    /// It has no address space any more, and runs in the kernel only.
    is_ending: bool,
}

/// The schedule at one moment.
pub(super) struct Schedule<'t> {
    trace: &'t Trace,
    topology: &'t Topology,
    membership: Membership,
    /// Time of the first event.
    origin: u64,
    now: Ns,
    /// The time between two ticks, and the next one, if the trace does not show them.
    ticks: Option<(Ns, Ns)>,
    /// The thread that each CPU runs. The idle thread at first, then the one in the trace.
    current: Vec<Tid>,
    busy: u32,
    threads: HashMap<Tid, Runner>,
    /// Threads that began to end and do not run. They may run again, in the kernel, before they
    /// have ended.
    ended: HashSet<Tid>,
    /// The living ones, by number.
    spaces: Vec<Option<Box<Space>>>,
    rows: RunningRows,
    /// The processes that were there before the trace.
    processes: HashMap<Tid, SpaceNumber>,
    /// The last known name of every thread.
    names: HashMap<Tid, Text>,
    /// The threads of which the trace contains all events.
    followed: Followed,
    affinities: Vec<Rc<CpuSet>>,
    known_affinities: HashMap<Text, usize>,
}

/// Events between two looks at whether to stop.
const AT_ONCE: usize = 4096;

/// After this time without any event, further ticks would find nothing that the last ones did not.
const QUIET: Ns = 10 * SECOND;

/// The affinity of threads without one in the trace: all CPUs.
const ANYWHERE: usize = 0;

impl<'t> Schedule<'t> {
    /// Before the first event. `hz` ticks a second are supposed where the trace shows none.
    pub(super) fn new(trace: &'t Trace, topology: &'t Topology, hz: f64) -> Schedule<'t> {
        let cpus = topology.cpus();
        let membership = Membership::read(trace, cpus);
        let period = (SECOND as f64 / hz.max(1.0)) as Ns;
        Schedule {
            trace,
            topology,
            origin: trace.events.first().map_or(0, |event| event.time),
            now: 0,
            ticks: (!membership.has_ticks).then_some((period, period)),
            membership,
            current: vec![IDLE; cpus as usize],
            busy: 0,
            threads: HashMap::new(),
            ended: HashSet::new(),
            spaces: Vec::new(),
            rows: RunningRows::new(cpus),
            processes: HashMap::new(),
            names: HashMap::new(),
            followed: Followed::from_trace(trace),
            affinities: vec![Rc::new(CpuSet::from_cpus(cpus, 0..present(trace, cpus)))],
            known_affinities: HashMap::new(),
        }
    }

    /// Follows the trace until it is stopped. Returns whether it came to the end.
    pub(super) fn follow(&mut self, listener: &mut impl Listener, progress: &RunControl) -> bool {
        self.begin(listener);
        let is_whole = self.trace.events.chunks(AT_ONCE).all(|events| {
            if progress.stop.load(Relaxed) {
                return false;
            }
            events.iter().for_each(|event| self.advance(event, listener));
            progress.done.fetch_add(events.len() as u64, Relaxed);
            true
        });
        self.finish(listener);
        is_whole
    }

    /// The time since the first event.
    pub(super) fn now(&self) -> Ns {
        self.now
    }

    /// Lets the threads run that must have been running when the trace began.
    fn begin(&mut self, listener: &mut impl Listener) {
        for cpu in 0..self.topology.cpus() {
            let first = self.membership.first_running[cpu as usize];
            if let Some(first) = first.filter(|&first| is_named(first) && self.followed.has(first))
            {
                self.switch(cpu, first, listener);
            }
        }
    }

    fn advance(&mut self, event: &Event, listener: &mut impl Listener) {
        let time = event.time.saturating_sub(self.origin).max(self.now);
        self.let_tick(time, listener);
        self.now = time;
        let Some(event) = self.followed.seen(event) else { return };
        let cpu = event.cpu;
        match event.what {
            What::Switch { prev, state, next } => {
                if prev != UNKNOWN && !self.has_just_left(cpu, prev) {
                    self.switch(cpu, prev, listener);
                }
                if state.is_dead() {
                    self.exit(cpu, prev, listener);
                }
                self.switch(cpu, next, listener);
                if state.is_dead() {
                    self.ended.remove(&prev);
                }
            }
            What::Migrate { thread, to, .. } => self.migrate(thread, to, listener),
            What::Fork { parent, child, shares } => {
                self.fork(cpu, parent, child, shares, listener);
            }
            What::Exec { thread, old } => self.exec(cpu, thread, old, listener),
            What::Exit { thread } => self.exit(cpu, thread, listener),
            What::Affinity { thread, cpus } => self.affinity(thread, cpus, listener),
            What::Tick { thread } => self.tick(cpu, thread, listener),
            What::Name { thread, name } => self.name(thread, name),
            What::Wakeup { .. } | What::Id { .. } | What::Member { .. } => {}
        }
    }

    /// Ticks on all CPUs that are not idle, until `time`. While all are idle nothing ticks, and no
    /// more after [`QUIET`].
    fn let_tick(&mut self, time: Ns, listener: &mut impl Listener) {
        let Some((period, next)) = self.ticks else { return };
        if next > time {
            return;
        }
        let mut next = next;
        let end = time.min(self.now.saturating_add(QUIET));
        while next <= end && self.busy > 0 {
            self.now = next;
            for cpu in 0..self.topology.cpus() {
                self.tick(cpu, self.current[cpu as usize], listener);
            }
            next += period;
        }
        self.ticks = Some((period, next.max((time / period * period).saturating_add(period))));
    }

    fn tick(&mut self, cpu: Cpu, thread: Tid, listener: &mut impl Listener) {
        let summaries = self.threads.get(&thread).is_some_and(|runner| !runner.is_ending);
        if summaries && self.current[cpu as usize] == thread {
            if let Some((number, at)) = self.locate(thread) {
                listener.tick(at, cpu, number);
            }
        }
    }

    /// Lets a CPU run another thread.
    fn switch(&mut self, cpu: Cpu, next: Tid, listener: &mut impl Listener) {
        let next = if next == UNKNOWN { IDLE } else { next };
        if self.current[cpu as usize] == next {
            return;
        }
        self.arrive(cpu, next, listener);
        let prev = std::mem::replace(&mut self.current[cpu as usize], next);
        self.note_busy(cpu, prev, next, listener);
        let left = self.leave(prev);
        let entered = self.enter(cpu, next);
        match (left, entered) {
            (Some((space, prev)), Some((same, next))) if space == same => {
                self.tell_switch(space, cpu, Some(prev), Some(next), listener);
            }
            _ => {
                if let Some((space, prev)) = left {
                    self.tell_switch(space, cpu, Some(prev), None, listener);
                }
                if let Some((space, next)) = entered {
                    self.tell_switch(space, cpu, None, Some(next), listener);
                }
            }
        }
        self.bury(prev, listener);
    }

    /// Returns `true` if the thread left this CPU for another one at this very time, and its event
    /// there came first: events of one time are in the order of their CPUs.
    fn has_just_left(&self, cpu: Cpu, thread: Tid) -> bool {
        let Some(runner) = self.threads.get(&thread) else { return false };
        let there = runner.cpu.filter(|&there| there != cpu && runner.since == self.now);
        there.is_some_and(|there| self.current[there as usize] == thread)
            && self.current[cpu as usize] == IDLE
    }

    /// Sees to it that the thread can begin to run on the CPU: it is known, runs nowhere else and
    /// was moved there.
    fn arrive(&mut self, cpu: Cpu, thread: Tid, listener: &mut impl Listener) {
        if thread == IDLE {
            return;
        }
        self.meet(thread, listener);
        let elsewhere = self.threads[&thread].cpu.filter(|&other| other != cpu);
        if let Some(other) = elsewhere {
            if self.current[other as usize] == thread {
                self.switch(other, IDLE, listener);
            }
            self.migrate(thread, cpu, listener);
        }
        self.widen(thread, cpu, listener);
    }

    /// Widens the affinity of a thread that is on a CPU outside it. Another process or its cpuset
    /// changed the affinity, which no event reports. Policies must be informed first, as the
    /// kernel's are.
    fn widen(&mut self, thread: Tid, cpu: Cpu, listener: &mut impl Listener) {
        let Some(runner) = self.threads.get(&thread) else { return };
        if runner.place.is_some() && !self.affinities[runner.affinity].contains(cpu) {
            self.confine(thread, ANYWHERE, listener);
        }
    }

    fn tell_switch(
        &mut self,
        number: SpaceNumber,
        cpu: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
        listener: &mut impl Listener,
    ) {
        let Some(space) = &mut self.spaces[number as usize] else { return };
        space.runs(cpu, next, &mut self.rows);
        listener.switch(
            SpaceMoment {
                now: self.now,
                number,
                space,
                topology: self.topology,
                idle_row: &self.rows.idle_row,
            },
            cpu,
            prev,
            next,
        );
    }

    fn leave(&mut self, thread: Tid) -> Option<(SpaceNumber, Thread)> {
        let runner = self.threads.get_mut(&thread)?;
        if !std::mem::replace(&mut runner.is_running, false) {
            return None;
        }
        let place = runner.place?;
        let time = self.now - runner.since;
        // The times of a damaged file may add up to more than 2^64 ns.
        let run_ns = &mut self.spaces[place.0 as usize].as_mut()?.summary.run_ns;
        *run_ns = run_ns.saturating_add(time);
        Some(place)
    }

    fn enter(&mut self, cpu: Cpu, thread: Tid) -> Option<(SpaceNumber, Thread)> {
        let runner = self.threads.get_mut(&thread)?;
        runner.cpu = Some(cpu);
        runner.since = self.now;
        let last = runner.last_turn.replace(cpu);
        runner.is_running = !runner.is_ending;
        let place = runner.place.filter(|_| runner.is_running)?;
        let summary = &mut self.spaces[place.0 as usize].as_mut()?.summary;
        summary.turns += 1;
        if let Some(last) = last {
            summary.moves.count(self.topology, last, cpu);
        }
        Some(place)
    }

    fn note_busy(&mut self, cpu: Cpu, prev: Tid, next: Tid, listener: &mut impl Listener) {
        if (prev == IDLE) != (next == IDLE) {
            let is_busy = next != IDLE;
            self.busy = if is_busy { self.busy + 1 } else { self.busy - 1 };
            listener.busy(self.now, cpu, is_busy);
        }
    }

    fn migrate(&mut self, thread: Tid, to: Cpu, listener: &mut impl Listener) {
        if to >= self.topology.cpus() {
            return;
        }
        self.meet(thread, listener);
        let Some(runner) = self.threads.get_mut(&thread) else { return };
        // A CPU may be told beforehand where the thread goes that it still runs.
        let from = runner.cpu.replace(to);
        let has_run = runner.last_turn.is_some();
        if let Some(from) = from.filter(|&from| has_run && from != to) {
            if self.current[from as usize] == thread {
                self.threads.entry(thread).and_modify(|runner| runner.cpu = Some(from));
                return;
            }
            self.widen(thread, to, listener);
            if let Some((number, at)) = self.locate(thread) {
                listener.migrate(at, number, from, to);
            }
        }
    }

    fn fork(
        &mut self,
        cpu: Cpu,
        parent: Tid,
        child: Tid,
        shares: Shares,
        listener: &mut impl Listener,
    ) {
        if !is_named(child) {
            return;
        }
        self.meet(parent, listener);
        self.replace(cpu, child, listener);
        self.ended.remove(&child);
        let (place, affinity) = match self.threads.get(&parent) {
            Some(runner) => (runner.place, runner.affinity),
            None => (None, ANYWHERE),
        };
        let Some((space, _)) = place else {
            // The kernel's own thread, or the first one of a process that the kernel starts.
            self.threads.insert(child, Runner { affinity, ..Runner::kernel() });
            return;
        };
        let together = match shares {
            Shares::Process | Shares::Memory => true,
            Shares::Nothing => false,
            Shares::Unknown => self.membership.are_together(parent, child),
        };
        let space = if together { space } else { self.open(child, shares == Shares::Unknown) };
        self.join(child, space, affinity, listener);
    }

    /// Ends the thread that had this number before, if the trace has not shown its end.
    fn replace(&mut self, cpu: Cpu, thread: Tid, listener: &mut impl Listener) {
        let Some(runner) = self.threads.get(&thread) else { return };
        let cpu = runner.cpu.unwrap_or(cpu);
        let current = self.current[cpu as usize];
        self.exit(cpu, thread, listener);
        self.switch(cpu, if current == thread { IDLE } else { current }, listener);
    }

    fn exec(&mut self, cpu: Cpu, thread: Tid, old: Tid, listener: &mut impl Listener) {
        if !is_named(thread) || !is_named(old) {
            return;
        }
        self.switch(cpu, old, listener);
        if old != thread {
            self.replace(cpu, thread, listener);
        }
        let affinity = self.threads.get(&old).map(|runner| runner.affinity);
        let allows = |&affinity: &usize| self.affinities[affinity].contains(cpu);
        let affinity = affinity.filter(allows).unwrap_or(ANYWHERE);
        self.make_room(old);
        self.exit(cpu, old, listener);
        self.switch(cpu, IDLE, listener);
        // Its number goes on.
        self.ended.remove(&thread);
        let space = self.open(thread, false);
        let number = self.admit(thread, space, affinity);
        self.note_busy(cpu, self.current[cpu as usize], thread, listener);
        self.current[cpu as usize] = thread;
        self.enter(cpu, thread);
        if let Some(open) = &mut self.spaces[space as usize] {
            open.runs(cpu, Some(number), &mut self.rows);
        }
        if let Some(at) = self.moment(space) {
            listener.exec(at, cpu, number);
        }
    }

    /// A thread leaves the program that it was started with, if it did not share that with its
    /// creator.
    fn make_room(&mut self, thread: Tid) {
        let place = self.threads.get(&thread).and_then(|runner| runner.place);
        let Some((number, own)) = place else { return };
        if let Some(space) = self.spaces[number as usize].as_mut().filter(|_| own == 0) {
            space.make_room(self.now);
        }
    }

    /// A thread ends, which it does on the CPU where it runs.
    fn exit(&mut self, cpu: Cpu, thread: Tid, listener: &mut impl Listener) {
        if is_named(thread) {
            self.switch(cpu, thread, listener);
        }
        let Some(runner) = self.threads.get_mut(&thread) else { return };
        if std::mem::replace(&mut runner.is_ending, true) {
            return;
        }
        let Some((number, own)) = runner.place else { return };
        let Some(space) = &mut self.spaces[number as usize] else { return };
        space.loses(cpu);
        listener.exit(
            SpaceMoment {
                now: self.now,
                number,
                space,
                topology: self.topology,
                idle_row: &self.rows.idle_row,
            },
            cpu,
            own,
        );
    }

    /// Forgets a thread that has ended and does not run, and its space if it was the last.
    fn bury(&mut self, thread: Tid, listener: &mut impl Listener) {
        let is_over = self.threads.get(&thread).is_some_and(|runner| runner.is_ending);
        if !is_over {
            return;
        }
        self.ended.insert(thread);
        let place = self.threads.remove(&thread).and_then(|runner| runner.place);
        if let Some((number, _)) = place {
            if self.spaces[number as usize].as_ref().is_some_and(|space| space.is_over()) {
                self.close(number, listener);
            }
        }
    }

    fn close(&mut self, number: SpaceNumber, listener: &mut impl Listener) {
        if let Some(mut space) = self.spaces[number as usize].take() {
            space.summary.end_ns = self.now;
            if self.processes.get(&space.summary.process) == Some(&number) {
                self.processes.remove(&space.summary.process);
            }
            listener.end(number, space.summary);
        }
    }

    fn affinity(&mut self, thread: Tid, cpus: Text, listener: &mut impl Listener) {
        if let Some(affinity) = self.known_affinity(cpus) {
            self.meet(thread, listener);
            self.confine(thread, affinity, listener);
        }
    }

    fn confine(&mut self, thread: Tid, affinity: usize, listener: &mut impl Listener) {
        let Some(runner) = self.threads.get_mut(&thread) else { return };
        runner.affinity = affinity;
        let Some((number, own)) = runner.place else { return };
        let Some(space) = &mut self.spaces[number as usize] else { return };
        space.confine(own, &self.affinities[affinity]);
        listener.affinity(
            SpaceMoment {
                now: self.now,
                number,
                space,
                topology: self.topology,
                idle_row: &self.rows.idle_row,
            },
            own,
        );
    }

    /// The set of CPUs that a text lists, those that the machine has.
    fn known_affinity(&mut self, cpus: Text) -> Option<usize> {
        if let Some(&known) = self.known_affinities.get(&cpus) {
            return Some(known);
        }
        let limit = self.topology.cpus();
        let list = cpu_list::parse(self.trace.texts.get(cpus))?;
        let set =
            CpuSet::from_cpus(limit, list.into_iter().flatten().take_while(|&cpu| cpu < limit));
        if set.is_empty() {
            return None;
        }
        self.affinities.push(Rc::new(set));
        self.known_affinities.insert(cpus, self.affinities.len() - 1);
        Some(self.affinities.len() - 1)
    }

    fn name(&mut self, thread: Tid, name: Text) {
        self.names.insert(thread, name);
        let place = self.threads.get(&thread).and_then(|runner| runner.place);
        let Some((number, own)) = place else { return };
        if let Some(space) = &mut self.spaces[number as usize] {
            if own == 0 || thread == space.summary.process {
                space.rename(self.now, self.trace.texts.get(name));
            }
        }
    }

    /// Adds a thread that was there before the trace.
    fn meet(&mut self, thread: Tid, listener: &mut impl Listener) {
        if self.threads.contains_key(&thread) || !is_named(thread) {
            return;
        }
        let is_ending = self.ended.contains(&thread);
        if is_ending || self.membership.is_kernel(thread) {
            self.threads.insert(thread, Runner { is_ending, ..Runner::kernel() });
            return;
        }
        let said = self.membership.process(thread);
        let process = said.unwrap_or(thread);
        let space = match self.processes.get(&process) {
            Some(&known) => known,
            None => {
                let space = self.open(process, said.is_none());
                self.processes.insert(process, space);
                space
            }
        };
        self.join(thread, space, ANYWHERE, listener);
    }

    fn open(&mut self, process: Tid, guessed: bool) -> SpaceNumber {
        let mut space = Space::new(process, self.now);
        space.summary.guessed = guessed;
        if let Some(&name) = self.names.get(&process) {
            space.summary.name = self.trace.texts.get(name).to_owned();
        }
        self.spaces.push(Some(Box::new(space)));
        self.spaces.len() as SpaceNumber - 1
    }

    fn admit(&mut self, thread: Tid, space: SpaceNumber, affinity: usize) -> Thread {
        let Some(open) = &mut self.spaces[space as usize] else { return 0 };
        let number = open.join(thread, &self.affinities[affinity]);
        if number == 0 && open.summary.name.is_empty() {
            // Its first thread, as the kernel counts, may never be seen.
            if let Some(&name) = self.names.get(&thread) {
                open.summary.name = self.trace.texts.get(name).to_owned();
            }
        }
        self.threads
            .insert(thread, Runner { place: Some((space, number)), affinity, ..Runner::kernel() });
        number
    }

    fn join(
        &mut self,
        thread: Tid,
        space: SpaceNumber,
        affinity: usize,
        listener: &mut impl Listener,
    ) {
        let number = self.admit(thread, space, affinity);
        if let Some(at) = self.moment(space) {
            listener.spawn(at, number);
        }
    }

    /// Returns the thread in its space, and the current moment there.
    fn locate(&self, thread: Tid) -> Option<(Thread, SpaceMoment<'_>)> {
        let (number, own) = self.threads.get(&thread)?.place?;
        Some((own, self.moment(number)?))
    }

    /// This moment in an address space.
    fn moment(&self, number: SpaceNumber) -> Option<SpaceMoment<'_>> {
        let space = self.spaces[number as usize].as_deref()?;
        let idle_row = &self.rows.idle_row;
        Some(SpaceMoment { now: self.now, number, space, topology: self.topology, idle_row })
    }

    /// The trace is over: running threads run until now, and all spaces end.
    fn finish(&mut self, listener: &mut impl Listener) {
        for cpu in 0..self.topology.cpus() {
            self.switch(cpu, IDLE, listener);
        }
        for number in 0..self.spaces.len() as SpaceNumber {
            self.close(number, listener);
        }
    }
}

/// Returns `true` if a thread can have an address space.
fn is_named(thread: Tid) -> bool {
    thread != IDLE && thread != UNKNOWN
}

/// Returns the number of CPUs. All of them had events or threads in their queues, unless the trace
/// has a larger number.
fn present(trace: &Trace, cpus: u32) -> u32 {
    let largest = |event: &Event| match event.what {
        What::Migrate { to, .. } if to < cpus => event.cpu.max(to),
        _ => event.cpu,
    };
    let seen = trace.events.iter().map(largest).max().map_or(0, |cpu| cpu + 1);
    trace.origin.online_cpus.map_or(seen, |online| online.clamp(seen, cpus.max(seen)))
}

impl Runner {
    /// A thread without user space, which has not run yet.
    fn kernel() -> Runner {
        Runner {
            place: None,
            cpu: None,
            last_turn: None,
            since: 0,
            affinity: ANYWHERE,
            is_running: false,
            is_ending: false,
        }
    }
}
