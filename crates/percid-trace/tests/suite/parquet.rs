//! Traces stored as Parquet come back as they were, and files that are wrong say so.

// On big-endian machines Parquet is not supported.
#![cfg(target_endian = "little")]

use crate::schedule;

use percid_sim::random::Random;
use percid_trace::error::{Error, Position};
use percid_trace::event::{Event, Tid, What};
use percid_trace::{Trace, parquet};

fn stored(trace: &Trace) -> Vec<u8> {
    let mut file = Vec::new();
    parquet::write(trace, &mut file).expect("memory takes everything");
    file
}

/// The error of a file that is malformed.
fn malformed(file: Vec<u8>) -> percid_trace::error::Malformed {
    match parquet::read_bytes(file) {
        Err(Error::Malformed(malformed)) => malformed,
        Err(error) => panic!("not malformed: {error}"),
        Ok(trace) => panic!("{} events were read", trace.events.len()),
    }
}

#[test]
fn a_schedule_comes_back() {
    let trace = schedule::plausible(1, 200_000);
    let back = parquet::read_bytes(stored(&trace)).expect("our own file");
    assert_eq!(trace.first_difference(&back), None);
    assert_eq!(trace.origin, back.origin);
}

#[test]
fn every_value_that_an_event_can_have_comes_back() {
    for seed in 0..20 {
        let mut trace = schedule::arbitrary(seed, 5_000);
        (trace.origin.counters, trace.counted) = schedule::counted(seed, 1_000);
        let back = parquet::read_bytes(stored(&trace)).expect("our own file");
        assert_eq!(trace.first_difference(&back), None, "seed {seed}");
        assert_eq!(trace.counted, back.counted, "seed {seed}");
        assert_eq!(trace.origin, back.origin);
    }
}

#[test]
fn an_empty_trace_comes_back() {
    let back = parquet::read_bytes(stored(&Trace::default())).expect("our own file");
    assert!(back.events.is_empty());
}

#[test]
fn a_changed_event_is_noticed() {
    let trace = schedule::plausible(1, 1000);
    let mut other = trace.clone();
    other.events[700].time += 1;
    let back = parquet::read_bytes(stored(&other)).expect("our own file");
    assert_eq!(trace.first_difference(&back), Some(700));
}

#[test]
fn a_time_that_goes_back_is_an_error_at_its_row() {
    let tick = |time, cpu| Event { time, cpu, what: What::Tick { thread: 5 as Tid } };
    let events = vec![tick(10, 0), tick(30, 1), tick(20, 0), tick(29, 1)];
    let trace = Trace { events, ..Trace::default() };
    let found = malformed(stored(&trace));
    assert_eq!(found.at, Position::Row(3));
    assert_eq!(found.what, "the time of CPU 1 goes back from 30 to 29 ns");
}

#[test]
fn rows_by_cpu_become_events_by_time() {
    let trace = schedule::plausible(2, 10_000);
    let mut by_cpu = trace.clone();
    by_cpu.events.sort_by_key(|event| event.cpu);
    assert_ne!(trace.first_difference(&by_cpu), None);
    let back = parquet::read_bytes(stored(&by_cpu)).expect("our own file");
    assert_eq!(trace.first_difference(&back), None);
}

#[test]
fn a_time_that_no_signed_number_holds_is_refused() {
    let mut trace = schedule::plausible(1, 10);
    trace.events[3].time = 1 << 63;
    let refused = parquet::write(&trace, Vec::new()).expect_err("too late");
    assert_eq!(refused.to_string(), "row 3: the time is beyond 2^63 - 1 ns");
}

#[test]
fn what_is_no_parquet_is_refused() {
    assert_eq!(malformed(Vec::new()).at, Position::Byte(0));
    assert_eq!(malformed(b"time_ns,cpu\n1,2\n".to_vec()).at, Position::Byte(0));
    assert_eq!(malformed(b"PAR1 and nothing more".to_vec()).at, Position::Byte(17));
}

#[test]
fn no_piece_of_a_file_is_a_trace() {
    let file = stored(&schedule::plausible(3, 300));
    for length in 0..file.len() {
        malformed(file[..length].to_vec());
    }
}

/// The library that decodes Parquet would reserve memory for all the groups of rows that the
/// description declares.
#[test]
fn a_description_that_declares_two_thousand_million_groups_is_refused() {
    let version = [0x15, 0x02];
    // A list of one element, with a name and no children.
    let schema = [0x19, 0x1c, 0x48, 0x01, b'a', 0x15, 0x00, 0x00];
    let rows = [0x16, 0x00];
    let groups = [0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00];
    let description = [&version[..], &schema, &rows, &groups].concat();
    let length = (description.len() as u32).to_le_bytes();
    let file = [b"PAR1", &description[..], &length, b"PAR1"].concat();
    let found = malformed(file);
    assert_eq!(found.what, "the file's description is damaged");
    assert_eq!(found.at, Position::Byte(4 + 19));
}

/// Damage anywhere is an error, or a trace that is as large as the file can be: never a panic that
/// gets out, and never memory that the file does not justify.
#[test]
fn damaged_files_are_survived() {
    let seed = seed();
    let mut random = Random::new(seed);
    let file = stored(&schedule::plausible(4, 2_000));
    let description = u32::from_le_bytes(file[file.len() - 8..][..4].try_into().unwrap()) as usize;
    eprintln!("seed {seed}");
    for round in 0..rounds(1_000) {
        let mut damaged = file.clone();
        // Half of the damage is in the description, where it does most harm.
        let start = if round % 2 == 0 { 0 } else { file.len() - description - 8 };
        for _ in 0..1 + random.below(4) {
            let at = start + random.below((file.len() - start) as u64) as usize;
            damaged[at] = match random.below(4) {
                0 => 0xff,
                1 => damaged[at] ^ 1 << random.below(8),
                _ => random.below(256) as u8,
            };
        }
        if let Ok(trace) = parquet::read_bytes(damaged) {
            assert!(trace.events.len() <= 2 << 20, "round {round}");
        }
    }
}

/// A seed for this run; the one of an earlier run can be given again.
fn seed() -> u64 {
    let given = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| u64::from(std::process::id()))
}

/// Returns the number of rounds of a random test.
fn rounds(usual: u32) -> u32 {
    std::env::var("PERCID_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usual)
}
