//! Pools and allocators: 64 bytes allocated, and freed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use percid::id::SourceError;
use percid::{Pool, Source};

use super::form::{observe, repeat};
use super::operation::{Account, Family, Measured, Operation};

const FAMILY: Family = Family::ListsAndPools;
/// Bytes of an object: a cache line.
const SIZE: usize = 64;
/// Number of objects that a pool keeps for each ID.
const CAPACITY: u32 = 1024;

pub(super) fn operations() -> impl Iterator<Item = Operation> {
    let others = [
        Operation::other(FAMILY, "malloc_free", Malloc),
        #[cfg(feature = "peers")]
        Operation::other(FAMILY, "mimalloc", Mimalloc),
    ];
    others.into_iter().chain(Operation::per_source(FAMILY, "pool_get_put", Objects::with_source))
}

/// The C library's allocator.
struct Malloc;

impl Measured for Malloc {
    fn repeat(&self, times: u64, _: usize) {
        malloc_free(times);
    }

    fn account(&self, _: u64) -> Option<Account> {
        None
    }
}

#[inline(never)]
fn malloc_free(times: u64) {
    repeat(times, |_| {
        // SAFETY: the call takes a size and has no other requirement.
        let block = unsafe { libc::malloc(SIZE) };
        observe(block.addr() as u64);
        // SAFETY: `block` comes from `malloc` and is freed once; null is allowed.
        unsafe { libc::free(block) };
    });
}

/// mimalloc, called by its C interface.
#[cfg(feature = "peers")]
struct Mimalloc;

#[cfg(feature = "peers")]
impl Measured for Mimalloc {
    fn repeat(&self, times: u64, _: usize) {
        mimalloc(times);
    }

    fn account(&self, _: u64) -> Option<Account> {
        None
    }
}

#[cfg(feature = "peers")]
#[inline(never)]
fn mimalloc(times: u64) {
    repeat(times, |_| {
        // SAFETY: the call takes a size and has no other requirement.
        let block = unsafe { libmimalloc_sys::mi_malloc(SIZE) };
        observe(block.addr() as u64);
        // SAFETY: `block` comes from `mi_malloc` and is freed once; null is allowed.
        unsafe { libmimalloc_sys::mi_free(block) };
    });
}

/// percid's pool, and the counts of its objects.
struct Objects {
    pool: Pool<Object, Make>,
    counts: Arc<Counts>,
}

/// An object that is counted when it is created and when it is finally dropped.
#[repr(align(64))]
struct Object {
    counts: Arc<Counts>,
}

/// The constructor of objects. It is not on the path that is measured.
type Make = Box<dyn Fn() -> Object + Send + Sync>;

const _: () = assert!(size_of::<Object>() == SIZE);

/// Numbers of created and dropped objects.
#[derive(Default)]
struct Counts {
    made: AtomicU64,
    dropped: AtomicU64,
}

impl Drop for Object {
    fn drop(&mut self) {
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Objects {
    fn with_source(source: Source) -> Result<Self, SourceError> {
        let counts = Arc::new(Counts::default());
        let of_pool = Arc::clone(&counts);
        let make: Make = Box::new(move || {
            of_pool.made.fetch_add(1, Ordering::Relaxed);
            Object { counts: Arc::clone(&of_pool) }
        });
        Ok(Objects { pool: Pool::with_source(source, make, CAPACITY)?, counts })
    }
}

impl Measured for Objects {
    fn repeat(&self, times: u64, _: usize) {
        get_put(&self.pool, times);
    }

    /// Compares the created objects with the dropped ones; all are dropped once the pool is
    /// drained.
    fn account(&self, _: u64) -> Option<Account> {
        self.pool.drain();
        let made = self.counts.made.load(Ordering::Relaxed);
        let dropped = self.counts.dropped.load(Ordering::Relaxed);
        Some(Account { added: made as i64, sum: dropped as i64 })
    }
}

#[inline(never)]
fn get_put(pool: &Pool<Object, Make>, times: u64) {
    repeat(times, |_| {
        let object = pool.get();
        observe((&raw const *object).addr() as u64);
    });
}
