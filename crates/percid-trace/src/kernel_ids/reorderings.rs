//! The orders in which the steps of a recording may have happened.
//!
//! The kernel traces an action and performs it a moment earlier or later. Between the two another
//! CPU may go first: on a real machine for a microsecond, on an emulated one, whose CPUs take
//! turns, for milliseconds. The actions of one CPU, and those of one thread, are in the order of
//! the trace.
//!
//! For any two CPUs there are two orders here. In one the first CPU did everything at the traced
//! times and the other as far from them as possible; in the other order the roles are exchanged.

use percid_sim::Ns;
use percid_sim::conformance::{Event, Recording, Step};
use percid_sim::policies::Thread;

use crate::event::Cpu;

/// The times at which a step may have happened, beside its recorded time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slack {
    /// The earliest time.
    pub(crate) from: Ns,
    /// The latest time.
    pub(crate) until: Ns,
    /// The CPU that moved or created a thread and traced it, if it has done that before it did
    /// anything else.
    pub(crate) mover: Option<Cpu>,
}

/// Other orders in which the steps of a recording may have happened: four times as many as the
/// number of a CPU has bits, and two. In half of them scans came when the tick landed, and not when
/// the thread was back in user space: in between it may have been switched away from.
pub(crate) fn others(recording: &Recording, slacks: &[Slack]) -> impl Iterator<Item = Recording> {
    let steps = move || recording.steps.iter().zip(slacks).map(|(&step, &slack)| (step, slack));
    let cpus = steps().filter_map(|(step, slack)| actor(step.event, slack));
    let bits = cpus.max().map_or(0, |last| Cpu::BITS - last.leading_zeros());
    let by_bit = (0..bits).flat_map(|bit| [(1 << bit, 0), (1 << bit, 1 << bit)]);
    let groups = by_bit.chain([(0, 0)]);
    let all = groups.flat_map(|group| [(group, Scans::OnReturn), (group, Scans::OnTick)]);
    all.map(move |((mask, value), scans)| {
        let is_moved = |(step, slack): (Step, Slack)| {
            actor(step.event, slack).is_some_and(|cpu| cpu & mask == value)
        };
        let steps = late(early(steps().collect(), scans, is_moved), is_moved);
        Recording { steps, release: recording.release.clone(), ..*recording }
    })
}

/// The time at which a thread that was ticked scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scans {
    OnReturn,
    OnTick,
}

/// The CPU whose doing a step is, if its time is not sure.
fn actor(event: Event, slack: Slack) -> Option<Cpu> {
    match event {
        Event::Switch(cpu, ..)
        | Event::Tick(cpu, ..)
        | Event::Exit(cpu, _)
        | Event::Leave(cpu, _) => Some(cpu),
        Event::Migrate(_, _, to) => slack.mover.or(Some(to)),
        Event::Spawn(..) => slack.mover,
        Event::Exec(..) | Event::Affinity(..) | Event::Gone(_) | Event::Id(..) => None,
    }
}

/// Moves steps as far towards the beginning as they can.
fn early(
    steps: Vec<(Step, Slack)>,
    scans: Scans,
    is_moved: impl Fn((Step, Slack)) -> bool,
) -> Vec<(Step, Slack)> {
    let mut last = Last::default();
    let mut places = Vec::with_capacity(steps.len());
    for (nr, &(step, slack)) in steps.iter().enumerate() {
        // Behind whatever of its CPU or its threads comes before it.
        let before = last.replace(step.event, slack, nr);
        let bound = match (step.event, scans) {
            (Event::Tick(..), Scans::OnTick) => 1,
            _ => before.map_or(0, |before| before + 1),
        };
        places.push(match is_moved((step, slack)) && slack.from < step.time {
            true => bound.max(first_from(&steps[..nr], slack.from)),
            false => nr,
        });
    }
    // Before the one whose place it takes.
    reordered(steps, |nr| if places[nr] < nr { (places[nr], 0) } else { (nr, 1) })
}

/// Moves steps as far towards the end as they can.
fn late(steps: Vec<(Step, Slack)>, is_moved: impl Fn((Step, Slack)) -> bool) -> Vec<Step> {
    let mut next = Last::default();
    let mut places = vec![0; steps.len()];
    for (nr, &(step, slack)) in steps.iter().enumerate().rev() {
        let bound = next.replace(step.event, slack, nr).unwrap_or(steps.len());
        places[nr] = match is_moved((step, slack)) && slack.until > step.time {
            true => bound.min(first_after(&steps, nr, slack.until)),
            false => nr,
        };
    }
    let steps = reordered(steps, |nr| if places[nr] > nr + 1 { (places[nr], 0) } else { (nr, 1) });
    steps.into_iter().map(|(step, _)| step).collect()
}

/// The place of the first step at this time or later.
fn first_from(steps: &[(Step, Slack)], time: Ns) -> usize {
    steps.partition_point(|(step, _)| step.time < time)
}

/// Returns the place of the first step after this one that is later than a time.
fn first_after(steps: &[(Step, Slack)], nr: usize, time: Ns) -> usize {
    nr + steps[nr..].partition_point(|(step, _)| step.time <= time)
}

/// Sorts steps by their new places; a step that was moved has the time of those among which it is.
fn reordered(
    steps: Vec<(Step, Slack)>,
    place: impl Fn(usize) -> (usize, u8),
) -> Vec<(Step, Slack)> {
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by_key(|&nr| place(nr));
    let mut time = 0;
    let mut placed: Vec<_> = order.iter().map(|&nr| steps[nr]).collect();
    for (to, &nr) in order.iter().enumerate() {
        let (step, _) = &mut placed[to];
        if place(nr).1 == 0 {
            step.time = steps.get(place(nr).0).map_or(time, |(there, _)| there.time);
        }
        step.time = step.time.max(time);
        time = step.time;
    }
    placed
}

/// The last step of each CPU and each thread. Both are numbered without large gaps.
#[derive(Debug, Default)]
struct Last {
    cpus: Vec<Option<usize>>,
    threads: Vec<Option<usize>>,
}

impl Last {
    /// Takes a step in. Returns the nearest one before that cannot change places with it.
    fn replace(&mut self, event: Event, slack: Slack, nr: usize) -> Option<usize> {
        let (cpu, threads) = parties(event, slack);
        let of_cpu = cpu.and_then(|cpu| slot(&mut self.cpus, cpu).replace(nr));
        let of_threads = threads.into_iter().flatten().map(|thread| {
            let slot = slot(&mut self.threads, thread);
            slot.replace(nr).filter(|&before| before != nr)
        });
        let nearest = |a: usize, b: usize| if a.abs_diff(nr) < b.abs_diff(nr) { a } else { b };
        of_threads.chain([of_cpu]).flatten().reduce(nearest)
    }
}

fn slot(slots: &mut Vec<Option<usize>>, number: u32) -> &mut Option<usize> {
    let number = number as usize;
    if number >= slots.len() {
        slots.resize(number + 1, None);
    }
    &mut slots[number]
}

/// The CPU and the threads on whose other steps a step depends. A thread may arrive on a CPU
/// whatever that CPU does.
fn parties(event: Event, slack: Slack) -> (Option<Cpu>, [Option<Thread>; 2]) {
    match event {
        Event::Switch(cpu, prev, next) => (Some(cpu), [prev, next]),
        Event::Exec(cpu, thread)
        | Event::Tick(cpu, thread, _)
        | Event::Exit(cpu, thread)
        | Event::Leave(cpu, thread) => (Some(cpu), [Some(thread), None]),
        Event::Spawn(child, parent) => (slack.mover, [Some(child), Some(parent)]),
        Event::Migrate(thread, ..) => (slack.mover, [Some(thread), None]),
        Event::Affinity(thread, _) | Event::Gone(thread) | Event::Id(thread, _) => {
            (None, [Some(thread), None])
        }
    }
}

#[cfg(test)]
mod tests {
    use percid_sim::US;

    use super::*;

    const SURE: Slack = Slack { from: Ns::MAX, until: 0, mover: None };
    const EARLIER: Slack = Slack { from: 0, ..SURE };
    const LATER: Slack = Slack { until: Ns::MAX, ..SURE };

    fn recording(steps: &[(Event, Slack)]) -> (Recording, Vec<Slack>) {
        let step = |(time, &(event, _)): (Ns, &(Event, Slack))| Step { time: time * US, event };
        let recording = Recording {
            release: "6.12.0".to_owned(),
            possible: 4,
            allowed: 4,
            steps: (0..).zip(steps).map(step).collect(),
        };
        (recording, steps.iter().map(|(_, slack)| *slack).collect())
    }

    /// The different orders of the steps after `exec`, which is added, by the numbers that they
    /// have.
    fn reorderings(steps: &[(Event, Slack)]) -> Vec<Vec<usize>> {
        let exec = (Event::Exec(0, 0), SURE);
        let (recording, slacks) = recording(&[&[exec], steps].concat());
        let number = |event: Event| steps.iter().position(|&(other, _)| other == event);
        let mut all: Vec<Vec<usize>> = others(&recording, &slacks)
            .map(|other| {
                assert!(other.steps.is_sorted_by_key(|step| step.time));
                assert_eq!(other.steps[0].event, exec.0);
                other.steps[1..].iter().filter_map(|step| number(step.event)).collect()
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn two_cpus_may_switch_in_either_order_until_a_thread_tells_its_id() {
        let (one, two) = (Event::Switch(1, None, Some(1)), Event::Switch(2, None, Some(2)));
        let (id_of_one, id_of_two) = (Event::Id(1, 1), Event::Id(2, 2));
        let both = [(one, LATER), (two, LATER), (id_of_two, SURE), (id_of_one, SURE)];
        assert_eq!(reorderings(&both), [[0, 1, 2, 3], [1, 2, 0, 3]]);
        let told = [(one, LATER), (id_of_one, SURE), (two, LATER), (id_of_two, SURE)];
        assert_eq!(reorderings(&told), [[0, 1, 2, 3]]);
    }

    #[test]
    fn a_thread_may_have_given_up_its_id_since_it_was_seen_last() {
        let (id, exit) = (Event::Id(0, 0), Event::Exit(0, 0));
        let other = Event::Switch(3, None, Some(1));
        let steps = [(id, SURE), (other, SURE), (exit, EARLIER)];
        assert_eq!(reorderings(&steps), [[0, 1, 2], [0, 2, 1]]);
        let recently = Slack { from: 3 * US, ..SURE };
        assert_eq!(reorderings(&[(id, SURE), (other, SURE), (exit, recently)]), [[0, 1, 2]]);
    }

    #[test]
    fn a_scan_may_have_come_before_the_thread_was_switched_away_from() {
        let (came, went) = (Event::Switch(0, None, Some(0)), Event::Switch(0, Some(0), None));
        let (tick, id) = (Event::Tick(0, 0, 2), Event::Id(0, 0));
        let landed = Slack { from: 2 * US, ..SURE };
        let steps = [(Event::Affinity(0, 1), SURE), (went, SURE), (came, SURE), (tick, landed)];
        let steps = [&steps[..], &[(id, SURE)]].concat();
        assert_eq!(reorderings(&steps), [[0, 1, 2, 3, 4], [0, 3, 1, 2, 4]]);
    }

    #[test]
    fn a_thread_that_is_moved_arrives_before_it_runs() {
        let moved = Event::Migrate(1, 1, 2);
        let (other, runs) = (Event::Switch(2, None, Some(2)), Event::Switch(2, Some(2), Some(1)));
        let steps = [(moved, LATER), (other, SURE), (runs, SURE)];
        assert_eq!(reorderings(&steps), [[0, 1, 2], [1, 0, 2]]);
        let by_that_cpu = Slack { mover: Some(2), ..LATER };
        assert_eq!(reorderings(&[(moved, by_that_cpu), (other, SURE), (runs, SURE)]), [[0, 1, 2]]);
    }

    #[test]
    fn what_one_cpu_or_one_thread_does_stays_in_order() {
        for seed in 0..2000 {
            let mut random = percid_sim::random::Random::new(seed);
            let mut below = |end: u64| random.below(end) as u32;
            let steps: Vec<(Event, Slack)> = (0..12)
                .map(|nr| {
                    let (cpu, thread) = (below(4), below(4));
                    let event = match below(4) {
                        0 => Event::Switch(cpu, Some(below(4)), Some(thread)),
                        1 => Event::Exit(cpu, thread),
                        2 => Event::Migrate(thread, below(4), cpu),
                        // Another one each time, so that events can be told apart.
                        _ => Event::Id(thread, 100 + nr),
                    };
                    (event, [SURE, EARLIER, LATER][below(3) as usize])
                })
                .collect();
            let (recording, slacks) =
                recording(&[&[(Event::Exec(0, 0), SURE)], &steps[..]].concat());
            for other in others(&recording, &slacks) {
                for party in 0..8 {
                    let is_of = |step: &&Step| {
                        let (cpu, threads) = parties(step.event, SURE);
                        if party < 4 {
                            cpu == Some(party)
                        } else {
                            threads.contains(&Some(party - 4))
                        }
                    };
                    let events = |recording: &Recording| -> Vec<Event> {
                        recording.steps.iter().filter(is_of).map(|step| step.event).collect()
                    };
                    assert_eq!(events(&other), events(&recording), "seed {seed}");
                }
            }
        }
    }
}
