//! Questions about schedules whose answers are known by construction.

use percid_sim::run_control::RunControl;
use percid_trace::Trace;
use percid_trace::event::{Cpu, Event, IDLE, Shares, Stage, State, Tid, What};
use percid_trace::questions::{Latency, LatencySettings, ThreadLatency, Who, latency};
use percid_trace::threads::Threads;
use percid_trace::window::Window;

const A: Tid = 11;
const B: Tid = 12;
const C: Tid = 13;

/// Microseconds from the first event on.
const US: u64 = 1000;

/// Happens at so many microseconds, on a CPU.
type Happening = (u64, Cpu, What);

fn switch(prev: Tid, state: State, next: Tid) -> What {
    What::Switch { prev, state, next }
}

fn wakeup(thread: Tid, target: Cpu, stage: Stage) -> What {
    What::Wakeup { thread, target, stage }
}

fn trace(happenings: &[Happening]) -> Trace {
    let begin = 7_000_000_000_000;
    let event = |&(us, cpu, what): &Happening| Event { time: begin + us * US, cpu, what };
    let mut events: Vec<Event> = happenings.iter().map(event).collect();
    events.sort_by_key(|event| (event.time, event.cpu));
    Trace { events, ..Trace::default() }
}

/// A runs on CPU 0 and is preempted by B, which was woken; A then waits until B sleeps. C is woken on
/// CPU 1 from idle.
fn known() -> Vec<Happening> {
    let member = |thread, process| What::Member { thread, process };
    vec![
        (0, 0, member(A, A)),
        (0, 0, member(B, A)),
        (0, 0, member(C, C)),
        (0, 1, switch(C, State::SLEEPING, IDLE)),
        (1, 0, switch(B, State::SLEEPING, A)),
        (100, 1, wakeup(B, 0, Stage::Waking)),
        (103, 1, wakeup(B, 0, Stage::Woken)),
        (150, 0, switch(A, State::PREEMPTED, B)),
        (200, 0, wakeup(C, 1, Stage::Waking)),
        (202, 0, wakeup(C, 1, Stage::Woken)),
        (260, 1, switch(IDLE, State::RUNNABLE, C)),
        (900, 0, switch(B, State::SLEEPING, A)),
        (950, 0, switch(A, State::SLEEPING, IDLE)),
        (990, 1, switch(C, State::SLEEPING, IDLE)),
    ]
}

fn asked(happenings: &[Happening], window: Window) -> Latency {
    let settings = LatencySettings { window, worst: 10, ..LatencySettings::default() };
    latency(&trace(happenings), &settings, &RunControl::default())
}

fn of(found: &Latency, tid: Tid) -> ThreadLatency {
    let all = found.threads.iter().filter(|(thread, _)| found.known.get(*thread).tid == tid);
    all.map(|(_, waits)| waits.clone()).next().unwrap_or_default()
}

/// How often, how long altogether and at most, in microseconds: run queue, and wake-up.
fn told(waits: &ThreadLatency) -> [(u64, u64, u64); 2] {
    [&waits.run_queue, &waits.wake_up]
        .map(|times| (times.count, times.sum_ns / US, times.max_ns / US))
}

#[test]
fn waits_are_those_that_were_made() {
    let found = asked(&known(), Window::default());
    assert_eq!(told(&of(&found, A)), [(1, 750, 750), (0, 0, 0)], "preempted from 150 to 900");
    assert_eq!(told(&of(&found, B)), [(1, 47, 47), (1, 50, 50)], "woken at 100, ready at 103");
    assert_eq!(told(&of(&found, C)), [(1, 58, 58), (1, 60, 60)], "woken at 200 from idle");
    assert_eq!((of(&found, A).preempted, of(&found, A).preempted_ns), (1, 750 * US));
    assert_eq!(of(&found, B).preempted, 0);
}

fn numbers(known: &Threads, ran: &[(Who, u64)]) -> Vec<(Tid, u64)> {
    let number = |who| match who {
        Who::Thread(thread) => known.get(thread).tid,
        Who::Idle => IDLE,
        Who::Unknown => Tid::MAX,
    };
    ran.iter().map(|&(who, ns)| (number(who), ns / US)).collect()
}

#[test]
fn the_longest_waits_tell_what_ran_instead() {
    let found = asked(&known(), Window::default());
    let worst: Vec<(Tid, u64, u64, bool)> = found
        .worst
        .iter()
        .map(|wait| {
            (found.known.get(wait.thread).tid, wait.since / US, wait.ns / US, wait.preempted)
        })
        .collect();
    assert_eq!(worst, [(A, 150, 750, true), (C, 200, 60, false), (B, 100, 50, false)]);
    let instead = [0, 1, 2].map(|nth| numbers(&found.known, &found.worst[nth].instead));
    assert_eq!(instead, [vec![(B, 750)], vec![(IDLE, 60)], vec![(A, 50)]]);
}

/// The control: without the event that begins a wait, it is not made up.
#[test]
fn a_wait_without_its_beginning_does_not_count() {
    let is_of_b = |what: &What| matches!(what, What::Wakeup { thread: B, .. });
    let mut lacking = known();
    lacking.retain(|(_, _, what)| !is_of_b(what));
    let found = asked(&lacking, Window::default());
    assert_eq!(told(&of(&found, B)), [(0, 0, 0); 2]);
    assert_eq!(told(&of(&found, A)), [(1, 750, 750), (0, 0, 0)]);
    // The switch away from A is missing: it has left CPU 0 at some time.
    let mut lacking = known();
    lacking.retain(|(us, ..)| *us != 150);
    let found = asked(&lacking, Window::default());
    assert_eq!(told(&of(&found, A)), [(0, 0, 0); 2]);
}

#[test]
fn without_wake_ups_there_are_waits_after_preemption_only() {
    let mut lacking = known();
    lacking.retain(|(_, _, what)| !matches!(what, What::Wakeup { .. }));
    let found = asked(&lacking, Window::default());
    assert!(!found.wakeups.waking && !found.wakeups.woken);
    assert_eq!(found.threads.len(), 1);
    assert_eq!(told(&of(&found, A)), [(1, 750, 750), (0, 0, 0)]);
    // Only the waking: the run-queue time begins with it.
    let mut waking = known();
    waking.retain(|(_, _, what)| !matches!(what, What::Wakeup { stage: Stage::Woken, .. }));
    let found = asked(&waking, Window::default());
    assert_eq!(told(&of(&found, B)), [(1, 50, 50); 2]);
}

#[test]
fn a_window_has_the_waits_that_end_in_it_at_their_whole_length() {
    let found = asked(&known(), Window { from: 890 * US, to: 910 * US });
    assert_eq!(found.threads.len(), 1);
    assert_eq!(told(&of(&found, A)), [(1, 750, 750), (0, 0, 0)]);
    let before = asked(&known(), Window { from: 0, to: 900 * US });
    assert_eq!(told(&of(&before, A)), [(0, 0, 0); 2], "it has not ended yet");
}

#[test]
fn only_the_processes_that_were_asked_for_count() {
    let settings = LatencySettings { processes: vec![C], worst: 10, ..LatencySettings::default() };
    let found = latency(&trace(&known()), &settings, &RunControl::default());
    assert_eq!(found.threads.len(), 1);
    assert_eq!(told(&of(&found, C)), [(1, 58, 58), (1, 60, 60)]);
    assert_eq!(found.worst.len(), 1);
}

#[test]
fn a_thread_whose_number_is_used_again_has_not_waited_since() {
    let again = [
        (0, 0, switch(IDLE, State::RUNNABLE, A)),
        (10, 0, switch(A, State::PREEMPTED, B)),
        (500, 0, What::Fork { parent: B, child: A, shares: Shares::Nothing }),
        (505, 0, wakeup(A, 0, Stage::New)),
        (600, 0, switch(B, State::SLEEPING, A)),
    ];
    let found = asked(&again, Window::default());
    let waits: Vec<_> = found.threads.iter().map(|(_, waits)| told(waits)).collect();
    assert_eq!(waits, [[(1, 95, 95), (1, 95, 95)]]);
}
