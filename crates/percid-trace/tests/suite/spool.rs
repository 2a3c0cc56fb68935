//! Recordings on their way to a file: what was written is read, wherever it ends, and becomes the same
//! Parquet file as the trace in memory.

use crate::allocator;
use crate::fixture;

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;

use fixture::bytes;
use percid_trace::event::{Event, What};
use percid_trace::gaps;
use percid_trace::parquet;
use percid_trace::quality::Quality;
use percid_trace::read::read_bytes;
use percid_trace::record::{Piece, Sink};
use percid_trace::spool::{Ring, Source, Spool, Spooled, store};
use percid_trace::subject;
use percid_trace::trace::Trace;

const TRACES: [&str; 6] = [
    "nginx.parquet",
    "build.parquet",
    "numa-scan.parquet",
    "forks.data",
    "counters.parquet",
    "counters.data",
];

/// Tests that count memory run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// A file of this test's own.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("percid-spool-{}-{name}", std::process::id()))
}

fn trace(name: &str) -> Trace {
    read_bytes(&bytes(name)).expect("a trace")
}

/// Gives a trace to a sink, some events at a time, until that wants no more.
fn give(trace: &Trace, sink: &mut dyn Sink) {
    sink.begin(&trace.origin).expect("room");
    let (mut numa, mut counted) = (&trace.numa[..], &trace.counted[..]);
    for events in trace.events.chunks(500) {
        let until = events.last().map_or(0, |event| event.time);
        let before = numa.partition_point(|event| event.time < until);
        let ended = counted.partition_point(|turn| turn.time < until);
        let piece = Piece {
            events,
            numa: &numa[..before],
            counted: &counted[..ended],
            counters: trace.origin.counters.len(),
            texts: &trace.texts,
            lost: trace.origin.lost,
            asked: until,
            until,
        };
        numa = &numa[before..];
        counted = &counted[ended..];
        if sink.take(&piece) == Ok(ControlFlow::Break(())) {
            return;
        }
    }
    let (texts, lost) = (&trace.texts, trace.origin.lost);
    let (counters, asked, until) = (trace.origin.counters.len(), u64::MAX, u64::MAX);
    let rest = Piece { events: &[], numa, counted, counters, texts, lost, asked, until };
    assert_eq!(sink.take(&rest), Ok(ControlFlow::Continue(())));
}

/// The bytes of a trace's spool.
fn spooled(trace: &Trace, name: &str, most: Option<u64>) -> (PathBuf, Vec<u8>) {
    let path = path(name);
    let mut spool = Spool::new(File::create(&path).expect("a file"), most).expect("memory");
    give(trace, &mut spool);
    spool.finish();
    let bytes = fs::read(&path).expect("what was written");
    (path, bytes)
}

#[test]
fn what_is_spooled_comes_back_in_a_few_bytes_an_event() {
    for name in TRACES {
        let trace = trace(name);
        let (path, bytes) = spooled(&trace, name, None);
        fs::remove_file(path).expect("ours");
        let back = read_bytes(&bytes).expect("a spool");
        assert_eq!(back.first_difference(&trace), None, "{name}");
        assert_eq!(back.numa, trace.numa, "{name}");
        assert_eq!(back.counted, trace.counted, "{name}");
        assert_eq!(back.origin, trace.origin, "{name}");
        let counts = trace.counted.len() * (1 + trace.origin.counters.len());
        let count = trace.events.len() + trace.numa.len() + counts;
        assert!(bytes.len() < 700 + 8 * count, "{name}: {} bytes of {count} events", bytes.len());
    }
}

/// Also what may be concluded from it, and the switches that are missing.
#[test]
fn a_finished_spool_is_the_file_of_the_trace_in_memory() {
    for name in TRACES {
        let mut trace = trace(name);
        let (path, _) = spooled(&trace, &format!("finished-{name}"), None);
        let source = Spooled::open(File::open(&path).expect("a file")).expect("a spool");
        let mut file = Vec::new();
        let stored = store(&source, &mut file, &mut |_| {}).expect("memory");
        fs::remove_file(path).expect("ours");
        gaps::close(&mut trace);
        assert_eq!(stored.quality, Quality::from_trace(&trace), "{name}");
        assert_eq!(stored.events, trace.events.len() as u64);
        assert_eq!(stored.counted_turns, trace.counted.len() as u64);
        let mut expected = Vec::new();
        parquet::write(&trace, &mut expected).expect("memory");
        let (stored, expected) = (read_bytes(&file), read_bytes(&expected));
        let (stored, expected) = (stored.expect("a trace"), expected.expect("a trace"));
        assert!(stored.same_events(&expected), "{name}");
        assert_eq!(stored.origin, expected.origin, "{name}");
    }
}

#[test]
fn wherever_a_spool_is_cut_off_what_was_whole_is_read() {
    let trace = trace("nginx.parquet");
    let (path, whole) = spooled(&trace, "cut-off", None);
    fs::remove_file(path).expect("ours");
    assert!(!read_bytes(&whole).expect("a spool").origin.coverage.cut_off, "the control");
    let (mut most, mut refused) = (0, 0);
    for end in (0..whole.len()).step_by(whole.len() / 300) {
        let Ok(read) = read_bytes(&whole[..end]) else {
            refused += 1;
            continue;
        };
        let events = read.events.len();
        assert!(read.origin.coverage.cut_off && events >= most, "cut off at {end}");
        assert_eq!(read.first_difference(&trace), (events < trace.events.len()).then_some(events));
        most = events;
        let share = end as f64 / whole.len() as f64;
        let read = events as f64 / trace.events.len() as f64;
        assert!(read > share - 0.1, "at {share} of the bytes are {read} of the events");
    }
    assert!(most > trace.events.len() - 1000 && refused < 10, "{most} events, {refused} refused");
}

#[test]
fn a_damaged_spool_is_read_up_to_the_damage() {
    let trace = trace("nginx.parquet");
    let (path, whole) = spooled(&trace, "damaged", None);
    for at in (whole.len() / 4..whole.len()).step_by(whole.len() / 40) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        let read = read_bytes(&damaged).expect("its beginning is whole");
        let events = read.events.len();
        assert!(read.origin.coverage.cut_off && events > 0, "damaged at {at}");
        assert_eq!(read.first_difference(&trace), (events < trace.events.len()).then_some(events));
        fs::write(&path, &damaged).expect("room");
        let source = Spooled::open(File::open(&path).expect("a file")).expect("a spool");
        let stored = store(&source, Vec::new(), &mut |_| {}).expect("memory");
        assert!(stored.left_out > 0 && stored.origin.coverage.cut_off, "damaged at {at}");
    }
    fs::remove_file(path).expect("ours");
}

#[test]
fn any_bytes_are_read_or_refused_within_bounds() {
    let _alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let whole = ["numa-scan.parquet", "counters.parquet"].map(|name| {
        let (path, whole) = spooled(&trace(name), &format!("hostile-{name}"), None);
        fs::remove_file(path).expect("ours");
        whole[..whole.len().min(60_000)].to_vec()
    });
    let mut random = percid_sim::random::Random::new(5);
    let (mut read, mut refused) = (0, 0);
    for round in 0..4000 {
        let whole = &whole[round % 2];
        let mut damaged = whole.to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = random.below(256) as u8;
        }
        damaged.truncate(random.below(damaged.len() as u64 + 1) as usize);
        let (ok, taken) = allocator::measured(|| read_bytes(&damaged).is_ok());
        assert!(taken < 700 * damaged.len() + (24 << 20), "{taken} for {}", damaged.len());
        match ok {
            true => read += 1,
            false => refused += 1,
        }
    }
    assert!(read > 0 && refused > 0, "{read} and {refused}");
}

#[test]
fn a_spool_stays_below_its_limit_and_is_whole() {
    let trace = trace("nginx.parquet");
    let (path, unlimited) = spooled(&trace, "unlimited", None);
    fs::remove_file(path).expect("ours");
    let most = unlimited.len() as u64 / 2;
    let (path, bytes) = spooled(&trace, "limited", Some(most));
    fs::remove_file(path).expect("ours");
    assert!(bytes.len() as u64 <= most, "{} of {most}", bytes.len());
    assert!(bytes.len() as u64 > most * 9 / 10, "{} of {most}", bytes.len());
    let read = read_bytes(&bytes).expect("a spool");
    assert!(!read.origin.coverage.cut_off, "it has come to its end");
    assert_eq!(read.first_difference(&trace), Some(read.events.len()));
    let (path, bytes) = spooled(&trace, "ample", Some(unlimited.len() as u64));
    fs::remove_file(path).expect("ours");
    assert_eq!(bytes, unlimited, "the control");
}

/// All that is in a ring.
fn in_ring(trace: &Trace, most: usize) -> Trace {
    let mut ring = Ring::new(most).expect("memory");
    give(trace, &mut ring);
    let mut file = Vec::new();
    let stored = store(&ring.snapshot(), &mut file, &mut |_| {}).expect("memory");
    assert!(!stored.origin.coverage.cut_off);
    read_bytes(&file).expect("a trace")
}

#[test]
fn a_ring_keeps_the_newest_and_who_lives_by_then() {
    let trace = trace("nginx.parquet");
    let (path, whole) = spooled(&trace, "ring", None);
    fs::remove_file(path).expect("ours");
    let all = in_ring(&trace, usize::MAX);
    let last = in_ring(&trace, whole.len() / 4);
    let told = |event: &Event| matches!(event.what, What::Member { .. });
    let (kept, of) = (last.events.len(), all.events.len());
    assert!(kept > of / 6 && kept < of / 3, "{kept} of {of}");
    // The repeated events come first. The rest is the end of the whole trace.
    let switches = |trace: &Trace| -> Vec<Event> {
        let is_switch = |event: &&Event| matches!(event.what, What::Switch { .. });
        trace.events.iter().filter(is_switch).copied().collect()
    };
    let (end, whole) = (switches(&last), switches(&all));
    assert_eq!(end[1..], whole[whole.len() - end.len() + 1..], "the first may be an inferred one");
    assert!(last.events.iter().any(told));
    // Every thread that runs has its process.
    let space = |trace: &Trace| Quality::from_trace(trace).unbegun;
    assert!(space(&last) <= space(&all) + 4);
}

#[test]
fn a_ring_is_about_the_processes_that_live_by_then() {
    let mut trace = trace("nginx.parquet");
    let member = trace.events.iter().find_map(|event| match event.what {
        What::Member { process, .. } => Some(process),
        _ => None,
    });
    let root = member.expect("it was there when the recording began");
    trace.origin.subject = vec![root];
    let whole = in_ring(&trace, usize::MAX);
    assert_eq!(whole.origin.subject, [root], "what comes of it is still to be seen");
    let (path, bytes) = spooled(&trace, "subject", None);
    fs::remove_file(path).expect("ours");
    let last = in_ring(&trace, bytes.len() / 4);
    let forks = |trace: &Trace| {
        let is_fork = |event: &&Event| matches!(event.what, What::Fork { .. });
        trace.events.iter().filter(is_fork).count()
    };
    assert!(forks(&last) < forks(&whole), "the control: some are forgotten");
    assert!(last.origin.subject.len() > 1, "{:?}", last.origin.subject);
    let (all, last) = (subject::processes(&whole), subject::processes(&last));
    assert!(last.iter().all(|process| all.contains(process)), "{last:?} of {all:?}");
    assert!(last.contains(all.last().expect("some")), "{last:?} of {all:?}");
}

/// The ring's bytes are those of the spool.
#[test]
fn a_snapshot_does_not_change_while_recording_goes_on() {
    let trace = trace("nginx.parquet");
    let mut ring = Ring::new(1 << 30).expect("memory");
    let half = Trace { events: trace.events[..5000].to_vec(), ..trace.clone() };
    give(&half, &mut ring);
    let snapshot = ring.snapshot();
    let count = || {
        let mut count = 0;
        let counted = snapshot.each(&mut |part| {
            count += part.events.len();
            Ok(())
        });
        counted.expect("memory");
        count
    };
    assert_eq!(count(), 5000);
    give(&trace, &mut ring);
    assert_eq!(count(), 5000);
}

/// Found by the fuzz target `spool`: what was recovered of such a file was no table that can be read.
#[test]
fn a_spool_whose_times_go_back_is_not_made_a_table() {
    let path = path("backwards");
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let mut spool = Spool::new(file.expect("a file"), None).expect("room");
    give(&trace("build.parquet"), &mut spool);
    spool.finish();
    let whole = fs::read(&path).expect("a spool");
    let stored = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("room");
        let spooled = Spooled::open(File::open(&path).expect("a file")).expect("a spool");
        store(&spooled, Vec::new(), &mut |_| {}).map(|stored| stored.events)
    };
    assert!(stored(&whole).expect("the control") > 0);
    // Behind the magic bytes frames follow: their length, a checksum, the kind, and the content. The last
    // one says that this is the end.
    const HEAD: usize = 9;
    let (mut at, mut frames) = (8, Vec::new());
    while at < whole.len() {
        let length: [u8; 4] = whole[at..at + 4].try_into().expect("four bytes");
        let end = at + HEAD + u32::from_le_bytes(length) as usize;
        frames.push(&whole[at..end]);
        at = end;
    }
    let (end, rest) = frames.split_last().expect("frames");
    let twice = [&whole[..8], &rest.concat(), &rest[1..].concat(), end].concat();
    let refused = stored(&twice).expect_err("it was stored").to_string();
    assert!(refused.contains("go back, which no recorder writes"), "{refused}");
    fs::remove_file(&path).expect("a file of this test");
}
