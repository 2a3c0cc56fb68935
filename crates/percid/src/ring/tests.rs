//! Tests of rings: shards by themselves, and rings with every source.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::shard::{Reading, Shard};
use super::*;
use crate::critical::ring::{self as layout, Append};
use crate::handle::State;
use crate::id::Source;
use crate::sys::steps::{self, Step};

fn rings(bytes: usize, overflow: Overflow) -> impl Iterator<Item = (Source, Ring)> {
    let sources = Source::ALL.iter().copied().filter(|source| source.prepare().is_ok());
    sources.map(move |source| {
        (source, Ring::with_source(source, bytes, overflow).expect("an available source"))
    })
}

/// Without the look that comes first, each record is tried once more before it is dropped.
#[test]
fn a_record_for_a_full_ring_is_dropped_after_one_look() {
    for (source, ring) in rings(1024, Overflow::DropNewest) {
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let _watching = steps::watch(move |step| {
            (step == Step::Try).then(|| counted.fetch_add(1, Relaxed));
            None
        });
        let dropped = (0..10_000).filter(|_| ring.append(&[0; 16]).is_err()).count();
        assert!(dropped > 5000 && ring.lost() == dropped as u64, "{source}");
        // Sections that were aborted are tried again; half of them never are.
        assert!(tries.load(Relaxed) < dropped / 2, "{source}: {tries:?} tries");
    }
}

const CAPACITY: u64 = 1024;

/// Returns a shard with these ends, and its memory.
fn with_ends(head: u64, tail: u64) -> (Vec<layout::Word>, Shard) {
    let words = (layout::DATA + CAPACITY as usize) / 8;
    let memory: Vec<layout::Word> = (0..words).map(|_| layout::Word::new(0)).collect();
    memory[layout::HEAD / 8].store(head, Relaxed);
    memory[layout::TAIL / 8].store(tail, Relaxed);
    let shard = Shard { address: memory.as_ptr().expose_provenance(), capacity: CAPACITY };
    (memory, shard)
}

#[test]
fn room_is_what_the_ends_leave_even_if_they_are_of_different_times() {
    let request = Append::new(&[0; 8], CAPACITY).expect("a record that fits");
    for (head, tail, expected) in [
        (0, 0, true),
        (CAPACITY, 0, false),
        (CAPACITY, CAPACITY, true),
        // The tail was loaded after other threads had appended and discarded.
        (64, 128, true),
        (u64::MAX - 7, 8, true),
        (8, u64::MAX - 7, true),
        (CAPACITY - 8, u64::MAX - 7, false),
    ] {
        let (_memory, shard) = with_ends(head, tail);
        assert_eq!(shard.has_room(&request), expected, "head {head}, tail {tail}");
    }
}

#[test]
fn discarding_frees_whole_records_an_eighth_at_a_time() {
    let (_memory, shard) = with_ends(0, 0);
    let request = |length| Append::new(&[7; 64][..length], CAPACITY).expect("it fits");
    assert_eq!(shard.worth_keeping(&request(8)), CAPACITY - CAPACITY / 8);
    let longest = vec![0; layout::max_record_len(CAPACITY) as usize];
    let longest = Append::new(&longest, CAPACITY).expect("it fits");
    assert_eq!(shard.worth_keeping(&longest), CAPACITY - longest.needed);
    (0..12).for_each(|_| shard.append(&request(64)));
    let (_, head) = shard.ends();
    for keep in (0..=head).rev().step_by(8) {
        shard.discard(keep);
        let (tail, _) = shard.ends();
        assert!((keep.saturating_sub(64)..=keep).contains(&(head - tail)), "{keep}: {tail}");
        assert_eq!(tail % request(64).size, 0);
    }
}

#[test]
fn the_numbers_of_records_come_round() {
    const LAST: u64 = (1 << 48) - 1;
    let (memory, shard) = with_ends(0, 0);
    memory[layout::DATA / 8].store(LAST * layout::ONE, Relaxed);
    (0..3).for_each(|_| shard.append(&Append::new(b"it", CAPACITY).expect("it fits")));
    let mut buffer = Vec::new();
    let mut read = || {
        let mut reading = Reading::start(shard, true);
        reading.next(&mut buffer).map(|read| (read.number, read.skipped))
    };
    assert_eq!(read(), Some((LAST, LAST)), "none was expected before");
    assert_eq!((read(), read(), read()), (Some((0, 0)), Some((1, 0)), None));
    // The record with the last number but one follows a gap.
    let (_, head) = shard.ends();
    memory[(layout::DATA + head as usize) / 8].store((LAST - 1) * layout::ONE, Relaxed);
    shard.append(&Append::new(b"it", CAPACITY).expect("it fits"));
    assert_eq!(read(), Some((LAST - 1, LAST - 3)));
    memory[(layout::DATA + head as usize + 16) / 8].store(0, Relaxed);
    shard.append(&Append::new(b"it", CAPACITY).expect("it fits"));
    assert_eq!(read(), Some((0, 1)));
}

#[test]
fn where_the_newest_are_kept_the_tail_is_the_writers() {
    let (_memory, shard) = with_ends(0, 0);
    let request = Append::new(&[7; 200], CAPACITY).expect("it fits");
    (0..4).for_each(|_| shard.append(&request));
    let mut reading = Reading::start(shard, false);
    let mut buffer = Vec::new();
    assert!((0..4).all(|_| reading.next(&mut buffer).is_some()));
    reading.finish();
    assert_eq!(shard.ends(), (0, 4 * request.size));
}

/// The tail moves a quarter of the ring at a time, and to the end when the reading ends.
#[test]
fn a_consumer_gives_room_back_while_it_reads_but_not_for_every_record() {
    let (memory, shard) = with_ends(0, 0);
    let request = Append::new(&[7; 8], CAPACITY).expect("a record that fits");
    let mut records = 0;
    while shard.has_room(&request) {
        shard.append(&request);
        records += 1;
    }
    let tail = || memory[layout::TAIL / 8].load(Relaxed);
    let mut reading = Reading::start(shard, true);
    let mut buffer = Vec::new();
    for record in 1..=records {
        let read = reading.next(&mut buffer).expect("there are so many");
        assert_eq!((read.number, read.skipped), (record - 1, 0));
        assert_eq!(tail(), record * request.size / (CAPACITY / 4) * (CAPACITY / 4));
    }
    assert!(reading.next(&mut buffer).is_none());
    assert!(tail() < records * request.size);
    reading.finish();
    assert_eq!(tail(), records * request.size);
}

fn all(ring: &Ring) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let mut consumer = ring.consumer().expect("no other consumer");
    let count = consumer.poll(|event| records.push(event.bytes.to_vec()));
    assert_eq!(count, records.len());
    records
}

#[test]
fn records_of_every_length_come_out_as_they_went_in() {
    for (source, ring) in rings(4096, Overflow::DropNewest) {
        for length in 0..=ring.max_record_len() {
            let record: Vec<u8> = (0..length).map(|byte| (byte * 7 + length) as u8).collect();
            assert_eq!(ring.append(&record), Ok(()), "{source} {length}");
            assert_eq!(all(&ring), [record], "{source} {length}");
        }
        let too_long = vec![0; ring.max_record_len() + 1];
        assert_eq!(ring.append(&too_long), Err(AppendError::TooLong), "{source}");
        assert_eq!(ring.lost(), 1, "{source}");
    }
}

/// The thread may be moved to a CPU whose shard has room, and back.
#[test]
fn a_full_ring_keeps_the_oldest_if_told_so() {
    for (source, ring) in rings(256, Overflow::DropNewest) {
        let append = |number: u64| ring.append(&number.to_ne_bytes());
        let kept: Vec<u64> =
            (0..100).filter(|&number| append(number) != Err(AppendError::Full)).collect();
        assert!(kept[0] == 0 && kept.len() < 100, "{source}: {kept:?}");
        let (mut records, mut shared) = (Vec::new(), 0);
        ring.consumer().expect("no other consumer").poll(|event| {
            records.push(u64::from_ne_bytes(event.bytes.try_into().expect("8 bytes")));
            shared += usize::from(event.id.is_none());
        });
        records.sort_unstable();
        assert_eq!(records, kept, "{source}");
        // A thread that is interrupted repeatedly uses the shared shard once.
        assert!(shared < 10, "{source}: {shared} records went where threads without ID go");
        assert_eq!(ring.lost(), 100 - kept.len() as u64, "{source}");
        assert_eq!(ring.append(b"there is room again"), Ok(()), "{source}");
    }
}

/// A thread whose CPU has lost its ID takes the slow path, and finds room there.
#[cfg(feature = "testing")]
#[test]
fn a_record_without_an_id_is_not_one_without_room() {
    if Source::Table.prepare().is_err() {
        return;
    }
    let ring = Ring::with_source(Source::Table, 1 << 16, Overflow::DropNewest).expect("it is");
    let mut losses = 0;
    for _ in 0..200 {
        let lost = crate::testing::steal(crate::sys::affinity::current_cpu());
        losses += u32::from(lost.is_some());
        assert_eq!(ring.append(b"there is room"), Ok(()));
        lost.into_iter().for_each(|id| id.put_back(None));
    }
    assert!(losses > 0, "no CPU ever lost its ID");
}

#[test]
fn a_full_ring_keeps_the_newest_if_told_so() {
    for (source, ring) in rings(1024, Overflow::OverwriteOldest) {
        for number in 0..1000u64 {
            assert_eq!(ring.append(&number.to_ne_bytes()), Ok(()), "{source}");
        }
        let mut records = Vec::new();
        let mut shared = 0;
        let mut consumer = ring.consumer().expect("no other consumer");
        consumer.poll(|event| {
            records.push(event.bytes.to_vec());
            shared += usize::from(event.id.is_none());
        });
        assert!(records.contains(&999u64.to_ne_bytes().to_vec()), "{source}");
        assert!(records.len() >= 1024 / 16 * 3 / 4, "{source}: {}", records.len());
        assert_eq!(records.len() as u64 + ring.lost(), 1000, "{source}");
        // A thread that is interrupted repeatedly uses the shared shard once.
        assert!(shared < 10, "{source}: {shared} records went where threads without ID go");
    }
}

#[test]
fn there_is_one_consumer_and_the_next_goes_on() {
    let ring = Ring::new(1024, Overflow::DropNewest);
    ring.append(b"one").expect("room");
    let consumer = ring.consumer().expect("no other consumer");
    assert!(ring.consumer().is_none());
    drop(consumer);
    assert_eq!(all(&ring), [b"one"]);
    ring.append(b"two").expect("room");
    assert_eq!(all(&ring), [b"two"]);
}

/// A C program ends a poll early, and abandons the consumer of a ring that is gone.
#[test]
#[cfg(feature = "capi")]
fn a_poll_that_ends_early_gives_back_what_it_has_read() {
    let ring = Ring::with_source(Source::Atomic, 1024, Overflow::DropNewest).expect("atomics");
    assert!(ring.append(b"one").is_ok() && ring.append(b"two").is_ok());
    let mut consumer = ring.consumer().expect("no other consumer");
    let unread = consumer.begin();
    consumer.end(unread);
    let mut poll = consumer.begin();
    assert_eq!(consumer.next(&mut poll).map(|event| event.bytes.to_vec()), Some(b"one".to_vec()));
    consumer.end(poll);
    drop(consumer);
    assert_eq!(all(&ring), [b"two"], "only what was read is gone");
    ring.consumer().expect("no other consumer").abandon();
    assert!(ring.consumer().is_none(), "its turn was not touched");
}

/// The shared shard is for threads whose own shard is in use, and for those without an ID.
#[test]
fn who_finds_its_shard_in_use_appends_to_the_shared_one() {
    let ring = || Ring::with_source(Source::Atomic, 1024, Overflow::DropNewest);
    loop {
        let ring = ring().expect("atomics");
        ring.append(b"own").expect("room");
        let State::Claimed(block, _) = ring.handle.state() else { panic!("it has memory") };
        let ids = Source::Atomic.id_count();
        let lock = |id: u32| ring.shard_at(block.of_id(id)).lock().try_lock();
        let of_ids: Vec<_> = (0..ids).map(|id| lock(id).expect("nobody else")).collect();
        let appended = ring.append(b"shared");
        let shared = ring.shard_at(block.0).lock().try_lock();
        let refused = ring.append(b"lost");
        drop((shared, of_ids));
        if Source::Atomic.id_count() != ids {
            // The thread may have moved to a CPU whose shard the test has not locked.
            continue;
        }
        assert_eq!((appended, refused), (Ok(()), Err(AppendError::Busy)));
        let mut events = Vec::new();
        let mut consumer = ring.consumer().expect("no other consumer");
        consumer.poll(|event| events.push((event.id.is_some(), event.bytes.to_vec())));
        assert_eq!(events, [(false, b"shared".to_vec()), (true, b"own".to_vec())]);
        assert_eq!(ring.lost(), 1);
        return;
    }
}

#[test]
fn the_memory_of_rings_is_used_again() {
    for (source, ring) in rings(Ring::MAX_BYTES, Overflow::DropNewest) {
        drop(ring);
        // More than fit the address space that is reserved for all rings.
        for _ in 0..1000 {
            let ring = Ring::with_source(source, Ring::MAX_BYTES, Overflow::DropNewest);
            assert_eq!(ring.expect("an available source").append(b""), Ok(()), "{source}");
        }
    }
}

/// Writers of numbered records against a consumer: every record is delivered whole, in order by
/// writer and ID, once.
#[test]
fn nothing_is_torn_doubled_or_lost_uncounted() {
    const WRITERS: u64 = 4;
    const RECORDS: u64 = if cfg!(miri) { 100 } else { 50_000 };
    for overflow in [Overflow::DropNewest, Overflow::OverwriteOldest] {
        for (source, ring) in rings(4096, overflow) {
            let mut delivered = 0;
            let mut last: HashMap<(Option<u32>, u64), u64> = HashMap::new();
            let mut check = |event: Event<'_>| {
                let words: Vec<u64> = event
                    .bytes
                    .chunks_exact(8)
                    .map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")))
                    .collect();
                let (writer, number) = (words[0], words[1]);
                assert!(words[2..].iter().all(|&word| word == number), "{source}: torn {words:?}");
                assert_eq!(words.len() as u64, 2 + number % 5, "{source}: cut");
                let before = last.insert((event.id, writer), number);
                assert!(before.is_none_or(|before| before < number), "{source}: order");
                delivered += 1;
            };
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..WRITERS)
                    .map(|writer| {
                        let ring = &ring;
                        scope.spawn(move || {
                            for number in 0..RECORDS {
                                let mut record = vec![number; 2 + number as usize % 5];
                                record[0] = writer;
                                let bytes: Vec<u8> =
                                    record.iter().flat_map(|word| word.to_ne_bytes()).collect();
                                let _ = ring.append(&bytes);
                            }
                        })
                    })
                    .collect();
                let mut consumer = ring.consumer().expect("no other consumer");
                while workers.iter().any(|worker| !worker.is_finished()) {
                    consumer.poll(&mut check);
                }
                consumer.poll(&mut check);
            });
            assert_eq!(delivered + ring.lost(), WRITERS * RECORDS, "{source} {overflow:?}");
        }
    }
}
