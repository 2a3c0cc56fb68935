//! Records that dumps have taken from the ring. A ring returns a record once. Later dumps need it
//! too, while it is among the newest bytes of its CPU.

use std::collections::BTreeMap;
use std::ops::Range;

use percid::ring::Consumer;

/// The records of each ID, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Held {
    ids: BTreeMap<Option<u32>, Records>,
    /// Number of records that were dropped for newer ones.
    pub(crate) thrown_away: u64,
}

/// Records, each preceded by its length in 2 bytes.
#[derive(Debug, Default)]
struct Records {
    bytes: Vec<u8>,
}

impl Held {
    /// Takes the records from the ring, and keeps the newest `limit` bytes of each ID.
    pub(crate) fn take(&mut self, consumer: &mut Consumer<'_>, limit: usize) {
        consumer.poll(|event| self.ids.entry(event.id).or_default().push(event.bytes));
        let thrown_away = self.ids.values_mut().map(|records| records.keep_newest(limit));
        self.thrown_away += thrown_away.sum::<u64>();
    }

    /// Returns all records with their IDs, ordered by ID.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Option<u32>, &[u8])> {
        self.ids
            .iter()
            .flat_map(|(id, records)| records.ranges().map(|range| (*id, &records.bytes[range])))
    }
}

impl Records {
    fn push(&mut self, record: &[u8]) {
        let Ok(length) = u16::try_from(record.len()) else {
            return; // No ring has one: its headers have 16 bits for the length.
        };
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(record);
    }

    /// Drops the oldest records, and returns their number.
    fn keep_newest(&mut self, limit: usize) -> u64 {
        let surplus = self.bytes.len().saturating_sub(limit);
        let mut end = 0;
        let oldest = self.ranges().take_while(|range| range.start < surplus + 2);
        let count = oldest.inspect(|range| end = range.end).count();
        self.bytes.drain(..end);
        count as u64
    }

    /// Returns the ranges of the records in `bytes`.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let mut rest = 0..self.bytes.len();
        std::iter::from_fn(move || {
            let length = *self.bytes[rest.clone()].first_chunk()?;
            let start = rest.start + 2;
            rest.start = start + usize::from(u16::from_ne_bytes(length));
            Some(start..rest.start)
        })
    }
}

#[cfg(test)]
mod tests {
    use percid::{Overflow, Ring};

    use super::*;

    fn texts(held: &Held) -> Vec<String> {
        held.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    #[test]
    fn the_newest_are_kept_and_the_others_counted() {
        let records = ["one", "two", "three"];
        for (limit, kept) in [(100, 3), (17, 3), (16, 2), (12, 2), (11, 1), (7, 1), (6, 0), (0, 0)]
        {
            let (ring, mut held) = (Ring::new(4096, Overflow::OverwriteOldest), Held::default());
            let of_id = held.ids.entry(None).or_default();
            records.iter().for_each(|record| of_id.push(record.as_bytes()));
            held.take(&mut ring.consumer().expect("no other consumer"), limit);
            assert_eq!(texts(&held), records[3 - kept..], "limit {limit}");
            assert_eq!(held.thrown_away, 3 - kept as u64, "limit {limit}");
        }
    }

    #[test]
    fn what_was_taken_is_there_the_next_time() {
        let ring = Ring::new(4096, Overflow::OverwriteOldest);
        let mut held = Held::default();
        let mut take = |record: &str| {
            ring.append(record.as_bytes()).expect("memory for a ring");
            held.take(&mut ring.consumer().expect("no other consumer"), 4096);
            let mut texts = texts(&held);
            texts.sort();
            texts
        };
        assert_eq!(take("one"), ["one"]);
        assert_eq!(take("two"), ["one", "two"]);
    }
}
