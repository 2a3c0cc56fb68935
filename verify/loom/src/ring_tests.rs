//! A shard of a ring under concurrent appends, discards and reads: no record is torn, and a thread
//! with exclusive use of a part of the ring has it alone.

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

/// A word of a shard. If only one thread may use it at a time, loom is informed of every use, and
/// fails a test in which two uses are not ordered.
#[derive(Debug)]
pub(crate) struct Word {
    value: AtomicU64,
    alone: Option<UnsafeCell<()>>,
}

impl Word {
    pub(crate) fn load(&self, order: Ordering) -> u64 {
        if let Some(alone) = &self.alone {
            alone.with(|_| ());
        }
        self.value.load(order)
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        if let Some(alone) = &self.alone {
            alone.with_mut(|_| ());
        }
        self.value.store(value, order);
    }
}

/// The words of a shard, which begin at a multiple of [`APART`]: so an offset in the shard's
/// address space, in which words have 8 bytes, identifies its word. The shard's lock follows them.
struct Memory(*mut Words);

#[repr(C)]
struct Words {
    words: [Word; WORDS],
    lock: TryLock,
}

/// The position of the lock in the library.
const LOCK: usize = HEAD + 8;

/// More bytes than a shard's words take.
const APART: usize = 1 << 16;

impl Memory {
    fn layout() -> Layout {
        Layout::new::<Words>().align_to(APART).expect("a small structure")
    }

    /// Allocates the words. `shared`: writers overwrite records that are being read.
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

/// Returns the object at an address of a shard: a word, or the lock.
pub(crate) fn word(address: usize) -> *const u8 {
    let place = std::ptr::with_exposed_provenance::<Words>(address & !(APART - 1));
    match address % APART {
        LOCK => place.wrapping_byte_add(std::mem::offset_of!(Words, lock)).cast(),
        offset => place.cast::<Word>().wrapping_add(offset / 8).cast(),
    }
}

// SAFETY: a pointer to words that any thread may use.
unsafe impl Send for Memory {}
// SAFETY: a pointer to words that any thread may use.
unsafe impl Sync for Memory {}

/// Makes a ring with as many records as fit.
fn full(shared: bool) -> Arc<Memory> {
    let memory = Memory::new(shared);
    let mut number = 0;
    while append(memory.shard(), number) {
        number += 1;
    }
    Arc::new(memory)
}

/// Returns a record of two words, both of which are its number.
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
fn append_anyway(shard: Shard, number: u64) -> u64 {
    let bytes = record(number);
    shard.append(&Append::new(&bytes, CAPACITY).expect("a record that fits"));
    1
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

/// A ring with its writer and its consumer, which run at the same time.
#[derive(Clone, Copy)]
struct Pair {
    name: &'static str,
    ring: fn() -> Arc<Memory>,
    write: fn(Shard) -> u64,
    read: fn(Shard) -> u64,
    /// The condition after both have ended, given their results.
    check: fn(Shard, u64, u64),
}

impl Pair {
    /// Explores both orders, with each of them first once: loom does not try an order in which a
    /// store comes before another thread's load if the storing thread has loaded the same word in
    /// between.
    fn explore(self) {
        explore::all(self.name, move || self.run(true));
        explore::all(self.name, move || self.run(false));
    }

    fn run(&self, writer_first: bool) {
        let ring = (self.ring)();
        let (first, second) =
            if writer_first { (self.write, self.read) } else { (self.read, self.write) };
        let theirs = Arc::clone(&ring);
        let thread = thread::spawn(move || second(theirs.shard()));
        let first = first(ring.shard());
        let second = thread.join().unwrap();
        let (wrote, seen) = if writer_first { (first, second) } else { (second, first) };
        (self.check)(ring.shard(), wrote, seen);
    }
}

#[test]
fn a_record_that_is_overwritten_does_not_come_out() {
    const OVERTAKEN: Pair = Pair {
        name: "ring, a reader is overtaken",
        ring: || full(true),
        write: |shard| {
            discard_and_append(shard, 5, 1);
            1
        },
        read: |shard| read(shard, false, 1),
        check: |shard, _, seen| {
            assert_eq!(seen + read(shard, false, 9), 6, "each is there, or counted");
        },
    };
    OVERTAKEN.explore();
    explore::expect_failure("ring, a reader is overtaken and the tail stays", || {
        let write = |shard| append_anyway(shard, 5);
        Pair { write, check: |_, _, _| (), ..OVERTAKEN }.run(true);
    });
}

/// The consumer comes while a record is appended: it gets all of it, or nothing.
#[test]
fn a_record_is_there_when_it_is_whole() {
    Pair {
        name: "ring, a record that is being appended",
        ring: || Arc::new(Memory::new(false)),
        write: |shard| u64::from(append(shard, 0)),
        read: |shard| read(shard, true, 9),
        check: |shard, wrote, seen| assert_eq!((wrote, seen + read(shard, true, 9)), (1, 1)),
    }
    .explore();
}

/// The consumer empties a full ring while a writer waits for room.
#[test]
fn what_is_kept_is_nobody_elses_until_it_was_read() {
    const FOLLOWS: Pair = Pair {
        name: "ring, a writer follows a reader",
        ring: || full(false),
        write: |shard| u64::from(append(shard, 5)),
        read: |shard| read(shard, true, 2),
        check: |shard, wrote, seen| {
            assert!(append(shard, 5 + wrote), "two were read");
            assert_eq!(seen + read(shard, true, 9), 6 + wrote, "each is there once");
        },
    };
    FOLLOWS.explore();
    explore::expect_failure("ring, a writer does not wait for a reader", || {
        let write = |shard| append_anyway(shard, 5);
        Pair { write, check: |_, _, _| (), ..FOLLOWS }.run(false);
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
                // The records differ in length, so a record that two threads write together is
                // torn.
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

/// Somebody looks without the lock whether there is room, while there always is.
#[test]
fn where_there_is_always_room_nobody_finds_none() {
    explore::all("ring, room", || {
        let ring = Arc::new(Memory::new(false));
        for (end, position) in [(HEAD, 96), (TAIL, 0)] {
            ring.shard().at(end).store(position, Relaxed);
        }
        let theirs = Arc::clone(&ring);
        let looker = thread::spawn(move || {
            let bytes = record(0);
            let request = Append::new(&bytes, CAPACITY).expect("a record that fits");
            assert!(theirs.shard().has_room(&request));
        });
        for (end, position) in [(TAIL, 24), (HEAD, 120)] {
            ring.shard().at(end).store(position, Ordering::Release);
        }
        looker.join().unwrap();
    });
}
