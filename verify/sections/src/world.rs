//! Memory for every ID, an rseq area and a table, all of the test's own.

use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use crate::arena::SHIFT;
use crate::critical::{FAST_PATH, KERNEL, TABLE};
use crate::sys::thread;

/// The words of a shard that exist; around them is nothing that may be touched.
pub(crate) const WORDS: usize = 128;
/// The shared slot, and one for each ID.
const SLOTS: usize = 5;
/// The IDs of the kernel that have memory.
pub(crate) const LIMIT: u32 = SLOTS as u32 - 1;
/// The offset of a shard in its slot.
const OFFSET: usize = 3 * PAGE;
/// Size of the memory around it that may be touched.
const PAGE: usize = 4096;

/// A shard's words.
pub(crate) type Shard = [u64; WORDS];
/// The shards of all slots.
pub(crate) type Shards = [Shard; SLOTS];

/// `struct rseq`.
#[repr(C, align(32))]
#[derive(Debug, Default)]
struct Area {
    cpu_id_start: u32,
    cpu_id: AtomicI32,
    rseq_cs: AtomicUsize,
    flags: u32,
    node_id: u32,
    mm_cid: AtomicU32,
}

/// The source of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Kernel,
    Table,
}

/// The place of the thread, for either source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    cpu: i32,
    mm_cid: u32,
    /// The slot that both lead to; 0 if they lead to none.
    pub(crate) slot: usize,
}

/// Two CPUs that have IDs.
pub(crate) const HERE: Place = Place { cpu: 1, mm_cid: 2, slot: 3 };
pub(crate) const ELSEWHERE: Place = Place { cpu: 2, mm_cid: 1, slot: 2 };
/// A CPU without an ID; an ID without memory; a thread that is not registered, or was refused.
pub(crate) const WITHOUT: [Place; 4] = [
    Place { cpu: 3, mm_cid: LIMIT, slot: 0 },
    Place { cpu: 3, mm_cid: LIMIT + 1, slot: 0 },
    Place { cpu: -1, mm_cid: u32::MAX, slot: 0 },
    Place { cpu: -2, mm_cid: u32::MAX, slot: 0 },
];

/// Two entries in front of the table, and one for every CPU.
static ENTRIES: [AtomicU32; 6] = [
    AtomicU32::new(0),
    AtomicU32::new(0),
    AtomicU32::new(1),
    AtomicU32::new(3),
    AtomicU32::new(2),
    AtomicU32::new(0),
];

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// All of it, for one test at a time: the sections find it by `FAST_PATH`.
#[derive(Debug)]
pub(crate) struct World {
    area: Box<Area>,
    memory: *mut u8,
    _alone: MutexGuard<'static, ()>,
}

impl World {
    pub(crate) fn new() -> World {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        limit(60);
        let area = Box::<Area>::default();
        let offset = (&raw const *area).expose_provenance().wrapping_sub(thread::pointer());
        FAST_PATH.set_area(offset as isize);
        FAST_PATH.set_table(ENTRIES[2..].as_ptr().cast_mut());
        FAST_PATH.raise_kernel_limit(LIMIT);
        World { area, memory: map(), _alone: alone }
    }

    /// Puts the thread somewhere, as a source sees it. The other source would lead it to the first
    /// ID's slot.
    pub(crate) fn put(&self, place: Place, source: Source) {
        let (cpu, mm_cid) = match source {
            Source::Kernel => (0, place.mm_cid),
            Source::Table => (place.cpu, 0),
        };
        self.area.cpu_id.store(cpu, Relaxed);
        self.area.mm_cid.store(mm_cid, Relaxed);
    }

    /// Returns the address of a word of the shared slot's shard, with the mark of a source.
    pub(crate) fn word(&self, source: Source) -> usize {
        let mark = match source {
            Source::Kernel => KERNEL,
            Source::Table => TABLE,
        };
        self.shard(0).expose_provenance() + mark
    }

    /// Returns the address of a slot's shard.
    pub(crate) fn shard(&self, slot: usize) -> *mut Shard {
        self.memory.wrapping_add((slot << SHIFT) + OFFSET).cast()
    }

    pub(crate) fn write(&self, slot: usize, words: &Shard) {
        // SAFETY: the shard is mapped, and only this thread uses it.
        unsafe { self.shard(slot).write(*words) };
    }

    pub(crate) fn read(&self) -> Box<Shards> {
        let mut shards = Box::new([[0; WORDS]; SLOTS]);
        for (slot, words) in shards.iter_mut().enumerate() {
            // SAFETY: the shard is mapped, and only this thread uses it.
            *words = unsafe { self.shard(slot).read_volatile() };
        }
        shards
    }

    /// Stores one word of a slot, as another thread does.
    pub(crate) fn store(&self, slot: usize, word: usize, value: u64) {
        // SAFETY: the shard is mapped and aligned.
        unsafe { &*self.shard(slot).cast::<AtomicU64>().add(word) }.store(value, Relaxed);
    }

    pub(crate) fn declaration(&self) -> usize {
        self.area.rseq_cs.load(Relaxed)
    }

    pub(crate) fn take_declaration(&self) -> usize {
        self.area.rseq_cs.swap(0, Relaxed)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe {
            libc::munmap(self.memory.cast(), SLOTS << SHIFT);
        }
        limit(0);
    }
}

/// Ends the process after so many seconds of its CPU time, or no longer if 0: a fault may make a
/// section run forever.
fn limit(seconds: libc::time_t) {
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let end = libc::timeval { tv_sec: seconds, ..none };
    let timer = libc::itimerval { it_interval: none, it_value: end };
    // SAFETY: reads the timer.
    assert_eq!(unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, ptr::null_mut()) }, 0);
}

/// Maps address space for all slots, in which only the shards are accessible.
fn map() -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping; then a part of it.
    unsafe {
        let memory = libc::mmap(ptr::null_mut(), SLOTS << SHIFT, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        for slot in 0..SLOTS {
            let shard = memory.byte_add((slot << SHIFT) + OFFSET);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(shard, PAGE, access), 0);
        }
        memory.cast()
    }
}
