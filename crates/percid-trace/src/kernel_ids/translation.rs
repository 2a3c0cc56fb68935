//! Translation of a trace's events to the steps of one process's recording.

use std::collections::HashMap;

use percid_sim::conformance::{self, Step};
use percid_sim::{MS, Ns, US};

use super::insufficient::Insufficient;
use super::reorderings::Slack;
use crate::event::{Cpu, Event, Shares, Stage, Tid, What};
use crate::trace::Trace;
use percid_sim::cpu_list;

/// The least time between two scans.
const PERIOD: Ns = 100 * MS;

/// Longest delay between a CPU's trace event and its action: 7 ms have been observed for one of 16
/// emulated CPUs.
const STALLED: Ns = 10 * MS;

/// Translation of a trace's events to the steps of a recording.
pub(super) struct Translation<'a> {
    trace: &'a Trace,
    began: Ns,
    /// The number of each thread that uses the memory, and of those that did.
    threads: HashMap<Tid, Member>,
    /// Number of members so far.
    count: u32,
    /// Threads that have left and are still counted, with the threads that wait for them.
    left: HashMap<Tid, Tid>,
    /// The thread that each CPU runs, if it uses the memory.
    current: HashMap<Cpu, Tid>,
    /// Time since which a tick leads to a scan.
    due: Ns,
    steps: Vec<Step>,
    slacks: Vec<Slack>,
    has_ids: bool,
    /// `true` if a thread that reports no ID has the one that it reported last.
    tells_changes_only: bool,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    number: u32,
    runs_on: Option<Cpu>,
    /// The tick after which it scans on its way to user space.
    tick: Option<Ns>,
    waking: Waking,
    /// The thread that created it and waits for it, if it leaves as soon as it runs.
    creator: Option<Tid>,
    /// The number of the thread that it created, and that has left, and is still counted.
    waits_for: Option<u32>,
    /// The CPU and the ID of its last report.
    told: Option<(Cpu, u32)>,
}

/// A thread that is being woken may be moved, and arrives when it is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waking {
    No,
    Begun,
    Moved { from: Cpu, to: Cpu, at: Ns },
}

impl Member {
    fn new(number: u32, creator: Option<Tid>) -> Member {
        Member {
            number,
            runs_on: None,
            tick: None,
            waking: Waking::No,
            creator,
            waits_for: None,
            told: None,
        }
    }
}

impl<'a> Translation<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        start: Event,
        process: Tid,
        tells_changes_only: bool,
    ) -> Translation<'a> {
        let Event { time, cpu, .. } = start;
        let first = Member { runs_on: Some(cpu), ..Member::new(0, None) };
        Translation {
            trace,
            began: time,
            threads: HashMap::from([(process, first)]),
            count: 1,
            left: HashMap::new(),
            current: HashMap::from([(cpu, process)]),
            due: time.saturating_add(PERIOD),
            steps: vec![Step { time: 0, event: conformance::Event::Exec(cpu, 0) }],
            slacks: vec![Slack { from: 0, until: 0, mover: None }],
            has_ids: false,
            tells_changes_only,
        }
    }

    fn push(&mut self, time: Ns, event: conformance::Event) {
        let slack = match event {
            // The thread takes its ID after that.
            conformance::Event::Switch(..) => {
                Slack { from: time, until: time.saturating_add(STALLED), mover: None }
            }
            conformance::Event::Exit(..) => {
                Slack { from: time.saturating_sub(STALLED), until: time, mover: None }
            }
            conformance::Event::Tick(_, _, ago) => {
                Slack { from: time.saturating_sub(Ns::from(ago) * US), until: time, mover: None }
            }
            _ => Slack { from: time, until: time, mover: None },
        };
        self.push_within(time, event, slack);
    }

    /// Takes in a step that may have happened at other times than this.
    fn push_within(&mut self, time: Ns, event: conformance::Event, slack: Slack) {
        let since = |time: Ns| time.saturating_sub(self.began);
        self.steps.push(Step { time: since(time), event });
        self.slacks.push(Slack { from: since(slack.from), until: since(slack.until), ..slack });
    }

    /// Takes the steps, and when else each may have happened. `None` if the threads reported no ID.
    pub(super) fn take_steps(&mut self) -> Option<(Vec<Step>, Vec<Slack>)> {
        self.has_ids.then(|| (std::mem::take(&mut self.steps), std::mem::take(&mut self.slacks)))
    }

    /// Returns `true` if a thread uses the memory.
    pub(super) fn has_member(&self, thread: Tid) -> bool {
        self.threads.contains_key(&thread)
    }

    /// Returns `true` if one of the threads runs on a CPU.
    pub(super) fn runs_on(&self, cpu: Cpu) -> bool {
        self.current.contains_key(&cpu)
    }

    fn number(&self, thread: Tid) -> Option<u32> {
        self.threads.get(&thread).map(|member| member.number)
    }

    pub(super) fn take(&mut self, event: &Event, is_guest: bool) -> Result<(), Insufficient> {
        let &Event { time, cpu, what } = event;
        match what {
            What::Switch { prev, state, next } => {
                self.runs(time, cpu, prev);
                if !state.is_runnable() {
                    self.was_silent(time, cpu, prev);
                }
                self.switch(time, cpu, next);
            }
            What::Id { thread, id, .. } => {
                let Some(number) = self.runs(time, cpu, thread) else { return Ok(()) };
                self.scan(time, cpu, thread);
                self.push(time, conformance::Event::Id(number, id));
                self.has_ids = true;
                if let Some(member) = self.threads.get_mut(&thread) {
                    member.told = Some((cpu, id));
                }
            }
            What::Tick { thread } => self.tick(time, cpu, thread),
            What::Fork { parent, child, shares } => {
                return self.fork((time, cpu), parent, child, shares, is_guest);
            }
            What::Exec { thread, .. } => self.replaced(time, cpu, thread),
            What::Exit { thread } => {
                if let Some(number) = self.runs(time, cpu, thread) {
                    self.push(time, conformance::Event::Exit(cpu, number));
                    self.threads.entry(thread).and_modify(|member| member.told = None);
                }
            }
            What::Wakeup { thread, stage, .. } => self.wake(time, thread, stage),
            What::Migrate { thread, from, to } => self.migrate(event, thread, from, to),
            What::Affinity { thread, cpus } => {
                let weight = cpu_list::count(self.trace.texts.get(cpus));
                if let (Some(number), Some(weight)) = (self.number(thread), weight) {
                    self.push(time, conformance::Event::Affinity(number, weight));
                }
            }
            What::Member { .. } | What::Name { .. } => {}
        }
        Ok(())
    }

    /// Takes it that a thread runs on a CPU. Returns its number if it uses the memory.
    fn runs(&mut self, time: Ns, cpu: Cpu, thread: Tid) -> Option<u32> {
        if self.current.get(&cpu) != Some(&thread) {
            self.switch(time, cpu, thread);
        }
        self.number(thread)
    }

    /// Notes that a thread goes to sleep on the CPU where it last reported its ID, without a report
    /// since. If no report means unchanged, it still has that ID. (A thread that was woken and
    /// never got to user space reports nothing either. But then its ID differs only if the owners
    /// of IDs changed their kind during that time.)
    fn was_silent(&mut self, time: Ns, cpu: Cpu, thread: Tid) {
        let Some(&Member { number, told: Some((there, id)), .. }) = self.threads.get(&thread)
        else {
            return;
        };
        if self.tells_changes_only && there == cpu {
            self.push(time, conformance::Event::Id(number, id));
        }
    }

    /// A CPU switches to a thread.
    fn switch(&mut self, time: Ns, cpu: Cpu, next: Tid) {
        self.arrive(time, next);
        let next_member = self.threads.get(&next).copied();
        if let Some(elsewhere) = next_member.and_then(|next| next.runs_on).filter(|&on| on != cpu) {
            self.set(time, elsewhere, None);
        }
        self.set(time, cpu, next_member.map(|_| next));
        if next_member.is_some_and(|next| next.creator.is_some()) {
            self.leave(time, cpu, next);
        }
    }

    /// Lets a thread of the process run on a CPU, or none.
    fn set(&mut self, time: Ns, cpu: Cpu, next: Option<Tid>) {
        let prev = match next {
            Some(next) => self.current.insert(cpu, next),
            None => self.current.remove(&cpu),
        };
        if prev == next {
            return;
        }
        let prev = prev.and_then(|prev| self.threads.get_mut(&prev)).map(|prev| {
            prev.runs_on = None;
            prev.number
        });
        let next = next.and_then(|next| self.threads.get_mut(&next)).map(|next| {
            next.runs_on = Some(cpu);
            next.number
        });
        self.push(time, conformance::Event::Switch(cpu, prev, next));
    }

    fn wake(&mut self, time: Ns, thread: Tid, stage: Stage) {
        match (stage, self.threads.get_mut(&thread)) {
            (Stage::Waking, Some(member)) => member.waking = Waking::Begun,
            (Stage::Woken | Stage::New, Some(_)) => {
                self.arrive(time, thread);
                self.go_on(time, thread);
            }
            (_, None) => {}
        }
    }

    fn migrate(&mut self, event: &Event, thread: Tid, from: Cpu, to: Cpu) {
        let &Event { time, cpu, .. } = event;
        let Some(member) = self.threads.get_mut(&thread) else { return };
        let number = member.number;
        if member.waking == Waking::No {
            let until = time.saturating_add(STALLED);
            let slack = Slack { from: time, until, mover: Some(cpu) };
            self.push_within(time, conformance::Event::Migrate(number, from, to), slack);
        } else {
            member.waking = Waking::Moved { from, to, at: time };
        }
    }

    /// A thread is queued on the CPU to which it was moved, if it was.
    fn arrive(&mut self, time: Ns, thread: Tid) {
        let Some(member) = self.threads.get_mut(&thread) else { return };
        let number = member.number;
        if let Waking::Moved { from, to, at } = std::mem::replace(&mut member.waking, Waking::No) {
            let slack = Slack { from: at, until: time, mover: None };
            self.push_within(time, conformance::Event::Migrate(number, from, to), slack);
        }
    }

    /// A thread need not wait any more for the one that it created, which has other memory now.
    fn go_on(&mut self, time: Ns, thread: Tid) {
        let gone = self.threads.get_mut(&thread).and_then(|member| member.waits_for.take());
        if let Some(gone) = gone {
            self.push(time, conformance::Event::Gone(gone));
        }
    }

    fn tick(&mut self, time: Ns, cpu: Cpu, thread: Tid) {
        let Some(number) = self.runs(time, cpu, thread) else { return };
        if time < self.due {
            self.push(time, conformance::Event::Tick(cpu, number, 0));
        } else if let Some(member) = self.threads.get_mut(&thread) {
            member.tick.get_or_insert(time);
        }
    }

    /// A thread goes back to user space. If it has been ticked when a scan was due, it scans.
    fn scan(&mut self, time: Ns, cpu: Cpu, thread: Tid) {
        let Some(member) = self.threads.get_mut(&thread) else { return };
        let Some(landed) = member.tick.take() else { return };
        let ago = u32::try_from(time.saturating_sub(landed) / US).unwrap_or(u32::MAX);
        let event = conformance::Event::Tick(cpu, member.number, ago);
        if time >= self.due {
            self.due = time.saturating_add(PERIOD);
        }
        self.push(time, event);
    }

    fn fork(
        &mut self,
        (time, cpu): (Ns, Cpu),
        parent: Tid,
        child: Tid,
        shares: Shares,
        is_guest: bool,
    ) -> Result<(), Insufficient> {
        self.go_on(time, parent);
        let Some(creator) = self.number(parent) else {
            self.threads.remove(&child);
            return Ok(());
        };
        match shares {
            Shares::Unknown => return Err(Insufficient::UnknownMemory(child)),
            Shares::Nothing => drop(self.threads.remove(&child)),
            Shares::Process | Shares::Memory => {
                let number = self.count;
                self.count += 1;
                self.threads.insert(child, Member::new(number, is_guest.then_some(parent)));
                // It is counted before the trace shows it.
                let slack =
                    Slack { from: time.saturating_sub(STALLED), until: time, mover: Some(cpu) };
                self.push_within(time, conformance::Event::Spawn(number, creator), slack);
                if let Some(creator) = self.threads.get_mut(&parent).filter(|_| is_guest) {
                    creator.waits_for = Some(number);
                }
            }
        }
        Ok(())
    }

    /// A running thread has requested another program.
    fn leave(&mut self, time: Ns, cpu: Cpu, thread: Tid) {
        let Some(Member { number, creator: Some(creator), .. }) =
            self.threads.get(&thread).copied()
        else {
            return;
        };
        self.push(time, conformance::Event::Leave(cpu, number));
        self.set(time, cpu, None);
        self.threads.remove(&thread);
        self.left.insert(thread, creator);
    }

    /// A thread has replaced its program.
    fn replaced(&mut self, time: Ns, cpu: Cpu, thread: Tid) {
        // One whose beginning the trace does not show leaves now.
        self.runs(time, cpu, thread);
        if let Some(creator) = self.left.remove(&thread) {
            self.go_on(time, creator);
        }
    }
}
