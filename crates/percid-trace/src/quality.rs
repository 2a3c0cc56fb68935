//! The quality of a recording: which conclusions may be drawn from it.
//!
//! Advice depends on when each thread ran, and on which threads ran at the same time. A recording
//! that does not contain this looks like one of a program whose threads never run at once. Its
//! [`Coverage`] contains what the format reports about how it was recorded. Regardless of that,
//! switches that do not fit together show that others are missing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use percid_sim::cpu_list;
use serde::{Serialize, Serializer};

use crate::event::{Cpu, Event, IDLE, Tid, UNKNOWN, What};
use crate::gaps;
use crate::record::UNWRITTEN;
use crate::trace::{Coverage, Origin, Sampling, Trace};

/// The extent of the conclusions that may be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QualityLevel {
    /// No conclusions about threads that run at once.
    Insufficient,
    /// Conclusions that depend on many turns.
    Limited,
    /// All conclusions that a schedule permits.
    Good,
}

/// A limitation of a recording, and the conclusions that it still permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limitation {
    /// The best level that it permits.
    pub at_most: QualityLevel,
    /// The kind of limitation.
    pub reason: Reason,
}

/// A reason why a recording is not good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It has no switch.
    NoSwitch,
    /// Switches were sampled.
    Sampled(Sampling),
    /// Only switches away from the threads of a command were recorded.
    SwitchOutOnly,
    /// Threads that were created later are missing.
    NotInherited,
    /// This number of turns have no beginning.
    MissingStart(u64),
    /// This number of events were lost.
    Lost(u64),
    /// This number of switches were inferred.
    Inferred(u64),
    /// This number of lines or records could not be read.
    Unread(u64),
    /// It is not known why threads stopped running.
    NoStates,
    /// Threads were recorded on some CPUs only.
    SomeCpus,
    /// Only the threads of a command or process were recorded.
    Filtered,
    /// CPUs switched to their idle threads, but no switch from them was recorded.
    NeverFromIdle {
        /// The first of them.
        cpu: Cpu,
        /// Number of other such CPUs.
        others: u32,
    },
    /// The time before the first events of CPUs was not recorded, as in ring buffers that keep the
    /// newest events.
    BeganLate {
        /// The first of them.
        cpu: Cpu,
        /// Number of other such CPUs.
        others: u32,
    },
    /// The recorder was killed, or had no space left.
    Truncated,
}

/// The level of a recording, and the reasons for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quality {
    /// The extent of the conclusions that may be drawn.
    pub level: QualityLevel,
    /// The reasons why the level is not better. They may be present in a good recording too.
    pub limitations: Vec<Limitation>,
    /// Number of switches, including those that were inferred.
    pub switches: u64,
    /// Number of switches that the kernel did not record, and that were inferred.
    pub inferred: u64,
    /// Number of turns of threads of which only the end is known.
    pub unbegun: u64,
    /// Number of events that were lost.
    pub lost: u64,
    /// The CPUs on which something happened, as a list: `0-3,8`.
    pub cpus: String,
    /// Number of CPUs that were online: at least the number of `cpus`.
    pub online: u32,
    /// Other remarks that were made when the file was read.
    pub remarks: Vec<String>,
}

/// The share of missing events or turns, as one in this number, above which conclusions are
/// doubtful.
const DOUBTFUL_OF: u64 = 100;
/// The share of missing events or turns, as one in this number, above which no conclusions are
/// permitted.
const TOO_MANY_OF: u64 = 10;

impl Quality {
    /// Returns the level of a trace as it was read, or of one with its gaps closed.
    pub fn from_trace(trace: &Trace) -> Quality {
        let known = gaps::known(&trace.events);
        let mut finder = gaps::Finder::new(&known);
        let (mut judge, mut missing) = (Judge::default(), 0);
        for event in &trace.events {
            if let Some(before) = finder.missing_before(event) {
                missing += 1;
                judge.take(&before);
            }
            judge.take(event);
        }
        judge.judge(&trace.origin, missing, &known)
    }

    /// Returns `true` if advice may be given.
    pub fn permits_advice(&self) -> bool {
        self.level > QualityLevel::Insufficient
    }

    fn find_limitations(&self, coverage: &Coverage, events: u64) -> Vec<Limitation> {
        use QualityLevel::{Good, Insufficient, Limited};
        let share = |part: u64, all: u64| match part {
            0 => None,
            _ if part > all / TOO_MANY_OF => Some(Insufficient),
            _ if part > all / DOUBTFUL_OF => Some(Limited),
            _ => None,
        };
        let Coverage { sampling, away_only, not_inherited, some_cpus, filtered, .. } = *coverage;
        let Coverage { cut_off, unread, no_states, .. } = *coverage;
        let lost = share(self.lost, self.lost.saturating_add(events));
        let not_read = share(unread, unread.saturating_add(events));
        let found = [
            (self.switches == 0).then_some((Insufficient, Reason::NoSwitch)),
            sampling.map(|sampling| (Insufficient, Reason::Sampled(sampling))),
            away_only.then_some((Insufficient, Reason::SwitchOutOnly)),
            not_inherited.then_some((Insufficient, Reason::NotInherited)),
            share(self.unbegun, self.switches)
                .map(|level| (level, Reason::MissingStart(self.unbegun))),
            (self.lost > 0).then_some((lost.unwrap_or(Limited), Reason::Lost(self.lost))),
            // Their times are known well enough. If not, they count as unbegun turns.
            share(self.inferred, self.switches).map(|_| (Limited, Reason::Inferred(self.inferred))),
            (unread > 0).then_some((not_read.unwrap_or(Limited), Reason::Unread(unread))),
            no_states.then_some((Limited, Reason::NoStates)),
            some_cpus.then_some((Limited, Reason::SomeCpus)),
            filtered.then_some((Limited, Reason::Filtered)),
            // The existing part is as good as if the recording had been stopped earlier.
            cut_off.then_some((Good, Reason::Truncated)),
        ];
        let limitation = |(at_most, reason)| Limitation { at_most, reason };
        found.into_iter().flatten().map(limitation).collect()
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn is_switch(event: &Event) -> bool {
    matches!(event.what, What::Switch { .. })
}

/// A judge that takes a recording event by event, so that it need not fit into memory.
#[derive(Default)]
pub(crate) struct Judge {
    events: u64,
    switches: u64,
    /// The CPUs on which something happened, sorted.
    cpus: Vec<Cpu>,
    turns: Turns,
    has_members: bool,
    idle: IdleSwitches,
}

impl Judge {
    /// Takes the next event. The caller passes inferred switches in place of missing ones too.
    pub(crate) fn take(&mut self, event: &Event) {
        self.events += 1;
        self.switches += u64::from(is_switch(event));
        self.has_members |= matches!(event.what, What::Member { .. });
        if let Err(place) = self.cpus.binary_search(&event.cpu) {
            self.cpus.insert(place, event.cpu);
        }
        self.turns.take(event);
        self.idle.take(event);
    }

    /// Returns the level. `missing` is the number of events taken that are inferred switches and
    /// not in the trace. `known` are the threads of which the trace contains more than that they
    /// ran.
    pub(crate) fn judge(self, origin: &Origin, missing: u64, known: &HashSet<Tid>) -> Quality {
        let cpus = cpu_list::write(self.cpus);
        let followed = self.has_members.then_some(known);
        let mut judged = Quality {
            level: QualityLevel::Good,
            limitations: Vec::new(),
            switches: self.switches,
            inferred: origin.coverage.inferred.saturating_add(missing),
            unbegun: self.turns.unbegun(followed),
            lost: origin.lost,
            online: origin.online_cpus.unwrap_or(0).max(cpu_list::count(&cpus).unwrap_or(0)),
            cpus,
            remarks: origin.remarks.clone(),
        };
        judged.limitations = judged.find_limitations(&origin.coverage, self.events);
        let late = origin
            .late_cpus
            .first()
            .map(|&cpu| Reason::BeganLate { cpu, others: origin.late_cpus.len() as u32 - 1 });
        let blind = self.idle.blind();
        judged.limitations.extend(
            late.into_iter()
                .chain(blind)
                .map(|reason| Limitation { at_most: QualityLevel::Limited, reason }),
        );
        let worst = judged.limitations.iter().map(|found| found.at_most).min();
        judged.level = worst.unwrap_or(QualityLevel::Good);
        judged
    }
}

/// Number of switches to idle below which there may be no switch from idle by chance.
const FEW: u64 = 8;

/// The numbers of recorded switches to the idle thread and from it, for each CPU.
#[derive(Default)]
struct IdleSwitches {
    /// The switches to idle and from idle, by CPU.
    counts: BTreeMap<Cpu, [u64; 2]>,
    /// The last event. It is counted when the next one shows if it is inferred.
    last: Option<Event>,
}

impl IdleSwitches {
    fn take(&mut self, event: &Event) {
        let last = self.last.replace(*event);
        self.count(last, Some(event));
    }

    fn count(&mut self, event: Option<Event>, after: Option<&Event>) {
        let Some(Event { time, cpu, what: What::Switch { prev, next, .. } }) = event else {
            return;
        };
        let shows = |after: &Event| {
            (after.time, after.cpu) == (time, cpu) && gaps::current(after) == Some(next)
        };
        let is_recorded = !after.is_some_and(shows);
        if prev != next && (prev == IDLE || next == IDLE) {
            let [to, from] = self.counts.entry(cpu).or_default();
            *to += u64::from(next == IDLE && is_recorded);
            *from += u64::from(prev == IDLE && is_recorded);
        }
    }

    /// Returns a reason if CPUs have at least `FEW` switches to idle and none from it.
    fn blind(mut self) -> Option<Reason> {
        let last = self.last.take();
        self.count(last, None);
        let mut blind = self.counts.iter().filter(|(_, [to, from])| *to >= FEW && *from == 0);
        let (&cpu, _) = blind.next()?;
        Some(Reason::NeverFromIdle { cpu, others: blind.count() as u32 })
    }
}

/// The thread that runs on a CPU, according to the trace.
#[derive(Clone, Copy)]
struct Running {
    thread: Tid,
    since: u64,
    /// The thread before it, if only the end of that thread's turn is known.
    unbegun_before: Option<Tid>,
}

/// A counter of turns of which only the end is known: no beginning was recorded, or it has the same
/// time as the end.
///
/// If only the threads of some processes are recorded, the turns of others between them have no
/// beginning either. Those are not counted. If a trace lists the members of processes, these
/// distinguish the threads. Otherwise, the other threads are those that have no whole turn.
#[derive(Default)]
struct Turns {
    running: HashMap<Cpu, Running>,
    whole: HashSet<Tid>,
    candidates: HashMap<Tid, u64>,
    unbegun: u64,
}

impl Turns {
    fn take(&mut self, event: &Event) {
        let What::Switch { prev, next, .. } = event.what else { return };
        let before = self.running.get(&event.cpu).copied();
        let fits = before.is_none_or(|before| {
            before.thread == prev || before.thread == UNKNOWN || prev == UNKNOWN
        });
        let is_named = prev != IDLE && prev != UNKNOWN;
        let took_time = before.is_none_or(|before| before.since < event.time);
        let mut unbegun_before = None;
        match (fits, took_time) {
            (true, true) if before.is_some() => drop(self.whole.insert(prev)),
            (true, true) => {}
            (true, false) if is_named => self.unbegun += 1,
            (false, _) if is_named => unbegun_before = Some(prev),
            _ => {}
        }
        // The turn without a beginning that ended with the switch before this one.
        if let Some(doubted) = before.and_then(|before| before.unbegun_before) {
            match fits {
                true => *self.candidates.entry(doubted).or_default() += 1,
                false => self.unbegun += 1,
            }
        }
        let now = Running { thread: next, since: event.time, unbegun_before };
        self.running.insert(event.cpu, now);
    }

    /// Returns the number of these turns. If `followed` is `None`, the followed threads are those
    /// that have a whole turn.
    fn unbegun(mut self, followed: Option<&HashSet<Tid>>) -> u64 {
        let last = self.running.values().filter_map(|last| last.unbegun_before);
        last.for_each(|thread| *self.candidates.entry(thread).or_default() += 1);
        let followed = followed.unwrap_or(&self.whole);
        let of_followed = self.candidates.iter().filter(|(thread, _)| followed.contains(thread));
        self.unbegun + of_followed.map(|(_, turns)| turns).sum::<u64>()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reason::NoSwitch => write!(f, "it has no switch, so it does not say who ran when"),
            Reason::Sampled(Sampling::Frequency(hz)) => {
                write!(f, "its switches are samples (perf record -F {hz}): most are missing")
            }
            Reason::Sampled(Sampling::Period(nth)) => {
                write!(
                    f,
                    "its switches are every {nth}th (perf record -c {nth}): the others are missing"
                )
            }
            Reason::SwitchOutOnly => write!(
                f,
                "it has the switches away from the command's threads and none to them (perf record -a has both)"
            ),
            Reason::NotInherited => {
                write!(f, "threads that were created later are missing (perf record --no-inherit)")
            }
            Reason::MissingStart(turns) => write!(
                f,
                "{turns} {} an end and no beginning: switches are missing",
                if turns == 1 { "turn has" } else { "turns have" }
            ),
            Reason::Lost(lost) => write!(f, "{lost} more events were lost"),
            Reason::Unread(lines) => write!(
                f,
                "{lines} {} of an event and could not be read",
                if lines == 1 { "line or record tells" } else { "lines or records tell" }
            ),
            Reason::NoStates => write!(
                f,
                "states are not known of all threads that stopped running, so waits of preempted ones may be missing"
            ),
            Reason::Inferred(inferred) => write!(
                f,
                "{inferred} of its switches {} not recorded, but inferred from what followed",
                if inferred == 1 { "was" } else { "were" }
            ),
            Reason::SomeCpus => write!(f, "what ran on other CPUs than were asked for is missing"),
            Reason::NeverFromIdle { cpu, others } => {
                write!(f, "CPU {cpu}: no switch from idle was ever recorded")?;
                match others {
                    0 => Ok(()),
                    others => write!(f, ", nor of {others} more CPUs"),
                }
            }
            Reason::BeganLate { cpu, others } => {
                write!(f, "CPU {cpu}")?;
                match others {
                    0 => {}
                    others => write!(f, " and {others} more")?,
                }
                f.write_str(
                    ": the events begin late, as those of a ring buffer that keeps the newest only: what ran \
                     before the first of them was not seen",
                )
            }
            Reason::Filtered => f.write_str(
                "it has one command's threads only: what CPUs did between their turns, and who was \
                 in their way, was not seen (percid trace record without --only sees it, where the \
                 whole machine may be recorded)",
            ),
            Reason::Truncated => write!(
                f,
                "its end is missing: what recorded it was killed or had no room left, and about the \
                 last {} s before that had not been written yet",
                UNWRITTEN.as_secs_f64()
            ),
        }
    }
}

/// Writes sentences: the level, the numbers that it depends on, and why it is not better.
impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quality { switches, inferred, lost, cpus, online, .. } = self;
        let level = match self.level {
            QualityLevel::Good => "good",
            QualityLevel::Limited => "limited",
            QualityLevel::Insufficient => "INSUFFICIENT, so no advice is given",
        };
        let plural = if cpus.contains(['-', ',']) { "s" } else { "" };
        write!(f, "Quality: {level}. {switches} switches")?;
        if !cpus.is_empty() {
            write!(f, " on CPU{plural} {cpus}")?;
        }
        if cpu_list::count(cpus).is_some_and(|seen| seen < *online) {
            write!(f, " of {online}")?;
        }
        write!(f, ", {inferred} inferred; {lost} events known to be lost.")?;
        for Limitation { reason, .. } in &self.limitations {
            write!(f, " Note: {reason}.")?;
        }
        for remark in &self.remarks {
            write!(f, " Note: {}.", remark)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::State;

    fn switch(time: u64, cpu: Cpu, prev: Tid, next: Tid) -> Event {
        Event { time, cpu, what: What::Switch { prev, state: State(1), next } }
    }

    fn judged(events: Vec<Event>) -> Quality {
        Quality::from_trace(&Trace { events, ..Trace::default() })
    }

    fn quality_with(coverage: Coverage) -> Quality {
        let origin = Origin { coverage, ..Origin::default() };
        Quality::from_trace(&Trace { origin, events: whole(), ..Trace::default() })
    }

    /// Returns switches of two threads that alternate with the idle thread and with each other, on
    /// two CPUs.
    fn whole() -> Vec<Event> {
        let round = |n: u64| {
            let at = 100 * n;
            [
                switch(at, 0, IDLE, 7),
                switch(at + 5, 1, IDLE, 8),
                switch(at + 10, 0, 7, IDLE),
                switch(at + 20, 1, 8, 7),
                switch(at + 30, 1, 7, IDLE),
            ]
        };
        (0..50).flat_map(round).collect()
    }

    #[test]
    fn a_whole_recording_is_good() {
        let judged = judged(whole());
        assert_eq!((judged.level, judged.unbegun, judged.switches), (QualityLevel::Good, 0, 250));
        assert_eq!((judged.cpus.as_str(), &judged.limitations[..]), ("0-1", &[][..]));
        assert!(judged.to_string().contains("good. 250 switches on CPUs 0-1"), "{judged}");
    }

    /// The switches that `perf record -e sched:sched_switch -- CMD` records.
    #[test]
    fn switches_away_alone_permit_nothing() {
        let is_away = |event: &Event| !matches!(event.what, What::Switch { prev: IDLE, .. });
        let judged = judged(whole().into_iter().filter(is_away).collect());
        assert_eq!((judged.level, judged.permits_advice()), (QualityLevel::Insufficient, false));
        assert_eq!(judged.unbegun, 49, "{judged}");
    }

    #[test]
    fn other_threads_between_those_of_the_recorded_process_are_no_gaps() {
        let round = |n: u64| {
            let (at, other) = (100 * n, 1000 + n as Tid);
            [switch(at, 0, 20 + other, 7), switch(at + 10, 0, 7, other)]
        };
        let judged = judged((0..50).flat_map(round).collect());
        assert_eq!((judged.level, judged.unbegun), (QualityLevel::Good, 0), "{judged}");
    }

    #[test]
    fn half_of_the_switches_at_random_permit_nothing() {
        let mut random = percid_sim::random::Random::new(3);
        let judged = judged(whole().into_iter().filter(|_| random.below(2) == 0).collect());
        assert_eq!(judged.level, QualityLevel::Insufficient, "{judged}");
    }

    #[test]
    fn a_turn_that_was_inferred_from_its_end_has_no_beginning() {
        let round = |n: u64| [switch(10 * n, 0, IDLE, 7), switch(10 * n, 0, 7, IDLE)];
        let judged = judged((0..50).flat_map(round).collect());
        assert_eq!((judged.unbegun, judged.level), (50, QualityLevel::Insufficient));
    }

    #[test]
    fn a_recording_without_switches_permits_nothing() {
        let name = What::Member { thread: 7, process: 7 };
        let judged = judged(vec![Event { time: 1, cpu: 3, what: name }]);
        let none = Limitation { at_most: QualityLevel::Insufficient, reason: Reason::NoSwitch };
        assert_eq!(judged.limitations, [none]);
        assert!(judged.to_string().contains("no advice is given. 0 switches on CPU 3"), "{judged}");
    }

    #[test]
    fn what_the_format_says_of_the_recording_counts() {
        let level = |coverage| quality_with(coverage).level;
        let all = Coverage::default;
        assert_eq!(level(all()), QualityLevel::Good);
        let sampling = Some(Sampling::Frequency(100));
        assert_eq!(level(Coverage { sampling, ..all() }), QualityLevel::Insufficient);
        let sampling = Some(Sampling::Period(7));
        let judged = quality_with(Coverage { sampling, ..all() });
        assert!(judged.to_string().contains("every 7th"), "{judged}");
        assert_eq!(level(Coverage { away_only: true, ..all() }), QualityLevel::Insufficient);
        assert_eq!(level(Coverage { not_inherited: true, ..all() }), QualityLevel::Insufficient);
        assert_eq!(level(Coverage { some_cpus: true, ..all() }), QualityLevel::Limited);
        assert_eq!(level(Coverage { filtered: true, ..all() }), QualityLevel::Limited);
        assert_eq!(level(Coverage { unread: 1, ..all() }), QualityLevel::Limited);
        assert_eq!(level(Coverage { unread: 100, ..all() }), QualityLevel::Insufficient);
        let judged = quality_with(Coverage { unread: 2, ..all() });
        assert!(
            judged.to_string().contains("2 lines or records tell of an event and could not be"),
            "{judged}"
        );
        let judged = quality_with(Coverage { no_states: true, ..all() });
        assert_eq!(judged.level, QualityLevel::Limited);
        assert!(judged.to_string().contains("states are not known"), "{judged}");
        let judged = quality_with(Coverage { cut_off: true, ..all() });
        assert_eq!(judged.level, QualityLevel::Good);
        assert!(judged.to_string().contains("its end is missing"), "{judged}");
        assert_eq!(level(Coverage { inferred: 100, ..all() }), QualityLevel::Limited);
        assert_eq!(level(Coverage { inferred: 2, ..all() }), QualityLevel::Good);
    }

    #[test]
    fn a_cpu_whose_switches_from_idle_never_come_is_named() {
        let turn = |nth: u64, what| Event { time: 10 * nth, cpu: 1, what };
        let away = What::Switch { prev: 7, state: State::SLEEPING, next: IDLE };
        let came = What::Switch { prev: IDLE, state: State::RUNNABLE, next: 7 };
        let pattern = "CPU 1: no switch from idle was ever recorded.";
        let blind: Vec<Event> = (0..FEW).map(|nth| turn(nth, away)).collect();
        assert!(judged(blind.clone()).to_string().contains(pattern));
        let inferred = blind.iter().flat_map(|event| [Event { what: came, ..*event }, *event]);
        assert!(judged(inferred.collect()).to_string().contains(pattern), "inferred ones are none");
        let mut one_came = blind.clone();
        one_came.insert(1, turn(0, came));
        one_came[1].time += 5;
        assert!(!judged(one_came).to_string().contains(pattern));
        assert!(!judged(blind[1..].to_vec()).to_string().contains(pattern), "too few to tell");
    }

    #[test]
    fn cpus_without_events_are_counted_beside_the_others() {
        let origin = Origin { online_cpus: Some(8), ..Origin::default() };
        let of_more = Trace { origin, events: whole(), ..Trace::default() };
        let said = Quality::from_trace(&of_more).to_string();
        assert!(said.contains("on CPUs 0-1 of 8,"), "{said}");
        assert!(judged(whole()).to_string().contains("on CPUs 0-1,"));
    }

    #[test]
    fn lost_events_limit_and_many_forbid() {
        let level = |lost| {
            let origin = Origin { lost, ..Origin::default() };
            Quality::from_trace(&Trace { origin, events: whole(), ..Trace::default() }).level
        };
        assert_eq!(
            [level(0), level(1), level(100), level(u64::MAX)],
            [
                QualityLevel::Good,
                QualityLevel::Limited,
                QualityLevel::Insufficient,
                QualityLevel::Insufficient
            ]
        );
    }
}
