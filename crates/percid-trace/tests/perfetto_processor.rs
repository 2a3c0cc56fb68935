//! What Perfetto's own trace processor makes of our files.

mod schedule;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use percid_perfetto::{Rows, TraceProcessor};
use percid_trace::Trace;
use percid_trace::event::{Cpu, IDLE, Shares, Tid, What};
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

/// What the trace processor counts of what it did not understand or lost.
const FAULTS: &str = "select name, value from stats
    where severity in ('error', 'data_loss') and value > 0";

/// Every slice of every CPU's track: when, where, who, and why it ended; -1 and none where the
/// trace ends before.
const SLICES: &str =
    "select ts, iif(dur < 0, -1, ts + dur), ucpu, tid, iif(dur < 0, null, end_state)
    from sched join thread using(utid) order by ts, ucpu";

const THREADS: &str = "select tid, thread.name, pid from thread left join process using(upid)
    where tid != 0 order by tid, utid";

/// The slices that the events of a trace tell of, as [`SLICES`] would show them.
fn slices(trace: &Trace) -> Rows {
    let mut slices = Rows::new();
    let mut open: HashMap<Cpu, usize> = HashMap::new();
    for event in &trace.events {
        let What::Switch { prev, state, next } = event.what else { continue };
        let last = open.insert(event.cpu, slices.len());
        // Where a switch is missing, the end of the slice before it is unknown.
        if let Some(last) = last.filter(|&last| slices[last][3] == json!(prev)) {
            slices[last][1] = json!(event.time);
            slices[last][4] = json!(state.to_string());
        }
        let (until, state) = (json!(-1), Value::Null);
        slices.push(vec![json!(event.time), until, json!(event.cpu), json!(next), state]);
    }
    slices
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

/// How many tracepoints make these events. A new thread's name stands in the one that tells of it.
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
    let all = "select count(*) from ftrace_event";
    let queries = [FAULTS, SLICES, THREADS, all];
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
}

/// What a recording that is not gapless makes the trace processor say: kernels leave out switches
/// at times.
const BUT_GAPS: &str = "select name, value from stats
    where severity in ('error', 'data_loss') and value > 0 and name != 'mismatched_sched_switch_tids'";

// The traces are Parquet files.
#[cfg(target_endian = "little")]
#[test]
fn schedules_of_real_programs_are_the_same() {
    let Some(processor) = TraceProcessor::find() else { return };
    for name in ["postgres", "build", "nginx"] {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let trace = read::read(&fixtures.join(name).with_extension("parquet")).expect(name);
        let path = exported(&format!("{name}.pftrace"), &trace, &[]);
        let answers = processor.query(&path, &[BUT_GAPS, SLICES]).expect("our own file");
        assert_eq!(answers[0], Rows::new(), "{name}");
        let expected = slices(&trace);
        assert!(expected.len() > 500, "{name}");
        for (found, expected) in answers[1].iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(answers[1].len(), expected.len(), "{name}");
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

/// As if one policy had given every thread the ID of its CPU's number, and another the ID 0.
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
    // What is shown beside the schedule is no part of it.
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
