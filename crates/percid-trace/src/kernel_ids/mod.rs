//! Compares the concurrency IDs that the kernel gave the threads of a process with those that the
//! policy of the kernel's generation gives on the same schedule.
//!
//! A trace suffices if it shows the process from the start of its program on, with the IDs
//! (`rseq:rseq_update`), timer ticks, migrations, and threads that are created and end, and if no
//! event was lost. It does not show the following:
//!
//! - **A switch away from the idle thread** is missing at times in traces of some kernels. A thread
//!   that does something on a CPU runs there, so the switch is inferred from the first such event;
//!   mostly that is its way back to user space.
//! - **If a tick led to a scan.** Every tick checks whether a scan is due, and the ticked thread
//!   scans when it goes back to user space, perhaps after a sleep or in its next turn. On that way
//!   it reports its ID. So a tick that comes when a scan is due is placed before the next ID of
//!   that thread, with the time since the tick. If the thread was switched away from in between, it
//!   may have scanned before that.
//! - **When a thread that is moved arrives.** A migration is traced when the CPU is chosen. If a
//!   wake-up chose it, the chosen CPU may queue the thread a little later, after `sched_wakeup`,
//!   and only then reads its ID.
//! - **When a thread leaves the memory** that it shared, as after `vfork`, to replace its program.
//!   It gives its ID back when it requests that. The trace shows this a tenth of a millisecond
//!   later, at the end of the call. The thread rarely does anything else before, so it is taken to
//!   leave as soon as it runs. It is counted until its creator has been woken. It has no ID to
//!   report, so if the switch to it is missing too, the comparison may find differences that do not
//!   exist.
//! - **The CPUs that a thread may use**, if it asked for several changes within a tenth of a second.
//!   The last one is taken for all.
//! - **When a thread that ends gives up its ID, and when a new one is counted.** That is shortly
//!   before the trace shows it.
//! - **An ID that has not changed**, on Linux 6.19 and later, where `rseq_update` reports changes
//!   only. A thread without a report has the ID that it reported last, which is compared when it
//!   goes to sleep. The trace itself shows which kind it is.
//! - **The order of two CPUs.** A switch is traced before the thread takes its ID, and a
//!   migration before the thread arrives. Another CPU may go on in between, for example if a
//!   hypervisor stops a CPU. It may then find another ID free than the times suggest. So a
//!   difference counts only if no other possible order would have given another ID by then;
//!   otherwise the comparison ends there.

mod dispatch;
mod insufficient;
mod reorderings;
mod reporting;
mod translation;

use std::sync::atomic::Ordering::Relaxed;

use percid_rules::Generation;
use percid_sim::conformance::{self, Conformance, Recording};
use percid_sim::explanation::{Behaviour, Explanation};
use percid_sim::policies::PolicySpec;
use percid_sim::run_control::RunControl;

use crate::event::Tid;
use crate::trace::Trace;
use dispatch::{Translated, translate_all};
pub use insufficient::Insufficient;

/// Compares the IDs of a process with the policy of the trace's kernel. If the process started
/// several programs, the last one is meant.
///
/// # Errors
///
/// Why the trace does not suffice.
pub fn compare(trace: &Trace, process: Tid) -> Result<Conformance, Insufficient> {
    let release = trace.origin.release.as_ref().ok_or(Insufficient::NoRelease)?;
    match conformance::generation(release) {
        Some(entry) => compare_under(trace, process, entry),
        None => Err(Insufficient::NoGeneration(release.clone())),
    }
}

/// Compares the IDs of a process with any policy.
///
/// # Errors
///
/// Why the trace does not suffice.
pub fn compare_under(
    trace: &Trace,
    process: Tid,
    policy: &PolicySpec,
) -> Result<Conformance, Insufficient> {
    let (recording, slacks) = translated(trace, process)?;
    Ok(recording.compare_with(policy, reorderings::others(&recording, &slacks)))
}

/// Returns the steps of a process since it started its last program, in the order that is most
/// likely.
///
/// # Errors
///
/// The trace does not suffice.
pub fn recording(trace: &Trace, process: Tid) -> Result<Recording, Insufficient> {
    translated(trace, process).map(|(recording, _)| recording)
}

/// The recording, and when else each of its steps may have happened.
fn translated(trace: &Trace, process: Tid) -> Result<Translated, Insufficient> {
    let translated = translate_all(trace, &[process], &RunControl::default());
    translated.into_iter().next().unwrap_or(Err(Insufficient::BeganBefore(process)))
}

/// The result of the comparison for many processes.
#[derive(Debug, Default)]
pub struct Found {
    /// The behaviour with whose policy they were compared; `None` if the trace's kernel has no IDs.
    pub behaviour: Option<Behaviour>,
    /// The behaviour that explains the IDs of all processes.
    pub explanation: Explanation,
    /// The result for each process, in their order. If the comparison was stopped, the processes
    /// after that are missing.
    pub processes: Vec<Result<Conformance, Insufficient>>,
}

/// Compares the IDs of many processes with the policy that explains them best, in one pass over the
/// trace. The result for each is that of [`compare_under`]. The release is a hint: its policy is
/// taken if it explains the IDs as well as any. Adds processed events to `progress`.
pub fn compare_all(trace: &Trace, processes: &[Tid], progress: &RunControl) -> Found {
    let translated = translate_all(trace, processes, progress);
    let goes_on = |_: &&Result<Translated, Insufficient>| !progress.stop.load(Relaxed);
    let compare = |behaviour: Behaviour| -> Vec<Result<Conformance, Insufficient>> {
        let compare = |(recording, slacks): &Translated| {
            recording.compare_with(behaviour.policy(), reorderings::others(recording, slacks))
        };
        let all = translated.iter().take_while(goes_on);
        all.map(|translated| translated.as_ref().map(compare).map_err(Clone::clone)).collect()
    };
    let hinted = trace.origin.release.as_deref().and_then(Generation::hinted_by);
    let hinted = hinted.map(Behaviour::Of);
    // With other policies the order of the trace will do, as long as that of the hint explains
    // everything.
    let under_hint = hinted.map(compare).unwrap_or_default();
    let explanation = explain(|behaviour| match behaviour {
        _ if Some(behaviour) == hinted => total(&under_hint),
        _ => in_order(&translated, behaviour, progress),
    });
    if hinted.is_some_and(|hinted| explanation.candidates().contains(&hinted)) {
        return Found { behaviour: hinted, explanation, processes: under_hint };
    }
    let explanation = explain(|behaviour| total(&compare(behaviour)));
    match explanation.candidates().first().copied().or(hinted) {
        Some(best) => Found { behaviour: Some(best), explanation, processes: compare(best) },
        None => {
            let release = trace.origin.release.clone();
            let none = release.map_or(Insufficient::NoRelease, Insufficient::NoGeneration);
            let missing = translated
                .into_iter()
                .map(|translated| Err(translated.err().unwrap_or(none.clone())));
            Found { behaviour: None, explanation, processes: missing.collect() }
        }
    }
}

fn explain(count: impl Fn(Behaviour) -> (usize, usize)) -> Explanation {
    let mut explanation = Explanation::default();
    explanation.add(count);
    explanation
}

/// Returns how many IDs were compared, and how many differ.
fn total(found: &[Result<Conformance, Insufficient>]) -> (usize, usize) {
    let found = found.iter().flatten();
    found.fold((0, 0), |(compared, different), comparison| {
        (compared + comparison.compared, different + comparison.differences.len())
    })
}

/// The same in the order in which the trace has everything.
fn in_order(
    translated: &[Result<Translated, Insufficient>],
    behaviour: Behaviour,
    progress: &RunControl,
) -> (usize, usize) {
    let going_on = translated.iter().flatten().take_while(|_| !progress.stop.load(Relaxed));
    let found = going_on.map(|(recording, _)| Ok(recording.compare(behaviour.policy())));
    total(&found.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use percid_sim::US;
    use percid_sim::conformance::Event as Step;

    use super::*;
    use crate::event::{Cpu, Event, IDLE, Shares, Stage, State, What};
    use crate::trace::Origin;

    const PROCESS: Tid = 7;
    const OTHER: Tid = 50;

    fn trace(events: &[(u64, Cpu, What)]) -> Trace {
        let event = |&(micros, cpu, what)| Event { time: micros * US, cpu, what };
        let origin = Origin {
            release: Some("6.18.44".to_owned()),
            possible_cpus: Some(2),
            ..Origin::default()
        };
        Trace { origin, events: events.iter().map(event).collect(), ..Trace::default() }
    }

    fn exec() -> What {
        What::Exec { thread: PROCESS, old: PROCESS }
    }

    fn switch(prev: Tid, next: Tid) -> What {
        What::Switch { prev, state: State::RUNNABLE, next }
    }

    fn id(thread: Tid, id: u32) -> What {
        What::Id { thread, node: 0, id }
    }

    fn fork(child: Tid, shares: Shares) -> What {
        What::Fork { parent: PROCESS, child, shares }
    }

    fn steps(events: &[(u64, Cpu, What)]) -> Vec<(u64, Step)> {
        let recording = recording(&trace(events), PROCESS).expect("enough");
        recording.steps.iter().map(|step| (step.time / US, step.event)).collect()
    }

    #[test]
    fn a_missing_switch_is_inferred() {
        let found = steps(&[
            (10, 1, exec()),
            (20, 1, switch(PROCESS, IDLE)),
            (50, 1, id(PROCESS, 0)),
            (60, 0, id(PROCESS, 0)),
        ]);
        let expected = [
            (0, Step::Exec(1, 0)),
            (10, Step::Switch(1, Some(0), None)),
            (40, Step::Switch(1, None, Some(0))),
            (40, Step::Id(0, 0)),
            (50, Step::Switch(1, Some(0), None)),
            (50, Step::Switch(0, None, Some(0))),
            (50, Step::Id(0, 0)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_tick_counts_when_the_thread_goes_back_if_a_scan_is_due() {
        let tick = What::Tick { thread: PROCESS };
        let found = steps(&[
            (0, 1, exec()),
            (90_000, 1, tick),
            (110_000, 1, tick),
            (110_010, 1, switch(PROCESS, OTHER)),
            (111_000, 1, switch(OTHER, PROCESS)),
            (111_005, 1, id(PROCESS, 0)),
            (130_000, 1, tick),
        ]);
        let expected = [
            (0, Step::Exec(1, 0)),
            (90_000, Step::Tick(1, 0, 0)),
            (110_010, Step::Switch(1, Some(0), None)),
            (111_000, Step::Switch(1, None, Some(0))),
            (111_005, Step::Tick(1, 0, 1005)),
            (111_005, Step::Id(0, 0)),
            (130_000, Step::Tick(1, 0, 0)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_thread_that_is_moved_to_be_woken_arrives_when_it_has_been_woken() {
        let wakeup = |stage| What::Wakeup { thread: PROCESS, target: 0, stage };
        let moved = What::Migrate { thread: PROCESS, from: 1, to: 0 };
        let found = steps(&[
            (0, 1, exec()),
            (5, 1, id(PROCESS, 0)),
            (10, 1, switch(PROCESS, IDLE)),
            (20, 1, wakeup(Stage::Waking)),
            (21, 1, moved),
            (25, 0, wakeup(Stage::Woken)),
            (30, 0, switch(IDLE, PROCESS)),
            (40, 0, switch(PROCESS, IDLE)),
            (41, 1, What::Migrate { thread: PROCESS, from: 0, to: 1 }),
        ]);
        let expected = [
            (0, Step::Exec(1, 0)),
            (5, Step::Id(0, 0)),
            (10, Step::Switch(1, Some(0), None)),
            (25, Step::Migrate(0, 1, 0)),
            (30, Step::Switch(0, None, Some(0))),
            (40, Step::Switch(0, Some(0), None)),
            (41, Step::Migrate(0, 0, 1)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_child_after_vfork_leaves_when_it_runs_if_it_replaces_its_program() {
        let events = [
            (0, 1, exec()),
            (5, 1, id(PROCESS, 0)),
            (10, 1, fork(8, Shares::Memory)),
            (20, 1, switch(PROCESS, 8)),
            (50, 1, switch(8, 9)),
            (55, 0, What::Wakeup { thread: PROCESS, target: 1, stage: Stage::Woken }),
            (60, 1, switch(9, PROCESS)),
            (70, 0, What::Exec { thread: 8, old: 8 }),
            (80, 0, id(8, 0)),
        ];
        let began = [(0, Step::Exec(1, 0)), (5, Step::Id(0, 0)), (10, Step::Spawn(1, 0))];
        let left = [
            (20, Step::Switch(1, Some(0), Some(1))),
            (20, Step::Leave(1, 1)),
            (20, Step::Switch(1, Some(1), None)),
            (55, Step::Gone(1)),
            (60, Step::Switch(1, None, Some(0))),
        ];
        assert_eq!(steps(&events), [&began[..], &left].concat());
        let stayed = [
            (20, Step::Switch(1, Some(0), Some(1))),
            (50, Step::Switch(1, Some(1), None)),
            (60, Step::Switch(1, None, Some(0))),
        ];
        assert_eq!(steps(&events[..7]), [&began[..], &stayed].concat());
    }

    #[test]
    fn the_affinity_is_that_of_the_nearest_ancestor_of_which_it_is_known() {
        let mut trace = trace(&[(0, 1, exec()), (5, 1, id(PROCESS, 0))]);
        let allowed = |trace: &Trace| recording(trace, PROCESS).expect("enough").allowed;
        assert_eq!(allowed(&trace), 2);
        let cpus = trace.texts.intern(b"1");
        let affinity = What::Affinity { thread: OTHER, cpus };
        let fork = What::Fork { parent: OTHER, child: PROCESS, shares: Shares::Nothing };
        let before = [affinity, fork].map(|what| Event { time: 0, cpu: 0, what });
        trace.events.splice(0..0, before);
        assert_eq!(allowed(&trace), 1);
    }

    /// Two threads that meet on two CPUs and come back to them after pauses, with the IDs that a
    /// behaviour gives, from a kernel that calls itself otherwise.
    #[test]
    fn the_policy_is_that_which_explains_the_ids_and_not_that_of_the_release() {
        let mut events =
            vec![(0, 1, exec()), (5, 1, id(PROCESS, 0)), (10, 1, fork(8, Shares::Process))];
        events.extend([
            (20, 1, switch(PROCESS, IDLE)),
            (30, 0, switch(IDLE, 8)),
            (35, 0, id(8, 1)),
        ]);
        events.push((40, 0, switch(8, IDLE)));
        // The threads run in turns, each on the CPU of the other: IDs follow the threads.
        for turn in 0..20 {
            let (time, cpu) = (1000 * (turn + 1), (turn % 2) as Cpu);
            let (thread, own) = if turn / 2 % 2 == 0 { (PROCESS, 0) } else { (8, 1) };
            events.push((time, cpu, What::Migrate { thread, from: 1 - cpu, to: cpu }));
            events.push((time + 10, cpu, switch(IDLE, thread)));
            events.push((time + 20, cpu, id(thread, own)));
            events.push((time + 30, cpu, switch(thread, IDLE)));
        }
        let mut trace = trace(&events);
        trace.origin.release = Some("6.6.30-with-backports".to_owned());
        let found = compare_all(&trace, &[PROCESS], &RunControl::default());
        let owned = Behaviour::Of(Generation::Owned);
        assert_eq!(found.behaviour, Some(owned), "{}", found.explanation);
        assert!(found.processes[0].as_ref().is_ok_and(|found| found.differences.is_empty()));
        trace.origin.release = Some("6.1.0".to_owned());
        let found = compare_all(&trace, &[PROCESS], &RunControl::default());
        assert_eq!(found.behaviour, Some(owned), "{}", found.explanation);
    }

    /// Thread 8 has reported ID 1 and goes to sleep twice more on its CPU; the kernel reports no ID
    /// that has not changed.
    #[test]
    fn silence_means_unchanged_where_only_changes_are_told() {
        let asleep = |thread| What::Switch { prev: thread, state: State::SLEEPING, next: IDLE };
        let mut events =
            vec![(0, 1, exec()), (5, 1, id(PROCESS, 0)), (10, 1, fork(8, Shares::Process))];
        events.extend([(15, 1, asleep(PROCESS)), (30, 0, switch(IDLE, 8)), (35, 0, id(8, 1))]);
        events.extend([(40, 0, asleep(8)), (50, 0, switch(IDLE, 8)), (60, 0, asleep(8))]);
        let ids = |trace: &Trace| {
            let steps = recording(trace, PROCESS).expect("enough").steps;
            steps.iter().filter(|step| matches!(step.event, Step::Id(..))).count()
        };
        assert_eq!(ids(&trace(&events)), 2, "of too few that were told nothing follows");
        let others = (0..40).map(|nr| (100 + nr, (nr % 2) as Cpu, id(OTHER, 3)));
        let changes: Vec<_> = events.iter().copied().chain(others).collect();
        assert_eq!(ids(&trace(&changes)), 5, "one of the first thread, two of the other");
        let again = (0..40).map(|nr| (100 + nr, 0, id(OTHER, 3)));
        let always: Vec<_> = events.iter().copied().chain(again).collect();
        assert_eq!(ids(&trace(&always)), 2);
    }

    #[test]
    fn what_is_missing_is_said() {
        let whole =
            trace(&[(0, 1, exec()), (5, 1, id(PROCESS, 0)), (6, 1, fork(8, Shares::Unknown))]);
        let why = |trace: &Trace| compare(trace, PROCESS).expect_err("not enough");
        assert_eq!(why(&whole), Insufficient::UnknownMemory(8));
        assert_eq!(why(&trace(&[(0, 1, id(PROCESS, 0))])), Insufficient::BeganBefore(PROCESS));
        assert_eq!(why(&trace(&[(0, 1, exec())])), Insufficient::NoIds(PROCESS));
        let mut old = trace(&[(0, 1, exec())]);
        old.origin.release = Some("6.1.0".to_owned());
        assert_eq!(why(&old), Insufficient::NoGeneration("6.1.0".to_owned()));
        let mut other = trace(&[(0, 1, exec()), (5, 1, id(PROCESS, 0))]);
        assert!(compare(&other, PROCESS).is_ok_and(|comparison| comparison.agrees()));
        other.origin.release = Some("6.1.0".to_owned());
        assert_eq!(why(&other), Insufficient::NoGeneration("6.1.0".to_owned()));
        other.origin.release = None;
        assert_eq!(why(&other), Insufficient::NoRelease);
        other.origin.lost = 3;
        other.origin.release = Some("6.18.44".to_owned());
        assert_eq!(why(&other), Insufficient::Lost(3));
        let never =
            trace(&[(0, 1, exec()), (5, 1, id(PROCESS, 0)), (4, 1, What::Tick { thread: 7 })]);
        assert!(matches!(why(&never), Insufficient::Inconsistent(..)), "{}", why(&never));
    }

    #[test]
    fn events_in_any_order_are_translated_or_refused() {
        for seed in 0..20_000 {
            let mut random = percid_sim::random::Random::new(seed);
            let mut below = |end: u64| random.below(end) as u32;
            let events: Vec<_> = (0..30)
                .map(|nr| {
                    let (a, b, cpu) = (6 + below(5), 6 + below(5), below(3));
                    let what = match below(9) {
                        0 => exec(),
                        1 => What::Exec { thread: a, old: b },
                        2 => What::Exit { thread: a },
                        3 => What::Tick { thread: a },
                        4 => What::Fork { parent: a, child: b, shares: Shares::Process },
                        5 => What::Migrate { thread: a, from: cpu, to: below(3) },
                        6 => id(a, below(3)),
                        _ => switch(a, b),
                    };
                    (nr * 9000, cpu, what)
                })
                .collect();
            let mut trace = trace(&events);
            trace.origin.possible_cpus = Some(3);
            // Only termination matters, not the result.
            let _ = compare_all(&trace, &[PROCESS], &RunControl::default());
        }
    }
}
