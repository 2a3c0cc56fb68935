//! Allocating and freeing: percid-alloc's caches in front of an allocator, and allocators alone.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Relaxed};

use percid_alloc::PerCpu;

use super::form::repeat;
use super::operation::{Account, Alone, Family, Measured, Operation};

/// Number of objects of a worker, or that all share.
const LIVE: usize = 512;

/// The bytes that a cache of percid-alloc keeps at most: as many as it has by default.
const LIMIT: usize = 16 << 20;

/// Returns all operations of `percid bench alloc` except `plain_add`.
pub(crate) fn operations(workers: usize) -> Vec<Operation> {
    own(workers)
        .chain(others(workers, ["system_mixed", "system_shared"], System))
        .chain(mimalloc_operations(workers))
        .collect()
}

fn own(workers: usize) -> impl Iterator<Item = Operation> {
    let cached = |source| PerCpu::with_source(System, source, LIMIT);
    let mixed = Operation::per_source(Family::Allocators, "per_cpu_mixed", move |source| {
        Ok(Mixed::new(cached(source)?, workers))
    });
    let shared = Operation::per_source(Family::Allocators, "per_cpu_shared", move |source| {
        Ok(Shared::new(cached(source)?))
    });
    mixed.chain(shared)
}

fn others<A: Subject + Copy + Send + 'static>(
    workers: usize,
    names: [&'static str; 2],
    allocator: A,
) -> impl Iterator<Item = Operation> {
    let mixed = Mixed::new(allocator, workers);
    [
        Operation::other(Family::Allocators, names[0], mixed),
        Operation::other(Family::Allocators, names[1], Shared::new(allocator)),
    ]
    .into_iter()
}

#[cfg(not(feature = "peers"))]
fn mimalloc_operations(_: usize) -> impl Iterator<Item = Operation> {
    std::iter::empty()
}

#[cfg(feature = "peers")]
fn mimalloc_operations(workers: usize) -> impl Iterator<Item = Operation> {
    let front =
        Operation::per_source(Family::Allocators, "per_cpu_mimalloc_mixed", move |source| {
            Ok(Mixed::new(PerCpu::with_source(Mimalloc, source, LIMIT)?, workers))
        });
    others(workers, ["mimalloc_mixed", "mimalloc_shared"], Mimalloc).chain(front)
}

/// mimalloc, called by its C interface.
#[cfg(feature = "peers")]
#[derive(Clone, Copy)]
pub(crate) struct Mimalloc;

// SAFETY: mimalloc returns blocks of the requested size, with an alignment of 16 bytes for sizes that
// are multiples of it, and at least that of the size's lowest bit otherwise. The operations ask for
// no more than 8.
#[cfg(feature = "peers")]
unsafe impl GlobalAlloc for Mimalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: a size; null is a possible answer.
        unsafe { libmimalloc_sys::mi_malloc(layout.size()) }.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, _: Layout) {
        // SAFETY: the object came from `mi_malloc`, and is freed once.
        unsafe { libmimalloc_sys::mi_free(object.cast()) };
    }
}

/// An allocator that may say how many of its blocks programs have.
trait Subject: GlobalAlloc + Sync {
    fn live(&self) -> Option<i64>;
}

impl Subject for System {
    fn live(&self) -> Option<i64> {
        None
    }
}

#[cfg(feature = "peers")]
impl Subject for Mimalloc {
    fn live(&self) -> Option<i64> {
        None
    }
}

impl<A: GlobalAlloc + Sync> Subject for PerCpu<A> {
    fn live(&self) -> Option<i64> {
        let classes = self.statistics().classes;
        let live = classes
            .iter()
            .map(|class| class.obtained as i64 - class.returned as i64 - class.cached as i64);
        Some(live.sum())
    }
}

/// An object with its number of bytes in front. Null is none.
struct Object(*mut u8);

impl Object {
    /// Allocates an object of 16 to 1,023 bytes: all powers of two are equally frequent.
    #[inline(always)]
    fn new(allocator: &impl GlobalAlloc, random: u64) -> Object {
        let power = 16 << ((random >> 32) % 6);
        let size = power + (random >> 40) as usize % power;
        // SAFETY: the layout has a size, and room for it in front.
        unsafe {
            let object = allocator.alloc(layout(size));
            if !object.is_null() {
                object.cast::<usize>().write(size);
            }
            Object(object)
        }
    }

    #[inline(always)]
    fn free(self, allocator: &impl GlobalAlloc) {
        if !self.0.is_null() {
            // SAFETY: the object came from this allocator, with the size that stands in front.
            unsafe { allocator.dealloc(self.0, layout(self.0.cast::<usize>().read())) };
        }
    }
}

#[inline(always)]
fn layout(size: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and sizes are small.
    unsafe { Layout::from_size_align_unchecked(size, 8) }
}

/// Returns the next number of a generator, from which the upper bits are used.
#[inline(always)]
fn next(random: u64) -> u64 {
    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// Each worker replaces one of its own objects by a new one.
struct Mixed<A> {
    allocator: A,
    workers: Box<[Alone<Own>]>,
}

/// The objects of one worker, and its random number.
struct Own(UnsafeCell<([*mut u8; LIVE], u64)>);

// SAFETY: each worker uses its own.
unsafe impl Sync for Own {}

impl<A> Mixed<A> {
    fn new(allocator: A, workers: usize) -> Self {
        let own = |seed| Alone(Own(UnsafeCell::new(([ptr::null_mut(); LIVE], seed))));
        Mixed { allocator, workers: (0..workers as u64).map(own).collect() }
    }
}

#[inline(never)]
fn mixed<A: GlobalAlloc>(allocator: &A, own: &mut ([*mut u8; LIVE], u64), times: u64) {
    let (objects, random) = own;
    repeat(times, |_| {
        *random = next(*random);
        let place = &mut objects[(*random >> 50) as usize % LIVE];
        Object(*place).free(allocator);
        *place = Object::new(allocator, *random).0;
    });
}

// SAFETY: objects belong to whoever has their address.
unsafe impl<A: Send> Send for Mixed<A> {}

impl<A: Subject> Measured for Mixed<A> {
    fn repeat(&self, times: u64, worker: usize) {
        // SAFETY: a worker uses its own objects, and none while `account` reads them.
        mixed(&self.allocator, unsafe { &mut *self.workers[worker].0.0.get() }, times);
    }

    fn account(&self, _: u64) -> Option<Account> {
        // SAFETY: no worker runs.
        let live = |own: &Alone<Own>| unsafe {
            (*own.0.0.get()).0.iter().filter(|object| !object.is_null()).count() as i64
        };
        let added = self.workers.iter().map(live).sum();
        self.allocator.live().map(|sum| Account { added, sum })
    }
}

/// All workers put objects into places that they share, and free what lay there: with several of
/// them, most objects are freed by another thread.
struct Shared<A> {
    allocator: A,
    places: Box<[AtomicPtr<u8>]>,
}

impl<A> Shared<A> {
    fn new(allocator: A) -> Self {
        Shared { allocator, places: (0..LIVE).map(|_| AtomicPtr::default()).collect() }
    }
}

#[inline(never)]
fn shared<A: GlobalAlloc>(allocator: &A, places: &[AtomicPtr<u8>], seed: u64, times: u64) {
    let mut random = next(seed);
    repeat(times, |_| {
        random = next(random);
        let object = Object::new(allocator, random);
        let place = &places[(random >> 50) as usize % LIVE];
        Object(place.swap(object.0, AcqRel)).free(allocator);
    });
}

impl<A: Subject> Measured for Shared<A> {
    fn repeat(&self, times: u64, worker: usize) {
        shared(&self.allocator, &self.places, times ^ (worker as u64) << 32, times);
    }

    fn account(&self, _: u64) -> Option<Account> {
        let is_live = |place: &&AtomicPtr<u8>| !place.load(Relaxed).is_null();
        let added = self.places.iter().filter(is_live).count() as i64;
        self.allocator.live().map(|sum| Account { added, sum })
    }
}
