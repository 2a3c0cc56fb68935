//! Schedules in which it is known by construction what was lost, and why.

use percid_sim::run_control::RunControl;
use percid_trace::Trace;
use percid_trace::event::{Cpu, Event, IDLE, Stage, State, Tid, What};
use percid_trace::questions::{Loss, LossKind, Losses, LossesSettings, losses};
use percid_trace::window::Window;

const A: Tid = 11;
const B: Tid = 12;
const C: Tid = 13;

/// Nanoseconds in a millisecond: times below are in these.
const MS: u64 = 1_000_000;

type Happening = (u64, Cpu, What);

fn switch(prev: Tid, state: State, next: Tid) -> What {
    What::Switch { prev, state, next }
}

fn woken(thread: Tid, target: Cpu) -> What {
    What::Wakeup { thread, target, stage: Stage::Woken }
}

fn member(thread: Tid, process: Tid) -> Happening {
    (0, 0, What::Member { thread, process })
}

fn trace(happenings: &[Happening], bound: &[(Tid, &str)]) -> Trace {
    let mut trace = Trace::default();
    let begin = 7_000_000_000_000;
    for &(thread, cpus) in bound {
        let cpus = trace.texts.intern(cpus.as_bytes());
        trace.events.push(Event { time: begin, cpu: 0, what: What::Affinity { thread, cpus } });
    }
    let event = |&(ms, cpu, what): &Happening| Event { time: begin + ms * MS, cpu, what };
    trace.events.extend(happenings.iter().map(event));
    trace.events.sort_by_key(|event| (event.time, event.cpu));
    trace
}

fn ask(trace: &Trace, settings: &LossesSettings) -> Losses {
    losses(trace, settings, &RunControl::default())
}

fn found(happenings: &[Happening], bound: &[(Tid, &str)]) -> Vec<Loss> {
    let mut all = ask(&trace(happenings, bound), &LossesSettings::default()).all;
    all.sort_by_key(|loss| (loss.kind, loss.process));
    all
}

/// Returns kind, minimum, sum and maximum in milliseconds, and number of stays.
fn told(losses: &[Loss]) -> Vec<(LossKind, u64, u64, u64, u64)> {
    let told = |loss: &Loss| {
        let [least, lost, most] =
            [loss.at_least_ns, loss.lost_ns, loss.at_most_ns].map(|ns| ns / MS);
        (loss.kind, least, lost, most, loss.stays)
    };
    losses.iter().map(told).collect()
}

/// Two threads of one process take turns on CPU 0 for 100 ms, 10 ms each; CPU 1 idles.
fn turns_on_one_cpu() -> Vec<Happening> {
    let mut all = vec![
        member(A, A),
        member(B, A),
        (0, 0, switch(IDLE, State::RUNNABLE, A)),
        (0, 0, woken(B, 0)),
    ];
    for turn in 1..10 {
        let (prev, next) = if turn % 2 == 1 { (A, B) } else { (B, A) };
        all.push((10 * turn, 0, switch(prev, State::PREEMPTED, next)));
    }
    all.push((100, 0, switch(B, State::SLEEPING, A)));
    // CPU 1 has idled all the time.
    all.push((100, 1, switch(IDLE, State::RUNNABLE, C)));
    all
}

#[test]
fn threads_bound_to_one_cpu_lose_what_the_other_one_idles() {
    let losses = found(&turns_on_one_cpu(), &[(A, "0"), (B, "0")]);
    assert_eq!(told(&losses), [(LossKind::Bound, 100, 100, 100, 10)]);
    let [loss] = &losses[..] else { unreachable!("one loss") };
    assert_eq!((loss.allowed.as_deref(), loss.threads, loss.process), (Some("0"), 2, A));
    let first = loss.moments[0];
    assert_eq!((first.since, first.until, first.lost_ns), (0, 10 * MS, 10 * MS));
    assert_eq!((first.cpu, first.idle_cpu), (0, Some(1)));
}

#[test]
fn free_threads_lose_the_same_because_they_are_not_moved() {
    assert_eq!(
        told(&found(&turns_on_one_cpu(), &[])),
        [(LossKind::NotMigrated, 100, 100, 100, 10)]
    );
    let all = [(A, "0-1"), (B, "0-1")];
    assert_eq!(
        told(&found(&turns_on_one_cpu(), &all)),
        [(LossKind::NotMigrated, 100, 100, 100, 10)]
    );
}

/// Others have freed it, of which kernels tell nobody.
#[test]
fn a_thread_that_ran_where_it_may_not_is_free_from_then_on() {
    let freed = [
        member(A, A),
        member(B, A),
        (0, 0, switch(IDLE, State::RUNNABLE, A)),
        (0, 0, woken(B, 0)),
        (10, 1, switch(IDLE, State::RUNNABLE, B)),
        (20, 1, switch(B, State::SLEEPING, IDLE)),
        (30, 0, woken(B, 0)),
        (60, 1, switch(IDLE, State::RUNNABLE, C)),
        (70, 0, switch(A, State::SLEEPING, B)),
    ];
    let expected = [
        (LossKind::Bound, 10, 10, 10, 1),
        (LossKind::NotMigrated, 30, 30, 30, 1),
        (LossKind::SameProcess, 0, 0, 10, 1),
    ];
    assert_eq!(told(&found(&freed, &[(A, "0"), (B, "0")])), expected);
}

/// Three threads with one CPU; of the others one idles, or two do.
#[test]
fn no_more_is_lost_than_there_were_cpus() {
    let three = |idle: u32| {
        let mut all = vec![member(A, A), member(B, A), member(C, A)];
        all.extend([
            (0, 0, switch(IDLE, State::RUNNABLE, A)),
            (0, 0, woken(B, 0)),
            (0, 0, woken(C, 0)),
        ]);
        all.push((60, 0, switch(A, State::SLEEPING, B)));
        all.push((60, 0, switch(B, State::SLEEPING, C)));
        all.extend((1..=idle).map(|cpu| (60, cpu, switch(IDLE, State::RUNNABLE, 50 + cpu))));
        told(&found(&all, &[(A, "0"), (B, "0"), (C, "0")]))
    };
    assert_eq!(three(1), [(LossKind::Bound, 60, 60, 120, 2)]);
    assert_eq!(three(2), [(LossKind::Bound, 60, 120, 120, 2)]);
}

/// The negative control.
#[test]
fn where_every_thread_has_a_cpu_nothing_is_lost() {
    let apart = [
        member(A, A),
        member(B, A),
        (0, 0, switch(IDLE, State::RUNNABLE, A)),
        (0, 1, switch(IDLE, State::RUNNABLE, B)),
        (50, 1, switch(B, State::SLEEPING, IDLE)),
        (100, 0, switch(A, State::SLEEPING, IDLE)),
    ];
    assert_eq!(found(&apart, &[(A, "0"), (B, "1")]), []);
}

#[test]
fn where_no_cpu_idles_others_have_delayed_it() {
    let busy = |process_of_b| {
        vec![
            member(A, A),
            member(B, process_of_b),
            member(C, C),
            (0, 0, switch(IDLE, State::RUNNABLE, A)),
            (0, 1, switch(IDLE, State::RUNNABLE, C)),
            (10, 0, woken(B, 0)),
            (10, 0, switch(A, State::PREEMPTED, B)),
            (40, 0, switch(B, State::SLEEPING, A)),
            (50, 0, switch(A, State::SLEEPING, IDLE)),
            (50, 1, switch(C, State::SLEEPING, IDLE)),
        ]
    };
    let losses = found(&busy(B), &[]);
    assert_eq!(told(&losses), [(LossKind::OtherProcess, 0, 30, 30, 1)]);
    assert_eq!((losses[0].process, losses[0].by), (A, Some(B)));
    // The waiting thread's own process: the CPU has worked for it all the time.
    assert_eq!(told(&found(&busy(A), &[])), [(LossKind::SameProcess, 0, 0, 30, 1)]);
}

#[test]
fn a_thread_that_had_to_stop_while_its_cpu_idles_looks_like_a_quota() {
    let stopped = [
        member(A, A),
        (0, 0, switch(IDLE, State::RUNNABLE, A)),
        (20, 0, switch(A, State::PREEMPTED, IDLE)),
        (100, 0, switch(IDLE, State::RUNNABLE, A)),
        (110, 0, switch(A, State::SLEEPING, IDLE)),
    ];
    assert_eq!(told(&found(&stopped, &[])), [(LossKind::Throttled, 80, 80, 80, 1)]);
    let mut slept = stopped;
    slept[2].2 = switch(A, State::SLEEPING, IDLE);
    assert_eq!(found(&slept, &[]), [], "it did not want to run");
    let late = [&slept[..], &[(95, 1, woken(A, 0))]].concat();
    assert_eq!(told(&found(&late, &[])), [(LossKind::SlowWakeUp, 5, 5, 5, 1)]);
}

#[test]
fn an_idle_time_of_which_the_end_was_not_recorded_is_no_loss() {
    let mut unknown = turns_on_one_cpu();
    unknown.pop();
    // CPU 1 seems to idle, and then another thread leaves it that ran there unseen.
    unknown.extend([
        (0, 1, switch(C, State::SLEEPING, IDLE)),
        (100, 1, switch(50, State::SLEEPING, C)),
    ]);
    let losses = found(&unknown, &[(A, "0"), (B, "0")]);
    assert_eq!(told(&losses), [(LossKind::SameProcess, 0, 0, 100, 10)]);
}

/// A wait counts only if it is known that the thread waited until it ran.
#[test]
fn a_thread_that_never_runs_or_ran_unseen_has_not_waited() {
    let expected = told(&found(&turns_on_one_cpu(), &[]));
    let mut never = turns_on_one_cpu();
    never.push((50, 0, woken(50, 0)));
    assert_eq!(told(&found(&never, &[])), expected);
    // It is woken again, so it has run since.
    never.push((90, 0, woken(50, 0)));
    assert_eq!(told(&found(&never, &[])), expected);
    never.push((95, 0, switch(B, State::SLEEPING, 50)));
    let control = found(&never, &[]);
    assert!(control.iter().any(|loss| (loss.process, loss.lost_ns) == (50, 5 * MS)), "{control:?}");
}

#[test]
fn a_window_has_what_was_lost_in_it_and_processes_what_they_lost() {
    let trace = trace(&turns_on_one_cpu(), &[(A, "0"), (B, "0")]);
    let window = Window { from: 25 * MS, to: 75 * MS };
    let part = ask(&trace, &LossesSettings { window, ..LossesSettings::default() });
    let [loss] = &part.all[..] else { panic!("{part:?}") };
    assert_eq!((loss.lost_ns, part.from, part.to), (50 * MS, 25 * MS, 75 * MS));
    let of = |process| LossesSettings { processes: vec![process], ..LossesSettings::default() };
    assert_eq!(ask(&trace, &of(A)).all.len(), 1);
    assert_eq!(ask(&trace, &of(C)).all, []);
}

/// Two processes that are one program lose what two threads of one process do.
#[test]
fn processes_of_one_program_are_one() {
    let apart = |happenings: Vec<Happening>| -> Vec<Happening> {
        let own = |(time, cpu, what)| match what {
            What::Member { thread, .. } => (time, cpu, What::Member { thread, process: thread }),
            what => (time, cpu, what),
        };
        happenings.into_iter().map(own).collect()
    };
    // One in which CPU 1 idles, and one in which it does not.
    let idle = turns_on_one_cpu();
    let mut busy = turns_on_one_cpu();
    busy.pop();
    for happenings in [idle, busy] {
        let settings = LossesSettings {
            programs: [(A, A), (B, A)].into_iter().collect(),
            ..LossesSettings::default()
        };
        let own = trace(&apart(happenings.clone()), &[]);
        let (mut together, one) = (ask(&own, &settings).all, found(&happenings, &[]));
        together.sort_by_key(|loss| (loss.kind, loss.process));
        assert!(!one.is_empty());
        assert_eq!(told(&together), told(&one));
        let alone = ask(&own, &LossesSettings::default()).all;
        assert_ne!(told(&alone), told(&one), "the control");
    }
}
