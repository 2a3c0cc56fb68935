//! Our files in Perfetto's own trace processor.

use crate::schedule;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use percid_perfetto::{Rows, TraceProcessor};
use percid_trace::Trace;
use percid_trace::event::{Cpu, Event, IDLE, Shares, State, Tid, What};
use percid_trace::perfetto::{self, IdSpan, IdTracks, Steal};
use percid_trace::read;
use serde_json::{Value, json};

/// A file with a trace, in the folder of the tests.
fn exported(name: &str, trace: &Trace, looks: &[IdTracks]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut file = Vec::new();
    perfetto::write(trace, looks, &mut file).expect("memory takes everything");
    std::fs::write(&path, file).expect("the file is written");
    path
}

/// Query for the trace processor's statistics of errors and lost data.
const FAULTS: &str = "select name, value from stats
    where severity in ('error', 'data_loss') and value > 0";

/// Every slice of every CPU's track: when, where, who, and why it ended; -1 and none where the
/// trace ends before.
const SLICES: &str =
    "select ts, iif(dur < 0, -1, ts + dur), ucpu, tid, iif(dur < 0, null, end_state)
    from sched join thread using(utid) order by ts, ucpu";

const THREADS: &str = "select tid, thread.name, pid from thread left join process using(upid)
    where tid != 0 order by tid, utid";

/// The thread that stands for all which were not recorded: no kernel gives this number.
const OTHER: Tid = (1 << 22) + 1;

/// The slices that the events of a trace tell of, as [`SLICES`] would show them.
fn slices(trace: &Trace) -> Rows {
    let mut slices = Rows::new();
    let mut open: HashMap<Cpu, usize> = HashMap::new();
    let mut has_gaps = false;
    for event in &trace.events {
        let What::Switch { prev, state, next } = event.what else { continue };
        let (time, cpu, state) = (json!(event.time), json!(event.cpu), json!(state.to_string()));
        match open.get(&event.cpu).copied() {
            Some(last) if slices[last][3] == json!(prev) => {
                slices[last][1] = time.clone();
                slices[last][4] = state;
            }
            // The thread that has run since is unknown.
            Some(last) => {
                has_gaps = true;
                make_room(&mut slices, last, &time, json!("S"));
                slices.push(vec![time.clone(), time.clone(), cpu.clone(), json!(prev), state]);
            }
            None => {}
        }
        open.insert(event.cpu, slices.len());
        slices.push(vec![time, json!(-1), cpu, json!(next), Value::Null]);
    }
    let known = known(trace);
    for last in open.into_values().filter(|_| has_gaps) {
        let thread = slices[last][3].as_u64().expect("a thread") as Tid;
        if !known.contains(&thread) {
            make_room(&mut slices, last, &json!(-1), Value::Null);
        }
    }
    slices
}

/// The thread of a slice is switched away from at once, and others run until a time.
fn make_room(slices: &mut Rows, last: usize, until: &Value, state: Value) {
    let from = slices[last][0].clone();
    slices[last][1] = from.clone();
    slices[last][4] = json!("S");
    let cpu = slices[last][2].clone();
    slices.push(vec![from, until.clone(), cpu, json!(OTHER), state]);
}

/// The threads of which a trace tells more than that they were switched to.
fn known(trace: &Trace) -> BTreeSet<Tid> {
    let known = trace.events.iter().filter_map(|event| match event.what {
        What::Member { thread, .. }
        | What::Id { thread, .. }
        | What::Tick { thread }
        | What::Exit { thread }
        | What::Exec { thread, .. }
        | What::Fork { child: thread, .. } => Some(thread),
        _ => None,
    });
    known.chain([IDLE]).collect()
}

/// Rows in an order that does not depend on which of one moment comes first.
fn sorted(mut rows: Rows) -> Rows {
    rows.sort_by_key(|row| serde_json::to_string(row).expect("values"));
    rows
}

/// The threads of a trace, with their last names and their processes, as [`THREADS`] would show
/// them.
fn threads(trace: &Trace) -> Rows {
    let mut threads: BTreeMap<Tid, (Option<&str>, Option<Tid>)> = BTreeMap::new();
    for event in &trace.events {
        match event.what {
            What::Name { thread, name } => {
                threads.entry(thread).or_default().0 = Some(trace.texts.get(name));
            }
            What::Member { thread, process } => {
                threads.entry(thread).or_default().1 = Some(process);
            }
            What::Fork { parent, child, shares } => {
                let process = match shares {
                    Shares::Process => threads[&parent].1,
                    _ => Some(child),
                };
                threads.entry(child).or_default().1 = process;
            }
            _ => {}
        }
    }
    let row = |(thread, (name, process))| vec![json!(thread), json!(name), json!(process)];
    threads.into_iter().map(row).collect()
}

/// Returns the number of tracepoints of these events. A new thread's name is part of the tracepoint
/// of its creation.
fn tracepoints(trace: &Trace) -> usize {
    let mut last = None;
    let own = trace.events.iter().filter(|event| {
        let born = last.replace(**event).map(|last| last.what);
        match (event.what, born) {
            (What::Name { thread, .. }, Some(What::Fork { child, .. })) => thread != child,
            _ => true,
        }
    });
    own.count()
}

#[test]
fn the_schedule_is_the_same() {
    let Some(processor) = TraceProcessor::find() else { return };
    let trace = schedule::plausible(1, 20_000);
    let path = exported("schedule.pftrace", &trace, &[]);
    let all = "select count(*) from ftrace_event where name != 'percid_origin'";
    let own = "select count(*) from ftrace_event where name = 'percid_origin'";
    let queries = [FAULTS, SLICES, THREADS, all, own];
    let answers = processor.query(&path, &queries).expect("our own file");
    assert_eq!(answers[0], Rows::new());
    let expected = slices(&trace);
    assert!(expected.len() > 4_000);
    for (found, expected) in answers[1].iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(answers[1].len(), expected.len());
    assert_eq!(answers[2], threads(&trace));
    assert_eq!(answers[3], [[json!(tracepoints(&trace))]]);
    assert_eq!(answers[4], [[json!(1)]]);
}

/// A process that is recorded alone, and whose CPU runs another thread each time that it does not.
#[test]
fn threads_that_were_not_recorded_do_not_run_for_ever() {
    let Some(processor) = TraceProcessor::find() else { return };
    let switch = |time, prev, next| Event {
        time,
        cpu: 0,
        what: What::Switch { prev, state: State::RUNNABLE, next },
    };
    let mut events = vec![Event { time: 1, cpu: 0, what: What::Member { thread: 7, process: 7 } }];
    for round in 0..50u32 {
        let at = 1000 * u64::from(1 + round);
        events.extend([switch(at, 500 + round, 7), switch(at + 10, 7, 900 + round)]);
    }
    let trace = Trace { events, ..Trace::default() };
    let path = exported("alone.pftrace", &trace, &[]);
    let running =
        "select sum(dur), min(dur) from thread_state where state = 'Running' and dur != -1";
    let on_and_on = "select count(*) from thread_state where state = 'Running' and dur = -1";
    let answers = processor.query(&path, &[FAULTS, running, on_and_on]).expect("our own file");
    assert_eq!(answers[0], Rows::new());
    let end = trace.events.last().expect("an event").time;
    assert_eq!(answers[1], [[json!(end - 1000), json!(0)]], "one CPU runs one thread at a time");
    assert_eq!(answers[2], [[json!(1)]], "the last one");
}

// The traces are Parquet files.
#[cfg(target_endian = "little")]
#[test]
fn schedules_of_real_programs_are_the_same() {
    let Some(processor) = TraceProcessor::find() else { return };
    for name in ["postgres", "build", "nginx"] {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let trace = read::read(&fixtures.join(name).with_extension("parquet")).expect(name);
        let path = exported(&format!("{name}.pftrace"), &trace, &[]);
        let answers = processor.query(&path, &[FAULTS, SLICES]).expect("our own file");
        assert_eq!(answers[0], Rows::new(), "{name}");
        let expected = slices(&trace);
        assert!(expected.len() > 500, "{name}");
        let (found, expected) = (sorted(answers[1].clone()), sorted(expected));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(found.len(), expected.len(), "{name}");
    }
}

#[test]
fn another_schedule_is_not() {
    let Some(processor) = TraceProcessor::find() else { return };
    let trace = schedule::plausible(1, 2_000);
    let path = exported("other.pftrace", &schedule::plausible(2, 2_000), &[]);
    let answers = processor.query(&path, &[SLICES]).expect("our own file");
    assert_ne!(answers[0], slices(&trace));
}

#[test]
fn a_damaged_file_is_noticed() {
    let Some(processor) = TraceProcessor::find() else { return };
    let trace = schedule::plausible(1, 2_000);
    let path = exported("damaged.pftrace", &trace, &[]);
    let mut file = std::fs::read(&path).expect("it was written");
    // In the middle of a packet with events.
    let middle = file.len() / 2;
    file[middle..middle + 200].fill(0xff);
    std::fs::write(&path, file).expect("the file is written");
    let noticed = match processor.query(&path, &[FAULTS, SLICES]) {
        Err(_) => true,
        Ok(answers) => !answers[0].is_empty() || answers[1] != slices(&trace),
    };
    assert!(noticed);
}

/// Makes tracks as if one policy had given every thread the ID of its CPU's number, and another the
/// ID 0.
fn tracks(trace: &Trace) -> Vec<IdTracks> {
    let mut open: HashMap<Cpu, (u64, Tid)> = HashMap::new();
    let mut spans = Vec::new();
    for event in &trace.events {
        let What::Switch { next, .. } = event.what else { continue };
        let last = open.insert(event.cpu, (event.time, next));
        let Some((from_ns, thread)) = last.filter(|last| last.1 != IDLE) else { continue };
        let (cpu, to_ns) = (event.cpu, event.time);
        spans.push(IdSpan { process: 100, id: cpu, cpu, thread, from_ns, to_ns });
    }
    // The ID 1 goes to CPU 5 in the middle, and comes back after one turn there.
    let of_one: Vec<usize> = (0..spans.len()).filter(|&nth| spans[nth].id == 1).collect();
    let middle = of_one.len() / 2;
    spans[of_one[middle]].cpu = 5;
    let steal = |nth: usize, from_cpu, to_cpu| {
        let time_ns = spans[of_one[nth]].from_ns;
        Steal { time_ns, process: 100, id: 1, from_cpu, to_cpu }
    };
    let steals = vec![steal(middle, 1, 5), steal(middle + 1, 5, 1)];
    let only = IdSpan { id: 0, process: 106, ..spans[0] };
    let first = IdTracks { policy: "by CPU".into(), spans, steals };
    vec![first, IdTracks { policy: "one".into(), spans: vec![only], steals: Vec::new() }]
}

const ID_SLICES: &str =
    "select ts, dur, track.name as track, slice.name, pid, extract_arg(slice.arg_set_id, 'debug.cpu')
    from slice join process_track track on slice.track_id = track.id join process using(upid)
    order by ts, track.name";

const FLOWS: &str = "select a.ts as away, b.ts as here, a.track_id = b.track_id
    from flow join slice a on slice_out = a.id join slice b on slice_in = b.id order by a.ts";

#[test]
fn ids_have_tracks_and_steals_have_arrows() {
    let Some(processor) = TraceProcessor::find() else { return };
    let trace = schedule::plausible(3, 5_000);
    let looks = tracks(&trace);
    let path = exported("ids.pftrace", &trace, &looks);
    let queries = [FAULTS, SLICES, ID_SLICES, FLOWS];
    let answers = processor.query(&path, &queries).expect("our own file");
    assert_eq!(answers[0], Rows::new());
    assert_eq!(answers[1], slices(&trace));
    assert_eq!(answers[2], id_slices(&trace, &looks));
    let spans = looks[0].spans.iter().filter(|span| span.id == 1);
    let mut starts: Vec<u64> = spans.map(|span| span.from_ns).collect();
    starts.sort_unstable();
    let middle = starts.len() / 2;
    let arrow = |nth: usize| vec![json!(starts[nth]), json!(starts[nth + 1]), json!(1)];
    assert_eq!(answers[3], [arrow(middle - 1), arrow(middle)]);
    // The tracks beside the schedule are no part of it.
    let file = std::fs::File::open(path).expect("it was written");
    assert_eq!(trace.first_difference(&perfetto::read(file).expect("our own file")), None);
}

fn id_slices(trace: &Trace, looks: &[IdTracks]) -> Rows {
    let threads = threads(trace);
    let names: HashMap<Tid, &str> = threads
        .iter()
        .filter_map(|row| Some((row[0].as_u64()? as Tid, row[1].as_str()?)))
        .collect();
    let called = |thread: Tid| format!("{} ({thread})", names[&thread]);
    let mut rows = BTreeSet::new();
    for look in looks {
        for span in &look.spans {
            let IdSpan { process, id, cpu, thread, from_ns, to_ns } = *span;
            let track = format!("ID {id} of {}: {}", called(process), look.policy);
            rows.insert((from_ns, track, to_ns - from_ns, called(thread), process, cpu));
        }
    }
    let row = |(from, track, length, holder, process, cpu)| {
        vec![json!(from), json!(length), json!(track), json!(holder), json!(process), json!(cpu)]
    };
    rows.into_iter().map(row).collect()
}
