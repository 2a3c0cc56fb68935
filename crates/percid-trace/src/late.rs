//! CPUs whose events begin later than the recording does.
//!
//! A ring buffer for each CPU keeps the newest events. The buffer of a busy CPU begins later than
//! the others, and the CPU was not idle until then. A CPU that idles has no events either, so one
//! of these signs is required:
//!
//! - Events were lost.
//! - Threads ran unseen after they were put into the CPU's queue.
//! - The time before the first event is many times the CPU's longest later time without an event.
//!   This is no sign if wake-ups are recorded and the CPU begins with a switch from idle: no thread
//!   was put into its queue.

use std::collections::{BTreeMap, HashMap};

use crate::event::{Cpu, Event, IDLE, Stage, Tid, What};
use crate::gaps;
use crate::trace::Trace;

/// A CPU began late if the time before its first event is more than this many times its longest
/// later time without an event.
const TIMES: u64 = 8;
/// Number of events on a CPU below which they do not show how often something happens there.
const FEW: u64 = 8;
/// Number of threads that ran unseen from which on a CPU began late. A single one may be due to an
/// event that is missing elsewhere.
const UNSEEN: u64 = 2;
/// If events were lost, a CPU began late if the time before its first event is more than one part
/// in this number of the recording.
const SHARE: u64 = 100;

/// Stores the CPUs whose beginning was not recorded in the trace's origin.
pub(crate) fn note(trace: &mut Trace) {
    let coverage = &trace.origin.coverage;
    if !coverage.filtered && !coverage.away_only && coverage.sampling.is_none() {
        let has_lost = trace.origin.lost > 0;
        trace.origin.late_cpus = Beginnings::from_events(&trace.events).late(has_lost);
    }
}

#[derive(Default)]
struct Beginnings {
    cpus: BTreeMap<Cpu, Beginning>,
    /// Threads that were woken and have not run since, with the CPU in whose queue they wait and
    /// the event that reported it.
    woken: HashMap<Tid, (Cpu, Stage)>,
    /// Number of threads that ran unseen, by the CPU in whose queue they had been.
    unseen: BTreeMap<Cpu, u64>,
    has_wakeups: bool,
    now: u64,
}

struct Beginning {
    time: u64,
    last: u64,
    longest: u64,
    events: u64,
    from: Option<Tid>,
}

impl Beginnings {
    fn from_events(events: &[Event]) -> Beginnings {
        let mut all = Beginnings::default();
        events.iter().filter(|event| event.was_recorded()).for_each(|event| all.take(event));
        all
    }

    fn take(&mut self, event: &Event) {
        let Event { time, cpu, what } = *event;
        self.now = time;
        let new = Beginning { time, last: time, longest: 0, events: 0, from: None };
        let seen = self.cpus.entry(cpu).or_insert(new);
        seen.longest = seen.longest.max(time.saturating_sub(seen.last));
        (seen.last, seen.events) = (time, seen.events + 1);
        if let What::Switch { prev, next, .. } = what {
            seen.from.get_or_insert(prev);
            self.woken.remove(&next);
        }
        gaps::current(event).map(|thread| self.woken.remove(&thread));
        match what {
            What::Wakeup { thread, target, stage } => self.wake(thread, target, stage),
            What::Migrate { thread, to, .. } => {
                self.woken.entry(thread).and_modify(|woken| woken.0 = to);
            }
            What::Fork { child, .. } => drop(self.woken.remove(&child)),
            _ => {}
        }
    }

    /// Takes a wake-up. If an earlier wake-up put the thread into the queue of a CPU without
    /// events, it has run there unseen: a thread in a queue is woken again only after it has run.
    fn wake(&mut self, thread: Tid, target: Cpu, stage: Stage) {
        self.has_wakeups = true;
        let before = self.woken.insert(thread, (target, stage));
        let Some((cpu, before)) = before.filter(|(cpu, _)| !self.cpus.contains_key(cpu)) else {
            return;
        };
        if before != Stage::Waking || stage == Stage::Waking {
            *self.unseen.entry(cpu).or_default() += 1;
        }
    }

    fn late(&self, has_lost: bool) -> Vec<Cpu> {
        let begin = self.cpus.values().map(|seen| seen.time).min().unwrap_or(0);
        let length = self.now.saturating_sub(begin);
        let is_late = |cpu: &Cpu, seen: &Beginning| {
            let before = seen.time - begin;
            let longest = seen.longest.max(self.now.saturating_sub(seen.last));
            let may_idle = self.has_wakeups && seen.from == Some(IDLE);
            let unseen = self.unseen.get(cpu).copied().unwrap_or(0);
            has_lost && before > length / SHARE
                || unseen >= UNSEEN
                || !may_idle && seen.events >= FEW && before > longest.saturating_mul(TIMES)
        };
        let late = self.cpus.iter().filter(|(cpu, seen)| is_late(cpu, seen));
        late.map(|(&cpu, _)| cpu).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::State;

    /// Returns a recording up to the time `to`. CPU 0 switches all the time, CPU 1 since `begin`,
    /// first from the thread `from`. A thread sleeps in between.
    fn recording(begin: u64, from: Tid, to: u64) -> Vec<Event> {
        let turns = |cpu: Cpu, begin: u64, end: u64, first: Tid| {
            let thread = 7 + cpu;
            let turn = move |time: u64| {
                let [prev, next] =
                    if time.is_multiple_of(20) { [IDLE, thread] } else { [thread, IDLE] };
                let prev = if time == begin { first } else { prev };
                let what = What::Switch { prev, state: State::SLEEPING, next };
                Event { time, cpu, what }
            };
            (begin..end).step_by(10).map(turn)
        };
        let mut all: Vec<Event> = turns(0, 0, to, IDLE).chain(turns(1, begin, to, from)).collect();
        all.sort_by_key(|event| (event.time, event.cpu));
        all
    }

    fn late(events: &[Event], lost: u64) -> Vec<Cpu> {
        let mut trace = Trace { events: events.to_vec(), ..Trace::default() };
        trace.origin.lost = lost;
        note(&mut trace);
        trace.origin.late_cpus
    }

    fn wakeup(time: u64) -> Event {
        Event { time, cpu: 0, what: What::Wakeup { thread: 30, target: 1, stage: Stage::Woken } }
    }

    #[test]
    fn a_cpu_that_begins_much_later_is_late() {
        assert_eq!(late(&recording(1000, IDLE, 2000), 0), [1]);
        assert_eq!(late(&recording(60, IDLE, 2000), 0), [0; 0], "it may have idled");
        assert_eq!(late(&recording(1000, IDLE, 1050), 0), [0; 0], "five events show nothing");
        let mut ends: Vec<Event> = recording(1000, IDLE, 1400);
        ends.extend(recording(5000, IDLE, 5200).into_iter().filter(|event| event.cpu == 0));
        assert_eq!(late(&ends, 0), [0; 0], "it is without an event for longer at the end");
    }

    #[test]
    fn where_wakeups_are_recorded_a_cpu_may_idle_for_long() {
        let with = |from: Tid, wakeups: &[u64]| {
            let mut events = recording(1000, from, 2000);
            events.extend(wakeups.iter().map(|&time| wakeup(time)));
            events.sort_by_key(|event| (event.time, event.cpu));
            late(&events, 0)
        };
        assert_eq!(with(IDLE, &[995]), [0; 0]);
        assert_eq!(with(9, &[995]), [1], "it did not idle");
        assert_eq!(with(IDLE, &[300, 600, 995]), [1], "a thread ran there unseen, twice");
    }

    #[test]
    fn if_events_were_lost_a_later_beginning_was_not_seen() {
        assert_eq!(late(&recording(60, IDLE, 2000), 1), [1]);
        assert_eq!(late(&recording(10, IDLE, 2000), 1), [0; 0]);
    }
}
