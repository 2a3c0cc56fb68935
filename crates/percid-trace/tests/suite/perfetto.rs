//! Traces written for Perfetto come back as they were, and files that are wrong say so.

use crate::schedule;

use std::collections::HashMap;

use percid_sim::random::Random;
use percid_trace::Trace;
use percid_trace::error::{Error, Malformed, Position};
use percid_trace::event::{Event, IDLE, Shares, State, UNKNOWN, What};
use percid_trace::perfetto;

fn exported(trace: &Trace) -> Vec<u8> {
    let mut file = Vec::new();
    perfetto::write(trace, &[], &mut file).expect("memory takes everything");
    file
}

/// The error of a file that is malformed.
fn malformed(file: &[u8]) -> Malformed {
    match perfetto::read(file) {
        Err(Error::Malformed(malformed)) => malformed,
        Err(error) => panic!("not malformed: {error}"),
        Ok(trace) => panic!("{} events were read", trace.events.len()),
    }
}

#[test]
fn a_schedule_comes_back() {
    for seed in 0..5 {
        let trace = schedule::plausible(seed, 50_000);
        let back = perfetto::read(&exported(&trace)[..]).expect("our own file");
        assert_eq!(trace.first_difference(&back), None, "seed {seed}");
        assert_eq!(back.origin, trace.origin, "seed {seed}");
    }
}

/// Returns the part of a trace that Perfetto's format can hold.
fn carried(mut trace: Trace) -> Trace {
    let mut names = HashMap::new();
    let texts = trace.texts.clone();
    trace.events.retain(|event| match event.what {
        What::Name { thread: IDLE | UNKNOWN, .. } => false,
        What::Name { name, .. } if texts.get(name).is_empty() => false,
        What::Name { thread, name } => names.insert(thread, name) != Some(name),
        What::Fork { child, .. } => {
            names.remove(&child);
            true
        }
        _ => true,
    });
    trace
}

#[test]
fn every_value_that_perfetto_carries_comes_back() {
    for seed in 0..20 {
        let mut trace = schedule::arbitrary(seed, 5_000);
        // Two tracepoints tell of a new thread; which one it was is known by what the thread
        // shares.
        trace
            .events
            .retain(|event| !matches!(event.what, What::Fork { shares: Shares::Unknown, .. }));
        let back = perfetto::read(&exported(&trace)[..]).expect("our own file");
        assert_eq!(carried(trace).first_difference(&back), None, "seed {seed}");
    }
}

/// Two turns of thread 7 of a process that was recorded alone, and 20 and 30 between them.
#[test]
fn another_thread_runs_where_nothing_was_recorded() {
    let switch = |time, prev, next| Event {
        time,
        cpu: 0,
        what: What::Switch { prev, state: State(1), next },
    };
    let member = Event { time: 1, cpu: 0, what: What::Member { thread: 7, process: 7 } };
    let events = vec![member, switch(2, 20, 7), switch(5, 7, 20), switch(8, 30, 7)];
    let trace = Trace { events, ..Trace::default() };
    let file = exported(&trace);
    let others = file.windows(5).filter(|window| window == b"other").count();
    assert_eq!(others, 2, "it begins to run at 5, and stops at 8");
    let back = perfetto::read(&file[..]).expect("our own file");
    assert_eq!(trace.first_difference(&back), None, "it is none of the trace's");
    let whole = Trace { events: trace.events[..3].to_vec(), ..Trace::default() };
    assert!(!exported(&whole).windows(5).any(|window| window == b"other"));
}

#[test]
fn a_changed_event_is_noticed() {
    let trace = schedule::plausible(1, 10_000);
    let mut other = trace.clone();
    let switch = other.events.iter().rposition(|event| matches!(event.what, What::Switch { .. }));
    let at = switch.expect("a switch");
    let Event { what: What::Switch { next, .. }, .. } = &mut other.events[at] else { panic!() };
    *next = 4_000_000;
    let back = perfetto::read(&exported(&other)[..]).expect("our own file");
    assert_eq!(trace.first_difference(&back), Some(at));
}

#[test]
fn what_is_no_trace_of_perfetto_is_refused() {
    assert_eq!(malformed(b"").at, Position::Byte(0));
    let found = malformed(b"PERFILE2");
    assert_eq!(found.at, Position::Byte(0));
    assert_eq!(found.what, "a packet expected (byte 0x0a), 0x50 found");
}

#[test]
fn a_file_that_ends_in_a_packet_says_where() {
    let file = exported(&schedule::plausible(1, 100));
    let ends: Vec<usize> = ends(&file);
    for length in 1..file.len() {
        if ends.contains(&length) {
            perfetto::read(&file[..length]).expect("whole packets");
        } else {
            assert_eq!(malformed(&file[..length]).at, Position::Byte(length as u64));
        }
    }
}

/// Returns the offsets at which packets end.
fn ends(file: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let mut length = 0;
        for (shift, &byte) in (0..).step_by(7).zip(&file[at + 1..]) {
            at += 1;
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        at += 1 + length;
        ends.push(at);
    }
    ends
}

#[test]
fn a_packet_longer_than_any_is_refused() {
    let found = malformed(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]);
    assert_eq!(found.at, Position::Byte(0));
    assert!(found.what.starts_with("a packet of 4294967295 bytes"), "{}", found.what);
    malformed(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
}

/// A packet with a field that contains bytes.
fn packet(field: u32, content: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    prost::encoding::bytes::encode(field, &content.to_vec(), &mut packet);
    let mut file = Vec::new();
    prost::encoding::bytes::encode(1, &packet, &mut file);
    file
}

fn compressed(content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).expect("memory takes everything");
    packet(50, &encoder.finish().expect("memory takes everything"))
}

#[test]
fn compressed_packets_are_read() {
    let trace = schedule::plausible(1, 10_000);
    let file = compressed(&exported(&trace));
    let back = perfetto::read(&file[..]).expect("compressed");
    assert_eq!(trace.first_difference(&back), None);
    let half = &file[..file.len() / 2];
    assert_eq!(malformed(half).at, Position::Byte(half.len() as u64));
}

#[test]
fn bombs_are_refused() {
    // Packets that inflate a thousand times, a compressed packet in a compressed packet, and
    // messages in messages.
    let bomb = compressed(&[0x0a, 0].repeat(10 << 20));
    let what = malformed(&bomb).what;
    assert_eq!(what, "compressed packets are more than 64 times as long");
    let what = malformed(&compressed(&compressed(&packet(1, &[])))).what;
    assert!(what.ends_with("compressed packets in compressed packets"), "{what}");
    // Groups, the oldest form of a message in a message, which no field announces by a length.
    const GROUP_OF_FIELD_3: u8 = 0x1b;
    let mut deep = Vec::new();
    prost::encoding::bytes::encode(1, &vec![GROUP_OF_FIELD_3; 1 << 20], &mut deep);
    assert_eq!(malformed(&deep).at, Position::Byte(0));
}

#[test]
fn damaged_files_are_survived() {
    let given = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("seed {seed}");
    let rounds = std::env::var("PERCID_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let mut random = Random::new(seed);
    let file = exported(&schedule::plausible(4, 500));
    let files = [compressed(&file), file];
    for round in 0..rounds.unwrap_or(5_000) {
        let mut damaged = files[round % 2].clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = match random.below(4) {
                0 => 0xff,
                1 => damaged[at] ^ 1 << random.below(8),
                _ => random.below(256) as u8,
            };
        }
        if let Ok(trace) = perfetto::read(&damaged[..]) {
            assert!(trace.events.len() <= damaged.len(), "round {round}");
        }
    }
}
