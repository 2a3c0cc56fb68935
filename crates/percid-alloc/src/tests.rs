//! The allocator in front of one that keeps a ledger.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};
use std::{ptr, thread};

use percid::Source;

use crate::PerCpu;
use crate::block::Block;
use crate::cache::Cache;
use crate::size_class::SizeClass;

/// The system's allocator, with a list of its blocks, and a number of calls after which it refuses.
#[derive(Debug)]
struct Ledger {
    blocks: Mutex<HashMap<usize, Layout>>,
    left: AtomicUsize,
    /// A planted fault: this block is handed out instead of new ones, once it is set.
    twice: AtomicPtr<u8>,
}

impl Ledger {
    fn new() -> Ledger {
        Ledger {
            blocks: Mutex::default(),
            left: AtomicUsize::new(usize::MAX),
            twice: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn count(&self) -> usize {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

// SAFETY: the blocks are the system's. (The planted fault is a test's.)
unsafe impl GlobalAlloc for Ledger {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err() {
            return ptr::null_mut();
        }
        let twice = self.twice.load(Relaxed);
        if !twice.is_null() {
            return twice;
        }
        // SAFETY: the caller's obligations are the same.
        let block = unsafe { System.alloc(layout) };
        let mut blocks = self.blocks.lock().expect("a ledger");
        assert_eq!(blocks.insert(block as usize, layout), None);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let known = self.blocks.lock().expect("a ledger").remove(&(block as usize));
        assert_eq!(known, Some(layout), "a block is given back as it was obtained");
        // SAFETY: the block is the system's, with this layout.
        unsafe { System.dealloc(block, layout) };
    }
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).expect("a layout")
}

/// Calls a function with an allocator of each source that can be used.
fn on_every_source(test: impl Fn(&PerCpu<&Ledger>)) {
    let sources = Source::ALL.iter().copied();
    let mut tried = 0;
    for source in sources {
        let ledger = Ledger::new();
        let Ok(allocator) = PerCpu::with_source(&ledger, source, usize::MAX) else { continue };
        test(&allocator);
        drop(allocator);
        assert_eq!(ledger.count(), 0, "{source:?}: all blocks come back");
        tried += 1;
    }
    assert!(tried > 0, "atomics can always be used");
}

// SAFETY: a reference to an allocator allocates as it does.
unsafe impl GlobalAlloc for &Ledger {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        unsafe { (**self).alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are the same.
        unsafe { (**self).dealloc(block, layout) }
    }
}

/// An object of a test: a block with marks at both ends.
struct Object {
    address: *mut u8,
    layout: Layout,
    mark: u8,
}

impl Object {
    fn new(allocator: &impl GlobalAlloc, layout: Layout, mark: u8) -> Object {
        // SAFETY: the layouts of the tests have a size, and the block has as many bytes.
        unsafe {
            let address = allocator.alloc(layout);
            assert!(!address.is_null() && (address as usize).is_multiple_of(layout.align()));
            address.write(mark);
            address.add(layout.size() - 1).write(mark);
            Object { address, layout, mark }
        }
    }

    fn is_whole(&self) -> bool {
        // SAFETY: the block is this object's until it is freed.
        unsafe {
            self.address.read() == self.mark
                && self.address.add(self.layout.size() - 1).read() == self.mark
        }
    }

    fn free(self, allocator: &impl GlobalAlloc) {
        // SAFETY: the object is freed once, by its layout.
        unsafe { allocator.dealloc(self.address, self.layout) };
    }
}

#[test]
fn blocks_of_all_sizes_and_alignments_hold_their_objects_and_come_back() {
    on_every_source(|allocator| {
        let sizes = [1, 15, 16, 17, 100, 128, 129, 1000, 4096, 32_768, 32_769, 100_000];
        for round in 0..3 {
            let mut objects = Vec::new();
            for (at, size) in sizes.into_iter().enumerate() {
                for align in [1, 8, 16, 32, 4096] {
                    let mark = (16 * round + at) as u8;
                    objects.push(Object::new(allocator, layout(size, align), mark));
                }
            }
            assert!(objects.iter().all(Object::is_whole));
            objects.into_iter().for_each(|object| object.free(allocator));
        }
    });
}

#[test]
fn a_freed_block_is_the_next_one_of_its_class() {
    let ledger = Ledger::new();
    let allocator = PerCpu::new(&ledger);
    // Between the two, the thread may move to another CPU, which has a cache of its own.
    let again = (0..1000).any(|_| {
        let first = Object::new(&allocator, layout(100, 8), 1);
        let address = first.address;
        first.free(&allocator);
        let next = Object::new(&allocator, layout(112, 1), 2);
        let is_same = next.address == address;
        next.free(&allocator);
        is_same
    });
    assert!(again);
}

#[test]
fn objects_stay_if_their_class_fits_and_move_with_their_contents_otherwise() {
    on_every_source(|allocator| {
        let mut object = Object::new(allocator, layout(17, 8), 7);
        for (size, stays) in [(32, true), (20, true), (33, false), (40_000, false), (50, false)] {
            let kept = size.min(object.layout.size());
            // SAFETY: the object has this layout, and bytes up to `kept` are in both blocks.
            unsafe {
                object.address.add(kept - 1).write(9);
                let moved = allocator.realloc(object.address, object.layout, size);
                assert_eq!(moved == object.address, stays, "{size}");
                assert_eq!((moved.read(), moved.add(kept - 1).read()), (7, 9));
                object = Object { address: moved, layout: layout(size, 8), mark: 7 };
            }
        }
        object.free(allocator);
    });
}

#[test]
fn a_block_that_was_used_before_is_zeroed_if_that_is_asked_for() {
    on_every_source(|allocator| {
        for size in [8, 1000, 50_000] {
            for _ in 0..100 {
                // SAFETY: a block of this layout, which is freed once.
                unsafe {
                    let object = allocator.alloc_zeroed(layout(size, 8));
                    let bytes = std::slice::from_raw_parts_mut(object, size);
                    assert!(bytes.iter().all(|&byte| byte == 0));
                    bytes.fill(0xff);
                    allocator.dealloc(object, layout(size, 8));
                }
            }
        }
    });
}

/// The last bytes that are cached serve the last requests, and then the answer is null.
#[test]
fn refused_memory_is_null_after_the_caches_were_emptied() {
    let ledger = Ledger::new();
    let allocator = PerCpu::new(&ledger);
    Object::new(&allocator, layout(1000, 8), 1).free(&allocator);
    ledger.left.store(0, Relaxed);
    // SAFETY: the layout has a size.
    assert!(unsafe { allocator.alloc(layout(2000, 8)) }.is_null());
    assert_eq!((ledger.count(), allocator.statistics().cached_bytes()), (0, 0));
    ledger.left.store(usize::MAX, Relaxed);
    Object::new(&allocator, layout(2000, 8), 2).free(&allocator);
}

/// The last phase only allocates, and reaches the allocator behind often enough for a look at the
/// limit.
#[test]
fn no_more_is_cached_than_the_limit() {
    const LIMIT: usize = 256 << 10;
    const MANY: usize = 10_000;
    let cached_with = |limit: usize| {
        let ledger = Ledger::new();
        let allocator = PerCpu::with_limit(&ledger, limit);
        let objects = |size: usize, count: usize| -> Vec<Object> {
            (0..count).map(|_| Object::new(&allocator, layout(size, 8), 3)).collect()
        };
        for size in [2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 32_768] {
            objects(size, 500).into_iter().for_each(|object| object.free(&allocator));
        }
        let last = objects(64, MANY);
        let cached = allocator.statistics().cached_bytes();
        last.into_iter().for_each(|object| object.free(&allocator));
        cached
    };
    let batches = 128 * 32 * 64;
    assert!(cached_with(LIMIT) <= LIMIT + batches);
    let without = cached_with(usize::MAX);
    assert!(without > LIMIT + batches, "control: {without}");
}

#[cfg(target_pointer_width = "64")]
#[test]
fn the_object_and_the_lists_of_an_id_have_the_size_that_the_contract_states() {
    let of_id: usize = SizeClass::all().map(|class| (class.capacity() as usize + 1) * 8).sum();
    assert_eq!((size_of::<PerCpu<System>>() >> 10, of_id >> 10), (12, 48));
}

/// The thread may have moved to a CPU whose part is full when it obtains the next blocks.
#[test]
fn blocks_obtained_without_room_go_back() {
    let ledger = Ledger::new();
    let class = SizeClass::of(layout(32_768, 8)).expect("a class");
    let cache = Cache::with_source(class, Source::Atomic).expect("atomics can always be used");
    let mut pushed = 0;
    // SAFETY: the layout of a class has a size.
    while let Some(block) = Block::new(unsafe { ledger.alloc(class.layout()) }) {
        if let Err(block) = cache.push(block) {
            // SAFETY: the block is the ledger's, and nobody else has it.
            unsafe { ledger.dealloc(block.address(), class.layout()) };
            break;
        }
        pushed += 1;
    }
    (0..10).for_each(|_| cache.refill(&ledger));
    assert_eq!((ledger.count(), cache.count()), (pushed, pushed));
    cache.drain(&ledger);
    assert_eq!(ledger.count(), 0);
}

#[cfg(all(
    feature = "checked",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(miri)
))]
#[test]
fn a_block_that_is_freed_twice_is_noticed_and_stays_one_block() {
    on_every_source(|allocator| {
        let free_and_count = |times: usize| {
            let objects: Vec<*mut u8> = (0..10)
                // SAFETY: the layout has a size.
                .map(|_| unsafe { allocator.alloc(layout(48, 8)) })
                .collect();
            let distinct: std::collections::HashSet<_> = objects.iter().collect();
            assert_eq!(distinct.len(), 10);
            for object in objects.iter().flat_map(|object| vec![*object; times]) {
                // SAFETY: none for the second free, which is the planted fault: the block is left as it is.
                unsafe { allocator.dealloc(object, layout(48, 8)) };
            }
            allocator.statistics().freed_twice
        };
        assert_eq!(free_and_count(2), 10);
        // Objects that nobody wrote to are no free blocks, wherever their blocks come from.
        assert_eq!(free_and_count(1), 10);
        allocator.trim();
        assert_eq!(free_and_count(1), 10);
    });
}

/// An allocator behind hands out again what was given back, with the bytes that it had.
#[test]
fn a_block_that_comes_back_from_behind_is_not_taken_for_a_free_one() {
    /// One block of 4096 bytes, for which layout does not matter.
    struct One(AtomicPtr<u8>);
    // SAFETY: the block is handed out only while nobody has it.
    unsafe impl GlobalAlloc for One {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            self.0.swap(ptr::null_mut(), AcqRel)
        }

        unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
            self.0.store(block, Release);
        }
    }
    // SAFETY: the layout has a size.
    let block = unsafe { System.alloc_zeroed(layout(4096, 16)) };
    let allocator = PerCpu::new(One(AtomicPtr::new(block)));
    for _ in 0..3 {
        // SAFETY: the layout has a size, and each object is freed once, with it.
        unsafe {
            let object = allocator.alloc(layout(64, 8));
            assert_eq!(object, block);
            allocator.dealloc(object, layout(64, 8));
        }
        assert_eq!((allocator.trim(), allocator.statistics().freed_twice), (64, 0));
    }
    drop(allocator);
    // SAFETY: the block is the system's, with this layout.
    unsafe { System.dealloc(block, layout(4096, 16)) };
}

/// The lists lie outside the blocks, so that what is written to a freed block changes no list.
#[test]
fn lists_survive_what_is_written_to_freed_blocks() {
    let ledger = Ledger::new();
    let allocator = PerCpu::new(&ledger);
    let objects: Vec<Object> =
        (0..100).map(|_| Object::new(&allocator, layout(64, 8), 5)).collect();
    let addresses: Vec<*mut u8> = objects.iter().map(|object| object.address).collect();
    objects.into_iter().for_each(|object| object.free(&allocator));
    for address in addresses {
        // SAFETY: the block is free, and the ledger still has it: it is memory of this test.
        unsafe { address.write_bytes(0xee, 64) };
    }
    let known = |object: &Object| {
        ledger.blocks.lock().expect("a ledger").contains_key(&(object.address as usize))
    };
    let again: Vec<Object> = (0..100).map(|_| Object::new(&allocator, layout(64, 8), 6)).collect();
    assert!(again.iter().all(|object| known(object) && object.is_whole()));
    again.into_iter().for_each(|object| object.free(&allocator));
}

/// Threads allocate objects, leave them in places that all share, and free those that others left.
/// Returns the number of objects that somebody else had written to.
fn exchange(allocator: &(impl GlobalAlloc + Sync), rounds: usize) -> usize {
    const PLACES: usize = 256;
    let places: Vec<Mutex<Option<Object>>> = (0..PLACES).map(|_| Mutex::new(None)).collect();
    let torn = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..4usize {
            let (places, torn) = (&places, &torn);
            scope.spawn(move || {
                let mut random = 0x9e37_79b9_7f4a_7c15 ^ thread as u64;
                for _ in 0..rounds {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let size = 1 << ((random >> 60) % 12);
                    let mine = Object::new(allocator, layout(size, 1), (random >> 52) as u8);
                    let place = &places[(random >> 32) as usize % PLACES];
                    let before = place.lock().expect("a place").replace(mine);
                    if let Some(object) = before {
                        torn.fetch_add(usize::from(!object.is_whole()), AcqRel);
                        object.free(allocator);
                    }
                }
            });
        }
    });
    for place in places {
        if let Some(object) = place.into_inner().expect("a place") {
            torn.fetch_add(usize::from(!object.is_whole()), AcqRel);
            object.free(allocator);
        }
    }
    torn.into_inner()
}

// SAFETY: an object may be freed by any thread.
unsafe impl Send for Object {}

#[test]
fn objects_that_other_threads_free_overlap_no_others() {
    on_every_source(|allocator| assert_eq!(exchange(allocator, 20_000), 0));
}

/// Negative control: an allocator behind that hands out a block twice is noticed.
#[test]
fn a_block_that_two_objects_have_is_noticed() {
    struct Leaky(Ledger);
    // SAFETY: none: this is the planted fault. Blocks are never freed, and have 4096 bytes.
    unsafe impl GlobalAlloc for Leaky {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's obligations are the same.
            unsafe { self.0.alloc(layout) }
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }
    let leaky = Leaky(Ledger::new());
    // SAFETY: the layout has a size.
    let block = unsafe { leaky.alloc(layout(4096, 16)) };
    leaky.0.twice.store(block, Relaxed);
    let allocator = PerCpu::new(leaky);
    assert!(exchange(&allocator, 1000) > 0);
    drop(allocator);
    // SAFETY: the one block, which nobody uses any more.
    unsafe { System.dealloc(block, layout(4096, 16)) };
}
