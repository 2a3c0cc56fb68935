//! Traces of successive intervals during a recording, for observers of a schedule.

use std::collections::HashSet;
use std::mem;
use std::ops::ControlFlow;
use std::time::Duration;

use super::population::Population;
use super::situation::Situation;
use crate::event::{self, Event, IDLE, Tid, UNKNOWN, What};
use crate::gaps::{self, Course};
use crate::record::{Piece, Sink};
use crate::trace::{Origin, Trace};
use crate::window::Window;

/// The trace of one interval.
#[derive(Debug)]
pub struct Interval {
    /// The interval, preceded by the state that the [questions](crate::questions) need. That is:
    /// the living threads, what each CPU runs and since when, the waiting threads and since when
    /// they wait, and where each thread ran last. The state has the times at which it began, but
    /// its events did not happen: they are switches from and to [`UNKNOWN`](crate::event::UNKNOWN).
    /// It does not contain what a CPU ran before its current thread. `origin.lost` is the number of
    /// events lost in the interval.
    pub trace: Trace,
    /// The interval as a window of that trace. The results of all intervals for their windows add
    /// up to the result for the whole recording. A wait belongs to the interval in which it ends,
    /// in its whole length. Time on a CPU and in a queue belongs to the interval in which it
    /// passes, a turn to the one in which it begins. Until the first switch of a CPU it is not
    /// known what the CPU runs: that time is missing in the intervals before it.
    pub window: Window,
    /// Start of the interval, in nanoseconds since the recording began.
    pub since: u64,
    /// End of the interval. The window ends earlier if events were left out.
    pub until: u64,
    /// Number of events at its end that were left out because there were too many.
    pub left_out: u64,
}

/// A sink that makes a trace of each interval, and hands it out when all its events have arrived.
///
/// It stores the events of one interval, up to a maximum number, and the state of the living
/// threads. Events beyond that number are left out, but the state after them includes their
/// effects.
///
/// This example divides a whole trace, as one piece, into intervals of 10 ms:
///
/// ```
/// use std::ops::ControlFlow;
/// use std::time::Duration;
///
/// use percid_trace::record::{Piece, Sink};
/// use percid_trace::spool::Intervals;
///
/// let trace = percid_trace::read::read("tests/fixtures/nginx.parquet".as_ref())?;
/// let mut switches = Vec::new();
/// let mut intervals = Intervals::new(Duration::from_millis(10), 1 << 20, |interval| {
///     switches.push(interval.trace.events.len());
///     ControlFlow::Continue(())
/// });
/// intervals.begin(&trace.origin).expect("nothing refuses it");
/// let events = &trace.events[..];
/// let asked = events.last().map_or(0, |event| event.time);
/// let (texts, until) = (&trace.texts, u64::MAX);
/// let piece =
///     Piece { events, numa: &[], counted: &[], counters: 0, texts, lost: 0, asked, until };
/// _ = intervals.take(&piece).expect("nothing refuses it");
/// assert!(switches.len() > 1);
/// # Ok::<(), percid_trace::Error>(())
/// ```
#[derive(Debug)]
pub struct Intervals<F> {
    length: u64,
    most: usize,
    of_processes: bool,
    hand_out: F,
    origin: Origin,
    /// Number of events lost before this interval.
    lost: u64,
    begin: Option<u64>,
    state: CurrentState,
    /// The interval that has begun and has not ended.
    open: Open,
    is_over: bool,
}

/// Number of threads of other processes whose names are kept, if only some processes are recorded.
const STRANGERS: usize = 4096;

/// The state at the current time.
#[derive(Debug, Default)]
struct CurrentState {
    population: Population,
    situation: Situation,
    course: Course,
    known: HashSet<Tid>,
}

/// An interval that has not ended. Its times are those of the events.
#[derive(Debug, Default)]
struct Open {
    trace: Trace,
    from: u64,
    to: u64,
    /// Number of events of the trace that describe the state before the interval.
    before: usize,
    /// Time since which events were left out.
    cut: Option<u64>,
    left_out: u64,
}

impl<F: FnMut(Interval) -> ControlFlow<()>> Intervals<F> {
    /// Makes intervals of this length, each with at most `most` events, of 32 bytes. `hand_out`
    /// returns whether to go on. The recording thread calls it, and empties no buffers during the
    /// call.
    ///
    /// Beside the events of an interval, its trace has at most five for each living thread and one
    /// for each CPU, and names.
    pub fn new(length: Duration, most: usize, hand_out: F) -> Intervals<F> {
        Intervals {
            length: u64::try_from(length.as_nanos()).unwrap_or(u64::MAX).max(1),
            most,
            of_processes: false,
            hand_out,
            origin: Origin::default(),
            lost: 0,
            begin: None,
            state: CurrentState::default(),
            open: Open::default(),
            is_over: false,
        }
    }

    /// Set to `true` if only some processes are recorded. The recording then does not contain what
    /// a CPU does between their threads: this is treated as unknown, not as if the thread before
    /// went on.
    #[must_use]
    pub fn of_processes(self, of_processes: bool) -> Intervals<F> {
        Intervals { of_processes, ..self }
    }

    fn begin_at(&mut self, from: u64) {
        let mut trace = Trace { origin: self.origin.clone(), ..Trace::default() };
        self.state.tell(&mut trace);
        let before = trace.events.len();
        let to = from.saturating_add(self.length);
        self.open = Open { trace, from, to, before, cut: None, left_out: 0 };
    }

    fn take_event(&mut self, event: &Event, piece: &Piece<'_>) {
        while event.time >= self.open.to && !self.is_over {
            self.end_at(self.open.to, piece.lost);
        }
        // An event of an earlier interval, which arrived late, counts at the start of this one.
        let event = Event { time: event.time.max(self.open.from), ..*event };
        gaps::learn(&mut self.state.known, &event);
        if let Some(missing) = self.state.course.missing_before(&event, &self.state.known) {
            self.open.trace.origin.coverage.inferred += 1;
            self.state.situation.take(&missing, true);
            self.open.push(&missing, piece, self.most);
        }
        if let Some(first) = self.state.first_stranger(&event).filter(|_| self.of_processes) {
            self.state.situation.take(&first, false);
            self.open.push(&first, piece, self.most);
        }
        self.state.situation.take(&event, false);
        self.state.population.take(&event, piece.texts);
        self.open.push(&event, piece, self.most);
        if self.of_processes {
            if let Some(unseen) = self.state.lose_strangers(&event) {
                self.open.push(&unseen, piece, self.most);
            }
        }
        if let What::Switch { prev, state, .. } = event.what {
            if state.is_dead() {
                self.state.known.remove(&prev);
            }
        }
    }

    /// Ends the interval at a time, hands it out, and begins the next one at that time.
    fn end_at(&mut self, end: u64, lost: u64) {
        let begin = self.begin.unwrap_or(end);
        let mut open = mem::take(&mut self.open);
        open.trace.origin.lost = lost.saturating_sub(mem::replace(&mut self.lost, lost));
        self.is_over = (self.hand_out)(open.end_at(end, begin)).is_break();
        self.begin_at(end);
    }
}

impl CurrentState {
    /// Returns a switch to the thread that a CPU is first switched away from. If only some
    /// processes are recorded, the CPU need not have run that thread all the time.
    fn first_stranger(&self, event: &Event) -> Option<Event> {
        let What::Switch { prev, .. } = event.what else { return None };
        let is_first = !self.situation.knows(event.cpu) && !self.known.contains(&prev);
        let state = event::State::SLEEPING;
        let what = What::Switch { prev: UNKNOWN, state, next: prev };
        is_first.then_some(Event { what, ..*event })
    }

    /// Removes threads of other processes, if only some processes are recorded: their ends would
    /// not be recorded. If an event shows that a CPU runs such a thread, returns a switch to
    /// `UNKNOWN`.
    fn lose_strangers(&mut self, event: &Event) -> Option<Event> {
        let CurrentState { known, situation, population, .. } = self;
        let is_stranger = |tid: &Tid| !known.contains(tid);
        let mut unseen = None;
        match event.what {
            What::Switch { prev, next, .. } => {
                if is_stranger(&next) {
                    let state = event::State::SLEEPING;
                    let what = What::Switch { prev: next, state, next: UNKNOWN };
                    unseen = Some(Event { what, ..*event });
                }
                unseen.iter().for_each(|unseen| situation.take(unseen, false));
                [prev, next]
                    .iter()
                    .filter(|tid| is_stranger(tid))
                    .for_each(|tid| situation.forget(*tid));
            }
            What::Wakeup { thread, .. } | What::Migrate { thread, .. } if is_stranger(&thread) => {
                situation.forget(thread);
            }
            _ => {}
        }
        if population.len() > known.len() + STRANGERS {
            population.retain(|tid| known.contains(&tid));
        }
        unseen
    }

    /// Adds the state to a trace.
    fn tell(&self, trace: &mut Trace) {
        let situation = self.situation.tell();
        self.population.tell(trace);
        // The living threads come first.
        let first = situation.first().map(|event| event.time);
        for event in &mut trace.events {
            event.time = first.unwrap_or(event.time).min(event.time);
        }
        trace.events.extend(situation);
    }
}

impl Open {
    fn push(&mut self, event: &Event, piece: &Piece<'_>, most: usize) {
        if self.trace.events.len() - self.before >= most {
            self.cut = self.cut.or(Some(event.time));
            self.left_out += 1;
            return;
        }
        let mut event = *event;
        if let What::Name { name: text, .. } | What::Affinity { cpus: text, .. } = &mut event.what {
            *text = self.trace.texts.intern(piece.texts.get(*text).as_bytes());
        }
        self.trace.events.push(event);
    }

    fn end_at(self, end: u64, begin: u64) -> Interval {
        let Open { mut trace, from, cut, left_out, .. } = self;
        let to = cut.unwrap_or(end);
        // The length of a trace is that of its events: an event of the idle thread marks the end.
        let what = What::Member { thread: IDLE, process: IDLE };
        trace.events.push(Event { time: to, cpu: FIRST_CPU, what });
        let key = |event: &Event| (event.time, event.cpu);
        if !trace.events.is_sorted_by_key(key) {
            trace.events.sort_by_key(key);
        }
        let first = trace.events.first().map_or(from, |event| event.time);
        let since_first = |time: u64| time.saturating_sub(first);
        let window = Window { from: since_first(from), to: since_first(to) };
        Interval { trace, window, since: from - begin, until: end - begin, left_out }
    }
}

/// The CPU of events that did not happen on any CPU.
const FIRST_CPU: u32 = 0;

impl<F: FnMut(Interval) -> ControlFlow<()>> Sink for Intervals<F> {
    fn begin(&mut self, origin: &Origin) -> Result<(), String> {
        self.origin = origin.clone();
        Ok(())
    }

    fn take(&mut self, piece: &Piece<'_>) -> Result<ControlFlow<()>, String> {
        if self.begin.is_none() {
            let Some(first) = piece.events.first() else { return Ok(ControlFlow::Continue(())) };
            self.begin = Some(first.time);
            self.begin_at(first.time);
        }
        for event in piece.events {
            self.take_event(event, piece);
            if self.is_over {
                return Ok(ControlFlow::Break(()));
            }
        }
        let is_last = piece.until == u64::MAX;
        let until = if is_last { piece.asked } else { piece.until };
        while until >= self.open.to && !self.is_over {
            self.end_at(self.open.to, piece.lost);
        }
        let last = piece.events.last().map_or(0, |event| event.time.saturating_add(1));
        let end = until.max(last);
        if is_last && !self.is_over && end > self.open.from {
            self.end_at(end, piece.lost);
        }
        Ok(if self.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
