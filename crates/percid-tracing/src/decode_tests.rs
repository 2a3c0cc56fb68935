//! Encoded records are decoded, and other bytes are not.

use std::fmt;

use tracing_subscriber::prelude::*;

use crate::callsites::Callsites;
use crate::decode::{OtherSpan, Record, Text, Value};
use crate::layout::{CHECKSUM, Kind, RECORD_BYTES, TEXT_BYTES, checksum};
use crate::{FlightRecorder, thread};

/// Returns the bytes of the records that `record` makes, in their order, and the recorder to which
/// they refer.
fn recorded(record: impl FnOnce()) -> (FlightRecorder, Vec<Vec<u8>>) {
    let (layer, recorder) = FlightRecorder::builder().build();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), record);
    let mut records: Vec<Vec<u8>> =
        recorder.recording().look(|held, _| held.iter().map(|(_, bytes)| bytes.to_vec()).collect());
    records.sort_by_key(|bytes| decoded(bytes, &recorder).time);
    (recorder, records)
}

fn decoded<'b>(bytes: &'b [u8], recorder: &FlightRecorder) -> Record<'b> {
    Record::decode(bytes, &recorder.recording().callsites).expect("a whole record")
}

fn whole(text: &str) -> Text<'_> {
    Text { text, cut: false }
}

/// Records one of each type, and spans.
fn all_kinds() {
    let parent = tracing::info_span!("parent", a = 1);
    let span = tracing::info_span!(parent: &parent, "span", late = tracing::field::Empty);
    span.follows_from(&parent);
    span.in_scope(|| {
        span.record("late", true);
        tracing::warn!(
            target: "elsewhere",
            i64 = -1,
            u64 = u64::MAX,
            f64 = 0.5,
            i128 = i128::MIN,
            u128 = u128::MAX,
            no = false,
            str = "text \"with\" quotes\n",
            debug = ?Some(1),
            "message {}", 7
        );
    });
}

#[test]
fn values_come_back_as_they_were() {
    let (recorder, records) = recorded(all_kinds);
    let records: Vec<_> = records.iter().map(|bytes| decoded(bytes, &recorder)).collect();
    let kinds: Vec<_> = records.iter().map(|record| record.kind).collect();
    use Kind::*;
    assert_eq!(kinds, [New, New, Follows, Enter, Set, Event, Exit, Close, Close]);
    let parent = records[0].span.expect("a span");
    let span = records[1].span.expect("a span");
    assert_eq!(records[0].fields, [("a", Value::I64(1))]);
    assert_eq!(records[1].other, Some(OtherSpan { id: parent, name: "parent" }));
    assert_eq!(records[2].other, records[1].other);
    assert_eq!(records[4].fields, [("late", Value::Bool(true))]);
    let event = &records[5];
    assert_eq!((event.metadata.target(), event.thread), ("elsewhere", thread::number()));
    assert_eq!(event.other, Some(OtherSpan { id: span, name: "span" }));
    let mut fields = event.fields.clone();
    fields.sort_by_key(|(name, _)| *name);
    let expected = [
        ("debug", Value::Debug(whole("Some(1)"))),
        ("f64", Value::F64(0.5)),
        ("i128", Value::I128(i128::MIN)),
        ("i64", Value::I64(-1)),
        ("message", Value::Debug(whole("message 7"))),
        ("no", Value::Bool(false)),
        ("str", Value::Str(whole("text \"with\" quotes\n"))),
        ("u128", Value::U128(u128::MAX)),
        ("u64", Value::U64(u64::MAX)),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn texts_are_cut_between_characters() {
    let long = "é".repeat(TEXT_BYTES);
    let odd = format!("x{long}");
    let (recorder, records) = recorded(|| {
        tracing::info!(long, odd = ?format_args!("{odd}"));
    });
    let record = decoded(&records[0], &recorder);
    let cut = |text| Text { text, cut: true };
    let expected = [
        ("long", Value::Str(cut(&long[..TEXT_BYTES]))),
        // It has the rest of the record, except for the place of half a character.
        ("odd", Value::Debug(cut(&odd[..record_room(&records[0])]))),
    ];
    assert_eq!(record.fields, expected);
    assert!(!record.left_out);
}

/// Returns the number of bytes of a text after another text of maximum length.
fn record_room(bytes: &[u8]) -> usize {
    let head = 36;
    bytes.len() - head - (4 + TEXT_BYTES) - 4
}

#[test]
fn fields_without_room_are_left_out() {
    let long = "x".repeat(TEXT_BYTES);
    let (recorder, records) = recorded(|| {
        tracing::info!(a = long, b = long, c = 1, d = long);
        tracing::info!(a = long, b = 1);
    });
    let first = decoded(&records[0], &recorder);
    assert!(first.left_out);
    assert_eq!(records[0].len(), RECORD_BYTES);
    let names: Vec<_> = first.fields.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(!decoded(&records[1], &recorder).left_out);
}

#[test]
fn a_value_whose_formatting_fails_is_marked() {
    struct Fails;

    impl fmt::Debug for Fails {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("begun")?;
            Err(fmt::Error)
        }
    }

    let (recorder, records) = recorded(|| tracing::info!(fails = ?Fails));
    let expected = [("fails", Value::Debug(Text { text: "begun", cut: true }))];
    assert_eq!(decoded(&records[0], &recorder).fields, expected);
}

/// Negative control: each flipped bit and each missing byte is detected.
#[test]
fn damage_is_noticed() {
    let (recorder, records) = recorded(all_kinds);
    let callsites = &recorder.recording().callsites;
    for whole in &records {
        assert!(Record::decode(whole, callsites).is_some());
        for bit in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&damaged, callsites), None, "bit {bit}");
        }
        for length in 0..whole.len() {
            assert_eq!(Record::decode(&whole[..length], callsites), None, "length {length}");
        }
    }
}

/// Corrects the checksum, so that the bytes after it are read.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some((sum, rest)) = bytes.split_first_chunk_mut::<CHECKSUM>() {
        *sum = checksum(rest);
    }
    bytes
}

/// Invalid content with a right checksum is detected.
#[test]
fn nonsense_with_a_right_checksum_is_noticed() {
    let (recorder, records) = recorded(|| tracing::info!(text = "abc"));
    let callsites = &recorder.recording().callsites;
    let whole = &records[0];
    let with = |place: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[place] = byte;
        signed(bytes)
    };
    let end = whole.len();
    assert_eq!(with(end - 1, b'd').len(), end);
    assert!(Record::decode(&with(end - 1, b'd'), callsites).is_some());
    let (of_span, spans) = recorded(|| tracing::info_span!("span").in_scope(|| ()));
    let of_span = &of_span.recording().callsites;
    let mut without_span = spans[1].clone();
    assert!(Record::decode(&without_span, of_span).is_some_and(|enter| enter.kind == Kind::Enter));
    without_span[24..32].fill(0);
    let mut event = without_span.clone();
    event[4] = Kind::Event as u8;
    for (what, bytes) in [("no span", without_span), ("an event of a span's", event)] {
        assert_eq!(Record::decode(&signed(bytes), of_span), None, "{what}");
    }
    for (what, bytes) in [
        ("no kind", with(4, 0)),
        ("a span's kind", with(4, Kind::Enter as u8)),
        ("no flag", with(5, 2)),
        ("no callsite", with(22, 0x7f)),
        ("no callsite of the span", with(24, 1)),
        ("no field", with(36, 1)),
        ("no tag", with(37, 0)),
        ("too short a text", with(38, 2)),
        ("too long a text", with(38, 4)),
        ("no UTF-8", with(end - 1, 0xff)),
    ] {
        assert_eq!(Record::decode(&bytes, callsites), None, "{what}");
    }
}

/// Decodes random bytes, and records with random changes. Nothing panics, and random bytes are not
/// a record.
#[test]
fn any_bytes_are_decoded_without_a_panic() {
    let given = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("PERCID_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (recorder, records) = recorded(all_kinds);
    let callsites = &recorder.recording().callsites;
    let rounds = if cfg!(miri) { 100 } else { 100_000 };
    let mut still_whole = 0;
    for _ in 0..rounds {
        let mut bytes = vec![0; random.usize(..200)];
        random.fill(&mut bytes);
        assert_eq!(Record::decode(&bytes, callsites), None);
        let _ = Record::decode(&signed(bytes), callsites);
        let changed = signed(change(&records[random.usize(..records.len())], &mut random));
        still_whole += u32::from(Record::decode(&changed, callsites).is_some());
    }
    // Otherwise the changes would not reach the code after the first checks.
    assert!(still_whole > 0);
}

fn change(record: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = record.to_vec();
    for _ in 0..random.usize(1..4) {
        let place = random.usize(..bytes.len());
        match random.u8(..4) {
            0 => bytes.truncate(place.max(CHECKSUM)),
            1 => bytes.insert(place, random.u8(..)),
            2 => bytes[place] = random.u8(..),
            _ => bytes[place] ^= 1 << random.u8(..8),
        }
    }
    bytes
}

#[test]
fn records_need_the_callsites_they_were_made_with() {
    let (_recorder, records) = recorded(|| tracing::info!("event"));
    assert_eq!(Record::decode(&records[0], &Callsites::new()), None);
}
