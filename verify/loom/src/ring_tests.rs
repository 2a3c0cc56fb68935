//! A shard of a ring: whatever is appended, discarded and read at the same time, no record comes out
//! torn, and who has a part of the ring to itself has it alone.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{self, Relaxed},
};
use loom::thread;

use crate::critical::ring::{Append, DATA, HEAD, TAIL};
use crate::explore;
use crate::try_lock::TryLock;
use shard::{Reading, Shard};

#[path = "../../../crates/percid/src/ring/shard.rs"]
mod shard;

/// The smallest ring there is.
const CAPACITY: u64 = 128;
const WORDS: usize = (DATA + CAPACITY as usize) / 8;

/// A word of a shard. If it is one of those that only one thread may use at a time, loom is told of
/// every use, and fails a test in which one does not come after the other.
#[derive(Debug)]
struct Word {
    value: AtomicU64,
    alone: Option<UnsafeCell<()>>,
}

impl Word {
    fn load(&self, order: Ordering) -> u64 {
        if let Some(alone) = &self.alone {
            alone.with(|_| ());
        }
        self.value.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        if let Some(alone) = &self.alone {
            alone.with_mut(|_| ());
        }
        self.value.store(value, order);
    }
}

/// The words of a shard, which begin at a multiple of [`APART`]: so a place in the shard's address
/// space, where words have 8 bytes, tells where its word is. Behind them is its lock.
struct Memory(*mut Words);

#[repr(C)]
struct Words {
    words: [Word; WORDS],
    lock: TryLock,
}

/// Where the lock is in the library.
const LOCK: usize = HEAD + 8;

/// More than a shard's words take.
const APART: usize = 1 << 16;

impl Memory {
    fn layout() -> Layout {
        Layout::new::<Words>().align_to(APART).expect("a small structure")
    }

    /// `shared`: writers overwrite what is being read.
    fn new(shared: bool) -> Memory {
        // SAFETY: the structure is not empty.
        let place = unsafe { alloc(Memory::layout()) }.cast::<Words>();
        if place.is_null() {
            handle_alloc_error(Memory::layout());
        }
        let word = |index| Word {
            value: AtomicU64::new(0),
            alone: (!shared && index >= DATA / 8).then(|| UnsafeCell::new(())),
        };
        let lock = TryLock { taken: AtomicU32::new(0) };
        // SAFETY: new memory for one.
        unsafe { place.write(Words { words: std::array::from_fn(word), lock }) };
        Memory(place)
    }

    fn shard(&self) -> Shard {
        Shard { address: self.0.expose_provenance(), capacity: CAPACITY }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: written in `new`.
        unsafe { self.0.drop_in_place() };
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.0.cast(), Memory::layout()) };
    }
}

/// What is at an address of a shard: a word, or the lock.
pub(crate) fn word(address: usize) -> *const u8 {
    let place = std::ptr::with_exposed_provenance::<Words>(address & !(APART - 1));
    match address % APART {
        LOCK => place.wrapping_byte_add(std::mem::offset_of!(Words, lock)).cast(),
        offset => place.cast::<Word>().wrapping_add(offset / 8).cast(),
    }
}

// SAFETY: a pointer to words that any thread may use.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// A ring with as many records as fit.
fn full(shared: bool) -> Arc<Memory> {
    let memory = Memory::new(shared);
    let mut number = 0;
    while append(memory.shard(), number) {
        number += 1;
    }
    Arc::new(memory)
}

/// A record of two words, both of which are its number.
fn record(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&number.to_ne_bytes()));
    bytes
}

/// Appends a record of this number, if there is room.
fn append(shard: Shard, number: u64) -> bool {
    let bytes = record(number);
    let request = Append::new(&bytes, CAPACITY).expect("a record that fits");
    let has_room = shard.has_room(&request);
    if has_room {
        shard.append(&request);
    }
    has_room
}

/// Makes room for at least this many records and appends one of them.
fn discard_and_append(shard: Shard, number: u64, room: u64) {
    let bytes = record(number);
    let request = Append::new(&bytes, CAPACITY).expect("a record that fits");
    shard.discard(CAPACITY - room * request.size - 8);
    shard.append(&request);
}

/// Appends whether there is room or not: the negative control.
fn append_anyway(shard: Shard, number: u64) {
    let bytes = record(number);
    shard.append(&Append::new(&bytes, CAPACITY).expect("a record that fits"));
}

/// Reads as many records as there are, at most; how many there were, all of them whole.
fn read(shard: Shard, keeps_oldest: bool, most: usize) -> u64 {
    let mut reading = Reading::start(shard, keeps_oldest);
    let mut buffer = Vec::new();
    let mut seen = 0;
    for _ in 0..most {
        let Some(read) = reading.next(&mut buffer) else { break };
        assert_eq!(read.bytes, record(read.number), "record {} is torn", read.number);
        seen += 1 + read.skipped;
    }
    reading.finish();
    seen
}

#[test]
fn a_record_that_is_overwritten_does_not_come_out() {
    explore::all("ring, a reader is overtaken", || {
        let ring = full(true);
        let theirs = Arc::clone(&ring);
        let writer = thread::spawn(move || discard_and_append(theirs.shard(), 5, 1));
        let before = read(ring.shard(), false, 1);
        writer.join().unwrap();
        let all = before + read(ring.shard(), false, 9);
        assert_eq!(all, 6, "each is there, or counted");
    });
    explore::expect_failure("ring, a reader is overtaken and the tail stays", || {
        let ring = full(true);
        let theirs = Arc::clone(&ring);
        let writer = thread::spawn(move || append_anyway(theirs.shard(), 5));
        read(ring.shard(), false, 1);
        writer.join().unwrap();
    });
}

/// One writer makes room for two records, and it is another that writes the second.
#[test]
fn it_does_not_matter_which_writer_has_discarded() {
    explore::bounded(3, "ring, two writers overtake a reader", || {
        let ring = full(true);
        let writers = [5, 6].map(|number| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let Some(_lock) = ring.shard().lock().try_lock() else { return };
                if !append(ring.shard(), number) {
                    discard_and_append(ring.shard(), number, 2);
                }
            })
        });
        read(ring.shard(), false, 1);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
}

/// Two threads use one shard at the same time, and the second finds the lock taken, or not.
#[test]
fn one_writer_at_a_time_has_the_lock() {
    explore::bounded(3, "ring, two writers", || {
        let ring = full(true);
        let append = |number| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                // Of another length each: so what two of them write together is torn.
                let bytes = &record(7)[..number];
                let request = Append::new(bytes, CAPACITY).expect("a record that fits");
                ring.shard().append_locked(&request, true).is_some()
            })
        };
        let writers = [append(8), append(16)];
        let appended = writers.map(|writer| u64::from(writer.join().unwrap()));
        let (mut reading, mut buffer) = (Reading::start(ring.shard(), false), Vec::new());
        let mut all = 0;
        while let Some(read) = reading.next(&mut buffer) {
            let expected = if read.number < 5 { record(read.number) } else { record(7) };
            assert!(expected.starts_with(read.bytes), "record {} is torn", read.number);
            all += 1 + read.skipped;
        }
        assert_eq!(all, 5 + appended[0] + appended[1], "each is there, or counted");
    });
}

/// The consumer empties a full ring while a writer waits for room.
#[test]
fn what_is_kept_is_nobody_elses_until_it_was_read() {
    explore::all("ring, a writer follows a reader", || {
        let ring = full(false);
        let theirs = Arc::clone(&ring);
        let writer = thread::spawn(move || append(theirs.shard(), 5));
        let before = read(ring.shard(), true, 2);
        let appended = writer.join().unwrap();
        assert!(append(ring.shard(), 5 + u64::from(appended)), "two were read");
        let all = before + read(ring.shard(), true, 9);
        assert_eq!(all, 6 + u64::from(appended), "each is there once");
    });
    explore::expect_failure("ring, a writer does not wait for a reader", || {
        let ring = full(false);
        let theirs = Arc::clone(&ring);
        let writer = thread::spawn(move || append_anyway(theirs.shard(), 5));
        read(ring.shard(), true, 2);
        writer.join().unwrap();
    });
}

/// The consumer comes while a record is appended: it gets all of it, or nothing.
#[test]
fn a_record_is_there_when_it_is_whole() {
    explore::all("ring, a record that is being appended", || {
        let ring = Arc::new(Memory::new(false));
        let theirs = Arc::clone(&ring);
        let writer = thread::spawn(move || assert!(append(theirs.shard(), 0)));
        let before = read(ring.shard(), true, 9);
        writer.join().unwrap();
        assert_eq!(before + read(ring.shard(), true, 9), 1);
    });
}

/// Somebody looks without the lock whether there is room, while there always is.
#[test]
fn where_there_is_always_room_nobody_finds_none() {
    explore::all("ring, room", || {
        let ring = Arc::new(Memory::new(false));
        for (end, position) in [(HEAD, 96), (TAIL, 0)] {
            ring.shard().at(end).store(position, Relaxed);
        }
        let theirs = Arc::clone(&ring);
        let mover = thread::spawn(move || {
            for (end, position) in [(TAIL, 24), (HEAD, 120)] {
                theirs.shard().at(end).store(position, Ordering::Release);
            }
        });
        let bytes = record(0);
        let request = Append::new(&bytes, CAPACITY).expect("a record that fits");
        assert!(ring.shard().has_room(&request));
        mover.join().unwrap();
    });
}
