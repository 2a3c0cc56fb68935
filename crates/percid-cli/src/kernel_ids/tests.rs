//! The experiment, executed by the policies themselves: the result that each generation would have
//! is explained by that generation and by no other.

use percid_sim::conformance::Event;
use percid_sim::{MS, US};

use super::journal::{JournalEntry, Note, recording};
use super::script::{Act, FIRST_THREAD, HOLD_MS, ScriptStep, script};
use super::*;

/// Returns the entries that the threads would write on a machine without delays, with ID 0 for all.
fn ideal(cpus: &[u32], possible: u32, allowed: u32) -> Recording {
    let mut entries =
        vec![JournalEntry { time: 0, thread: FIRST_THREAD as u32, note: Note::Runs(cpus[0]) }];
    let mut started = 0;
    // For each thread its CPU, and the time since which it has nothing to do.
    let mut at: Vec<(u32, u64)> = vec![(cpus[0], 0); cpus.len() + 1];
    for ScriptStep { thread, at_ms, act } in script(cpus.len()) {
        let mut note = |time: u64, thread: usize, note| {
            entries.push(JournalEntry { time, thread: thread as u32, note });
        };
        let (cpu, idle_since) = at[thread];
        let time = idle_since.max(at_ms * MS);
        if time > idle_since {
            note(idle_since, thread, Note::Sleeps);
            note(time, thread, Note::Runs(cpu));
        }
        let looked = 100 * US;
        at[thread] = match act {
            Act::Start => {
                started += 1;
                note(time + US, thread, Note::Starts(started as u32));
                note(time + looked + US, started, Note::Runs(cpu));
                at[started].1 = time + looked + 5 * US;
                (cpu, time + looked)
            }
            Act::Go(place) => {
                note(time + looked / 2, thread, Note::Moved(cpus[place]));
                note(time + looked, thread, Note::Id(0));
                (cpus[place], time + looked)
            }
            Act::Stay(ms) => {
                if ms >= HOLD_MS {
                    note(time + ms * MS, thread, Note::Ticked);
                }
                note(time + ms * MS + looked, thread, Note::Id(0));
                (cpu, time + ms * MS + looked)
            }
            Act::End => {
                note(time + US, thread, Note::Ends);
                (cpu, time + US)
            }
        };
    }
    recording("6.18.0".to_owned(), (possible, allowed), cpus[0], entries)
}

/// Returns the same with the IDs that a behaviour assigns.
fn under(behaviour: Behaviour, mut recording: Recording) -> Recording {
    let comparison = {
        let never = |step: &mut percid_sim::conformance::Step| {
            if let Event::Id(thread, _) = step.event {
                step.event = Event::Id(thread, u32::MAX);
            }
        };
        recording.steps.iter_mut().for_each(never);
        recording.compare(behaviour.policy())
    };
    assert_eq!(comparison.border, None, "{behaviour}: a decision falls on the border");
    let mut given = comparison.differences.iter().map(|difference| difference.expected);
    for step in &mut recording.steps {
        if let Event::Id(thread, _) = step.event {
            step.event = Event::Id(thread, given.next().expect("an ID for each"));
        }
    }
    recording
}

/// The CPUs of the experiment, and the numbers of possible and of allowed CPUs.
const MACHINES: [(&[u32], u32, u32); 6] = [
    (&[1, 0], 2, 2),
    (&[3, 2], 4, 2),
    (&[2, 1, 0], 3, 3),
    (&[3, 2, 1], 4, 4),
    (&[7, 6, 5], 8, 8),
    (&[63, 62, 61], 128, 64),
];

#[test]
fn every_generation_is_told_from_every_other() {
    for (cpus, possible, allowed) in MACHINES {
        for behaviour in Behaviour::all() {
            let recording = under(behaviour, ideal(cpus, possible, allowed));
            let text = recording.to_string();
            let read = Recording::read(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
            let explanation = Explanation::from_recordings([&read]);
            let decided = explanation.decided();
            assert_eq!(decided, Some(behaviour), "{cpus:?} of {possible}: {explanation}\n{text}");
        }
    }
}

/// The control: without the turns after pauses and without the end, some generations cannot be told
/// apart.
#[test]
fn a_shorter_experiment_leaves_it_undecided() {
    let mut recording = ideal(&[3, 2, 1], 4, 4);
    recording.steps.truncate(60);
    let undecided = Behaviour::all().filter(|&behaviour| {
        Explanation::from_recordings([&under(behaviour, recording.clone())]).decided()
            != Some(behaviour)
    });
    assert!(undecided.count() >= 2);
}
