//! Rings: every record is delivered once, whole and in order, or counted as lost.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use percid::id::SourceError;
use percid::ring::Event;
use percid::{Overflow, Ring, Source};

use super::verdict;
use crate::chaos::Subject;
use crate::random::Random;
use crate::verdict::Verdict;

/// Small, so that they overflow.
const BYTES: usize = 16 * 1024;

/// Records of a batch.
const BATCH: u64 = 200;

/// The longest record in words.
const WORDS: usize = 12;

/// The writer whose records come in no order: handlers of different threads share it.
const HANDLER: u64 = 0;

struct Rings {
    rings: [Checked; 2],
    writers: AtomicU64,
}

struct Checked {
    ring: Ring,
    appended: AtomicU64,
    delivered: AtomicU64,
    torn: AtomicU64,
    disordered: AtomicU64,
    gaps: AtomicU64,
    /// The last record, by ID and writer.
    last: Mutex<HashMap<(Option<u32>, u64), u64>>,
    /// The number of the next record, by ID.
    next: Mutex<HashMap<Option<u32>, u64>>,
}

pub(super) fn make(source: Source) -> Result<Box<dyn Subject>, SourceError> {
    let checked = |overflow| {
        Ok(Checked {
            ring: Ring::with_source(source, BYTES, overflow)?,
            appended: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            torn: AtomicU64::new(0),
            disordered: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
            last: Mutex::default(),
            next: Mutex::default(),
        })
    };
    let rings = [checked(Overflow::DropNewest)?, checked(Overflow::OverwriteOldest)?];
    Ok(Box::new(Rings { rings, writers: AtomicU64::new(1) }))
}

impl Checked {
    /// Appends a record: the writer, its number, and words that repeat the number; cut by up to 7
    /// bytes.
    fn append(&self, writer: u64, number: u64) {
        let mut words = [number; WORDS];
        words[0] = writer;
        let length = 16 + number as usize % ((WORDS - 2) * 8);
        let bytes = words.map(u64::to_ne_bytes);
        let _ = self.ring.append(&bytes.as_flattened()[..length]);
        self.appended.fetch_add(1, Relaxed);
    }

    fn consume(&self) {
        let Some(mut consumer) = self.ring.consumer() else { return };
        consumer.poll(|event| self.check(event));
    }

    fn check(&self, Event { id, number: place, bytes, .. }: Event<'_>) {
        let word = |index: usize| {
            let bytes = bytes.get(index * 8..index * 8 + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        };
        self.delivered.fetch_add(1, Relaxed);
        let (Some(writer), Some(number)) = (word(0), word(1)) else {
            self.torn.fetch_add(1, Relaxed);
            return;
        };
        let whole = bytes.len() == 16 + number as usize % ((WORDS - 2) * 8);
        let expected = number.to_ne_bytes();
        let mut repeated = bytes[16..].iter().zip(expected.iter().cycle());
        if !whole || repeated.any(|(byte, expected)| byte != expected) {
            self.torn.fetch_add(1, Relaxed);
        }
        let before = self.last.lock().expect("no panic").insert((id, writer), number);
        if writer != HANDLER && before.is_some_and(|before| before >= number) {
            self.disordered.fetch_add(1, Relaxed);
        }
        let next = self.next.lock().expect("no panic").insert(id, place + 1).unwrap_or(0);
        self.gaps.fetch_add(place.wrapping_sub(next), Relaxed);
    }

    fn account(&self) -> Verdict {
        self.consume();
        let load = |count: &AtomicU64| count.load(Relaxed);
        let (appended, delivered) = (load(&self.appended), load(&self.delivered));
        let (torn, disordered) = (load(&self.torn), load(&self.disordered));
        let overflowed = self.ring.lost();
        let lost = appended as i64 - delivered as i64 - overflowed as i64;
        let figures = format!(
            "records={appended} delivered={delivered} overflowed={overflowed} in_gaps={} lost={lost} \
             torn={torn} disordered={disordered}",
            load(&self.gaps)
        );
        let right = lost == 0 && torn == 0 && disordered == 0;
        verdict(right && delivered > 0 && overflowed >= load(&self.gaps), figures)
    }
}

thread_local! {
    /// The number of this thread as a writer, and of its next record.
    static WRITER: std::cell::Cell<(u64, u64)> = const { std::cell::Cell::new((HANDLER, 0)) };
}

impl Subject for Rings {
    fn work(&self, _random: &mut Random) {
        let (mut writer, first) = WRITER.get();
        if writer == HANDLER {
            writer = self.writers.fetch_add(1, Relaxed);
        }
        for number in first..first + BATCH {
            self.rings.iter().for_each(|checked| checked.append(writer, number));
        }
        WRITER.set((writer, first + BATCH));
    }

    fn handle(&self) {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        self.rings.iter().for_each(|checked| checked.append(HANDLER, number));
    }

    fn visit(&self) {
        self.rings.iter().for_each(Checked::consume);
    }

    fn account(&self) -> Verdict {
        let [oldest, newest] = &self.rings;
        let (oldest, newest) = (oldest.account(), newest.account());
        let right = oldest.is_ok() && newest.is_ok();
        let (Ok(oldest) | Err(oldest), Ok(newest) | Err(newest)) = (oldest, newest);
        verdict(right, format!("drop-newest: {oldest} overwrite-oldest: {newest}"))
    }
}
