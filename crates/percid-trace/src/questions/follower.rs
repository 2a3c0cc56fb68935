//! A follower of a recording, event by event. It determines what each CPU runs, which threads wait
//! for a CPU, and since when.
//!
//! A wait counts only if its beginning and its end were recorded. If switches do not fit together,
//! the time between them is unknown. The same holds if a switch was inferred when the recording was
//! made (see [`crate::gaps`]).

use std::sync::atomic::Ordering::Relaxed;

use percid_sim::run_control::RunControl;

use super::recent_turns::{Current, RecentTurns};
use super::turn::{Cause, Stay, Turn, Wait, Who};
use super::wakeups::Wakeups;
use crate::event::{Cpu, Event, IDLE, Stage, State, Tid, UNKNOWN, What};
use crate::filtered::Followed;
use crate::gaps;
use crate::threads::{ThreadNumber, Threads};
use crate::trace::Trace;
use crate::window::Window;

/// A receiver of what a [`Follower`] finds.
pub(super) trait Listener {
    /// Receives the turn of a CPU that ends now.
    fn turn(&mut self, _scene: &Scene, _turn: Turn) {}
    /// Receives the beginning of a turn of a CPU.
    fn begin(&mut self, _scene: &Scene, _now: u64, _cpu: Cpu, _who: Who) {}
    /// Receives a preemption: a thread that could have gone on stops, and `_by` runs in its place.
    fn preempt(&mut self, _scene: &Scene, _now: u64, _thread: ThreadNumber, _by: Who) {}
    /// Receives a thread that enters the queue of a CPU.
    fn enqueue(&mut self, _scene: &Scene, _now: u64, _thread: ThreadNumber, _cpu: Cpu) {}
    /// Receives the stay of a thread in a queue that ends now.
    fn dequeue(&mut self, _scene: &Scene, _stay: Stay) {}
    /// Receives a thread that has run unseen, or is gone. Its stays in queues since it ran last are
    /// not part of a wait.
    fn doubt(&mut self, _thread: ThreadNumber) {}
    /// Receives the wait of a thread that runs now. Its stays in queues were passed before.
    fn wait(&mut self, _scene: &Scene, _wait: &Wait) {}
}

/// The threads and recent turns that are known at a time.
#[derive(Debug, Default)]
pub(super) struct Scene {
    pub(super) threads: Threads,
    pub(super) recent: RecentTurns,
}

/// The activity of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Unknown,
    Running(Cpu),
    Sleeping,
    Ready(Ready),
}

/// The state of a thread that waits for a CPU, or is about to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ready {
    cause: Cause,
    waking: Option<u64>,
    queued: Option<u64>,
    /// The CPU in whose queue it is. `since` is the time at which it entered that queue.
    queue: Cpu,
    since: u64,
}

pub(super) struct Follower<'t> {
    events: &'t [Event],
    begin: u64,
    now: u64,
    scene: Scene,
    doing: Vec<Doing>,
    /// `true` if the recording contains the times at which woken threads enter a queue.
    tells_queued: bool,
    /// `true` if some switches were inferred.
    has_inferred: bool,
    /// The threads that were recorded completely.
    followed: Followed,
    /// The CPUs about which nothing is known before their first switch.
    late: Vec<Cpu>,
    /// The end of the window, if the recording has events after it.
    end: Option<u64>,
}

/// Number of events between two checks of whether to stop.
const AT_ONCE: usize = 4096;

impl<'t> Follower<'t> {
    /// Returns a follower at the beginning of a trace, for all events before the end of a window.
    pub(super) fn new(trace: &'t Trace, window: &Window) -> Follower<'t> {
        let begin = trace.events.first().map_or(0, |event| event.time);
        let end = begin.saturating_add(window.to);
        let events = trace.events.partition_point(|event| event.time < end);
        let threads = Threads::there_before(&trace.events);
        Follower {
            events: &trace.events[..events],
            begin,
            now: 0,
            scene: Scene { threads, recent: RecentTurns::default() },
            doing: Vec::new(),
            tells_queued: Wakeups::from_trace(trace).woken,
            has_inferred: trace.origin.coverage.inferred > 0,
            followed: Followed::from_trace(trace),
            late: trace.origin.late_cpus.clone(),
            end: (events < trace.events.len()).then_some(window.to),
        }
    }

    /// Follows the recording until its end or until it is stopped. Returns `true` if it reached the
    /// end.
    pub(super) fn follow(&mut self, listener: &mut impl Listener, progress: &RunControl) -> bool {
        let events = self.events;
        let is_whole = (0..events.len()).step_by(AT_ONCE).all(|first| {
            if progress.stop.load(Relaxed) {
                return false;
            }
            let last = events.len().min(first + AT_ONCE);
            for place in first..last {
                self.advance(&events[place], events.get(place + 1), listener);
            }
            progress.done.fetch_add((last - first) as u64, Relaxed);
            true
        });
        if !is_whole {
            self.end = None;
        }
        self.finish(listener);
        is_whole
    }

    /// Returns the known threads.
    pub(super) fn into_threads(self) -> Threads {
        self.scene.threads
    }

    fn advance(&mut self, event: &Event, after: Option<&Event>, listener: &mut impl Listener) {
        self.now = event.time.saturating_sub(self.begin).max(self.now);
        let Some(event) = &self.followed.seen(event) else { return };
        match event.what {
            What::Switch { next, .. } if self.is_inferred(event, after) => {
                self.find_running(event.cpu, next, listener);
            }
            What::Switch { prev, state, next } => self.switch(event, (prev, state), next, listener),
            What::Wakeup { thread, target, stage } => self.wake(thread, target, stage, listener),
            What::Migrate { thread, to, .. } => self.migrate(thread, to, listener),
            What::Fork { child: tid, .. } => self.forget(tid, listener),
            What::Exec { thread, old } if thread != old => self.forget(thread, listener),
            _ => {}
        }
        self.scene.threads.take(&event.what);
    }

    fn switch(
        &mut self,
        event: &Event,
        (prev, state): (Tid, State),
        next: Tid,
        listener: &mut impl Listener,
    ) {
        let cpu = event.cpu;
        let (prev, next) = (self.who(prev), self.who(next));
        let before = self.scene.recent.current(cpu);
        if let Some(before) = before.filter(|before| before.who != prev) {
            self.lose_sight(cpu, before.who);
        }
        let turn = self.turn(cpu, prev, before);
        self.scene.recent.switch(cpu, turn, Current { who: next, since: self.now });
        if let Some(turn) = turn {
            listener.turn(&self.scene, turn);
        }
        self.leave(cpu, prev, (state, next), listener);
        self.arrive(cpu, next, listener);
        listener.begin(&self.scene, self.now, cpu, next);
    }

    /// Returns `true` if a switch was inferred from the event after it. Such a switch is directly
    /// before that event, which shows what runs.
    fn is_inferred(&self, event: &Event, after: Option<&Event>) -> bool {
        let What::Switch { next, state: State::RUNNABLE, .. } = event.what else { return false };
        let shows = |after: &Event| {
            (after.time, after.cpu) == (event.time, event.cpu) && gaps::current(after) == Some(next)
        };
        self.has_inferred && after.is_some_and(shows)
    }

    /// Takes an inferred switch: the CPU runs `next`, and it is not known since when.
    fn find_running(&mut self, cpu: Cpu, next: Tid, listener: &mut impl Listener) {
        let next = self.who(next);
        if let Some(before) = self.scene.recent.current(cpu) {
            self.lose_sight(cpu, before.who);
        }
        self.scene.recent.switch(cpu, None, Current { who: next, since: self.now });
        if let Who::Thread(thread) = next {
            if let Doing::Ready(ready) = self.doing(next) {
                self.end_stay(thread, ready, listener);
                listener.doubt(thread);
            }
            self.set_doing(thread, Doing::Running(cpu));
        }
        listener.begin(&self.scene, self.now, cpu, next);
    }

    /// Returns the turn that ends, if its beginning is known. The thread that a CPU first switches
    /// away from ran there when the recording began, unless it was seen elsewhere or created since,
    /// or the CPU's events begin late.
    fn turn(&self, cpu: Cpu, prev: Who, before: Option<Current>) -> Option<Turn> {
        let since = match before {
            Some(before) if before.who == prev => before.since,
            Some(_) => return None,
            None if self.is_unseen(cpu) => return None,
            None if self.doing(prev) == Doing::Unknown && !self.is_new(prev) => 0,
            None => return None,
        };
        Some(Turn { who: prev, cpu, since, until: self.now })
    }

    /// Returns `true` if nothing was recorded on a CPU until now.
    fn is_unseen(&self, cpu: Cpu) -> bool {
        self.late.contains(&cpu) && self.scene.recent.current(cpu).is_none()
    }

    /// Returns `true` if the recording shows how a thread was created.
    fn is_new(&self, who: Who) -> bool {
        matches!(who, Who::Thread(thread) if self.scene.threads.get(thread).is_new)
    }

    /// Takes a gap: the thread that ran on a CPU, according to the recording, has left it at an
    /// unknown time.
    fn lose_sight(&mut self, cpu: Cpu, before: Who) {
        if let Who::Thread(thread) = before {
            if self.doing(before) == Doing::Running(cpu) {
                self.set_doing(thread, Doing::Unknown);
            }
        }
    }

    /// Sets the activity of a thread to unknown. If another thread had this number before and its
    /// end was not recorded, that one is gone.
    fn forget(&mut self, tid: Tid, listener: &mut impl Listener) {
        let Some(thread) = self.scene.threads.find(tid) else { return };
        if let Doing::Ready(ready) = self.doing(Who::Thread(thread)) {
            self.end_stay(thread, ready, listener);
            listener.doubt(thread);
        }
        self.set_doing(thread, Doing::Unknown);
    }

    fn leave(
        &mut self,
        cpu: Cpu,
        prev: Who,
        (state, next): (State, Who),
        listener: &mut impl Listener,
    ) {
        let Who::Thread(thread) = prev else { return };
        match self.doing(prev) {
            // Its switch to the other CPU came first: events of one time are in the order of CPUs.
            Doing::Running(other) if other != cpu => return,
            // It ran unseen while it seemed to wait.
            Doing::Ready(ready) => {
                self.end_stay(thread, ready, listener);
                listener.doubt(thread);
            }
            _ => {}
        }
        let ready = Ready {
            cause: Cause::Preempted,
            waking: None,
            queued: Some(self.now),
            queue: cpu,
            since: self.now,
        };
        if state.is_runnable() {
            listener.preempt(&self.scene, self.now, thread, next);
            self.begin_stay(thread, ready, listener);
        } else {
            self.set_doing(thread, Doing::Sleeping);
        }
    }

    fn arrive(&mut self, cpu: Cpu, next: Who, listener: &mut impl Listener) {
        let Who::Thread(thread) = next else { return };
        if let Doing::Ready(ready) = self.doing(next) {
            self.end_stay(thread, ready, listener);
            if let Some(queued) = ready.queued.or(ready.waking) {
                let Ready { cause, waking, queue, .. } = ready;
                let wait = Wait { thread, cause, waking, queued, until: self.now, queue, cpu };
                listener.wait(&self.scene, &wait);
            }
        }
        self.set_doing(thread, Doing::Running(cpu));
    }

    fn wake(&mut self, tid: Tid, target: Cpu, stage: Stage, listener: &mut impl Listener) {
        let Some(thread) = self.scene.threads.meet(tid) else { return };
        if self.is_unseen(target) {
            return self.forget(tid, listener);
        }
        let now = self.now;
        let (waking, queued) = match stage {
            Stage::Waking => (Some(now), None),
            Stage::Woken | Stage::New => (None, Some(now)),
        };
        match (self.doing(Who::Thread(thread)), queued) {
            (Doing::Sleeping | Doing::Unknown, _) => {
                let cause = Cause::Woken;
                let ready = Ready { cause, waking, queued, queue: target, since: now };
                self.begin_stay(thread, ready, listener);
            }
            // The waking thread has chosen a queue.
            (Doing::Ready(ready @ Ready { queued: None, .. }), Some(_)) => {
                self.end_stay(thread, ready, listener);
                let ready = Ready { queued, queue: target, since: now, ..ready };
                self.begin_stay(thread, ready, listener);
            }
            // A thread that waits for a CPU cannot be woken again: it has run in between, which was
            // not recorded. Or it was preempted when it was about to sleep, and is woken now.
            (Doing::Ready(ready), _) => {
                self.end_stay(thread, ready, listener);
                listener.doubt(thread);
                let cause = Cause::Woken;
                let ready = Ready { cause, waking, queued, queue: target, since: now };
                self.begin_stay(thread, ready, listener);
            }
            // A thread that runs need not be woken.
            (Doing::Running(_), _) => {}
        }
    }

    fn migrate(&mut self, tid: Tid, to: Cpu, listener: &mut impl Listener) {
        if self.is_unseen(to) {
            return self.forget(tid, listener);
        }
        let Some(thread) = self.scene.threads.meet(tid) else { return };
        if let Doing::Ready(ready) = self.doing(Who::Thread(thread)) {
            self.end_stay(thread, ready, listener);
            self.begin_stay(thread, Ready { queue: to, since: self.now, ..ready }, listener);
        }
    }

    fn begin_stay(&mut self, thread: ThreadNumber, ready: Ready, listener: &mut impl Listener) {
        self.set_doing(thread, Doing::Ready(ready));
        if self.is_in_queue(ready) {
            listener.enqueue(&self.scene, self.now, thread, ready.queue);
        }
    }

    fn end_stay(&mut self, thread: ThreadNumber, ready: Ready, listener: &mut impl Listener) {
        if self.is_in_queue(ready) {
            let (cpu, since) = (ready.queue, ready.since);
            listener.dequeue(&self.scene, Stay { thread, cpu, since, until: self.now });
        }
    }

    /// Returns `true` if a thread is in a queue. If the recording contains the times at which woken
    /// threads enter a queue, a thread that is about to be woken is in none yet.
    fn is_in_queue(&self, ready: Ready) -> bool {
        ready.queued.is_some() || !self.tells_queued
    }

    /// Ends the turns that last until the end of the recording, and the stays in queues. The waits
    /// do not count.
    fn finish(&mut self, listener: &mut impl Listener) {
        self.now = self.end.unwrap_or(self.now).max(self.now);
        for cpu in 0..self.scene.recent.cpus() {
            if let Some(Current { who, since }) = self.scene.recent.current(cpu) {
                listener.turn(&self.scene, Turn { who, cpu, since, until: self.now });
            }
        }
        for thread in 0..self.doing.len() as ThreadNumber {
            if let Doing::Ready(ready) = self.doing(Who::Thread(thread)) {
                self.end_stay(thread, ready, listener);
            }
        }
    }

    fn who(&mut self, tid: Tid) -> Who {
        match tid {
            IDLE => Who::Idle,
            UNKNOWN => Who::Unknown,
            _ => self.scene.threads.meet(tid).map_or(Who::Unknown, Who::Thread),
        }
    }

    fn doing(&self, who: Who) -> Doing {
        match who {
            Who::Thread(thread) => {
                self.doing.get(thread as usize).copied().unwrap_or(Doing::Unknown)
            }
            Who::Idle | Who::Unknown => Doing::Unknown,
        }
    }

    fn set_doing(&mut self, thread: ThreadNumber, doing: Doing) {
        let place = thread as usize;
        if place >= self.doing.len() {
            self.doing.resize(place + 1, Doing::Unknown);
        }
        self.doing[place] = doing;
    }
}
