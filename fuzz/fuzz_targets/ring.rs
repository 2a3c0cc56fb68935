//! Rings against lists of records: what is delivered, what is lost, and in which order.
#![no_main]

use std::collections::{BTreeMap, VecDeque};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid::ring::AppendError;
use percid::{Overflow, Ring};
use percid_fuzz::one_cpu::{self, Thief};

#[derive(Arbitrary, Debug)]
struct Input {
    source: u8,
    size: u8,
    overwrite: bool,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Append(u16),
    /// A record of the maximum length, plus this.
    AppendLongest(i8),
    Poll,
    /// Polls some records only.
    PollSome(u8),
    /// Appends each of these while a record is being delivered.
    PollAndAppend(u8),
    /// Steals this CPU's ID: the next record goes to another one's memory.
    Steal,
    PutBack,
}

fuzz_target!(init: { one_cpu::stay(); }, |input: Input| {
    let (source, can_be_stolen) = one_cpu::source(input.source);
    let bytes = Ring::MIN_BYTES << (input.size % 9);
    let overflow = if input.overwrite { Overflow::OverwriteOldest } else { Overflow::DropNewest };
    let ring = Ring::with_source(source, bytes, overflow).expect("it works");
    let mut both = Both { ring: &ring, source, bytes, overflow, shards: BTreeMap::new(), lost: 0, next: 0 };
    let mut thief = Thief::default();
    for step in input.steps {
        match step {
            Step::Append(length) => both.append(length.into()),
            Step::AppendLongest(off) => {
                both.append(ring.max_record_len().saturating_add_signed(off.into()));
            }
            Step::Poll => both.poll(usize::MAX, None),
            Step::PollSome(most) => both.poll(most.into(), None),
            Step::PollAndAppend(length) => both.poll(usize::MAX, Some(length.into())),
            Step::Steal => _ = can_be_stolen && thief.steal(),
            Step::PutBack => thief.put_back(),
        }
        assert_eq!(ring.lost(), both.lost, "lost");
    }
    both.poll(usize::MAX, None);
    assert_eq!(ring.lost(), both.lost, "lost in the end");
});

/// A ring and its model.
struct Both<'r> {
    ring: &'r Ring,
    source: percid::Source,
    bytes: usize,
    overflow: Overflow,
    /// Shards by ID; `None` if all IDs have been stolen.
    shards: BTreeMap<Option<u32>, Shard>,
    lost: u64,
    /// Records are distinguished by their bytes.
    next: u8,
}

/// The ring of one ID.
#[derive(Debug, Default)]
struct Shard {
    /// The number of the next record.
    number: u64,
    /// The records that have space in the ring: numbers and bytes.
    records: VecDeque<(u64, Vec<u8>)>,
    /// The first record that the consumer has not got.
    wanted: u64,
}

impl Shard {
    /// Returns the used bytes: a record takes a word and its bytes in whole words.
    fn used(&self) -> usize {
        self.records.iter().map(|(_, bytes)| size(bytes.len())).sum()
    }
}

impl Shard {
    /// Frees the space of read records; writers that overwrite may always use it.
    fn free_read(&mut self, overflow: Overflow) {
        if overflow == Overflow::DropNewest {
            self.records.retain(|(number, _)| *number >= self.wanted);
        }
    }
}

fn size(length: usize) -> usize {
    8 + length.div_ceil(8) * 8
}

impl Both<'_> {
    fn append(&mut self, length: usize) {
        let record: Vec<u8> = (0..length).map(|at| self.next ^ at as u8).collect();
        self.next = self.next.wrapping_add(1);
        let appended = self.ring.append(&record);
        if length > (self.bytes / 4 - 16).min(65_535) {
            assert_eq!(appended, Err(AppendError::TooLong));
            self.lost += 1;
            return;
        }
        let id = self.source.current_id();
        let shard = self.shards.entry(id).or_default();
        // The word of the next record's number must fit too.
        let needed = size(length) + 8;
        if shard.used() + needed > self.bytes {
            if self.overflow == Overflow::DropNewest {
                assert_eq!(appended, Err(AppendError::Full), "{length} bytes");
                self.lost += 1;
                return;
            }
            // An eighth of the ring at least makes room.
            let kept = self.bytes - needed.max(self.bytes / 8);
            while shard.used() > kept {
                shard.records.pop_front();
            }
        }
        assert_eq!(appended, Ok(()), "{length} bytes");
        shard.records.push_back((shard.number, record));
        shard.number += 1;
    }

    fn poll(&mut self, most: usize, append: Option<usize>) {
        let ring = self.ring;
        let mut consumer = ring.consumer().expect("no other one");
        assert!(ring.consumer().is_none(), "two consumers");
        let mut poll = consumer.begin();
        let mut count = 0;
        while count < most {
            let Some(event) = consumer.next(&mut poll) else { break };
            count += 1;
            let id = event.id;
            let (number, bytes) = (event.number, event.bytes.to_vec());
            self.delivered(id, number, &bytes);
            if let Some(length) = append {
                // Limited: otherwise a record would be appended for each record, without end.
                if count < 64 {
                    self.append(length);
                }
            }
        }
        let is_whole = count < most;
        consumer.end(poll);
        drop(consumer);
        if is_whole && append.is_none() {
            let left = self.shards.iter().find(|(_, shard)| shard.wanted < shard.number);
            assert!(left.is_none(), "not delivered: {left:?}");
        }
        self.make_room();
    }

    /// Checks that a record is the next one that is there; those between are lost.
    fn delivered(&mut self, id: Option<u32>, number: u64, bytes: &[u8]) {
        // The writers of other IDs may use the space of their read records.
        for (_, other) in self.shards.iter_mut().filter(|(other, _)| **other != id) {
            other.free_read(self.overflow);
        }
        let shard = self.shards.get_mut(&id).expect("something was appended there");
        let wanted = shard.wanted;
        let expected = shard.records.iter().find(|(number, _)| *number >= wanted);
        let Some((expected, content)) = expected else { panic!("{number} is not there any more") };
        assert_eq!((number, bytes), (*expected, &content[..]));
        self.lost += number - wanted;
        shard.wanted = number + 1;
        if self.overflow == Overflow::DropNewest {
            // The writers have the room by quarters of the ring, and when the poll is over.
            let read = shard.records.iter().filter(|(number, _)| *number < shard.wanted);
            let free: usize = read.map(|(_, bytes)| size(bytes.len())).sum();
            if free >= self.bytes / 4 {
                shard.records.retain(|(number, _)| *number >= shard.wanted);
            }
        }
    }

    /// Frees the space of delivered records, after a poll that ended or was stopped.
    fn make_room(&mut self) {
        self.shards.values_mut().for_each(|shard| shard.free_read(self.overflow));
    }
}
