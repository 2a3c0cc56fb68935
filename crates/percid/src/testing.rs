//! Hooks for percid's own proofs. Not for programs: they violate the library's guarantees.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::buckets::Buckets;
use crate::counter::Counter;
use crate::float_counter::FloatCounter;
use crate::histogram::Histogram;
use crate::id::table::{self, hooks};
use crate::id::{fence, spoilt};
use crate::local::Local;
use crate::ring::Ring;
use crate::stack::Stack;
use crate::sys::{affinity, rseq};

/// An ID that was taken from a CPU and belongs to the owner of this value alone.
#[derive(Debug)]
pub struct Stolen {
    id: u32,
}

/// Steals the ID of `cpu`, like the slow path of another CPU. Returns `None` if the CPU has none,
/// or another thread holds the table's lock.
pub fn steal(cpu: u32) -> Option<Stolen> {
    hooks::steal(cpu).map(|id| Stolen { id })
}

/// Evicts the ID of `cpu`, like compaction, with a fence of all CPUs, and keeps it from being
/// reused.
pub fn evict(cpu: u32) -> Option<Stolen> {
    hooks::evict(cpu).map(|id| Stolen { id })
}

impl Stolen {
    /// Returns the ID.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Adds `n` to the stolen ID's own shard of a table counter, by a load and a store without any
    /// protection: correct if and only if no other thread uses the ID.
    pub fn add_unprotected(&self, counter: &Counter, n: i64) {
        if let Some(word) = counter.word_of_id(self.id) {
            word.store(word.load(Relaxed).wrapping_add(n), Relaxed);
        }
    }

    /// Adds `times` to a value's bucket of a histogram, like
    /// [`add_unprotected`](Stolen::add_unprotected).
    pub fn record_unprotected(&self, histogram: &Histogram, value: u64, times: u64) {
        if let Some(word) = histogram.word_of_id(value, self.id) {
            word.store(word.load(Relaxed).wrapping_add(times as i64), Relaxed);
        }
    }

    /// Adds values to a bucket and the sum of buckets, like
    /// [`add_unprotected`](Stolen::add_unprotected).
    pub fn tally_unprotected(&self, buckets: &Buckets, bucket: usize, times: u64, sum: f64) {
        buckets.tally_unprotected(self.id, bucket, times, sum);
    }

    /// Adds to a counter of floats, like [`add_unprotected`](Stolen::add_unprotected).
    pub fn add_float_unprotected(&self, counter: &FloatCounter, n: f64) {
        if let Some(word) = counter.word_of_id(self.id) {
            let sum = f64::from_bits(word.load(Relaxed) as u64) + n;
            word.store(sum.to_bits() as i64, Relaxed);
        }
    }

    /// Pushes to the stolen ID's own shard of a stack as if no other thread used it.
    ///
    /// # Errors
    ///
    /// Returns the item if that shard is full or inactive.
    pub fn push_unprotected<T: Send>(&self, stack: &Stack<T>, item: T) -> Result<(), T> {
        stack.push_to_id(self.id, item)
    }

    /// Pops from the stolen ID's own shard of a stack as if no other thread used it.
    pub fn pop_unprotected<T: Send>(&self, stack: &Stack<T>) -> Option<T> {
        stack.pop_from_id(self.id)
    }

    /// Appends to the stolen ID's own shard of a ring as if no other thread used it. Returns `true`
    /// if it did.
    pub fn append_unprotected(&self, ring: &Ring, record: &[u8]) -> bool {
        ring.append_to_id(self.id, record)
    }

    /// Assigns the ID to `cpu`, or frees it if that CPU has one by now or is `None`.
    pub fn put_back(self, cpu: Option<u32>) {
        // The thread that has the lock is nearly always running, and finished in a few
        // microseconds.
        while !(0..200).any(|_| hooks::put_back(self.id, cpu)) {
            std::thread::yield_now();
        }
    }
}

/// Makes the library assume that the machine can have `count` CPUs. Must be called before anything
/// else.
pub fn pretend_possible_cpus(count: usize) {
    affinity::PRETENDED.store(count, Relaxed);
}

/// The override of the kernel probe, see [`spoil_probe`].
pub use crate::id::spoilt::Spoilt as SpoiltProbe;

/// Overrides the probe that tests whether the kernel aborts critical sections. Must be called
/// before anything else.
pub fn spoil_probe(how: SpoiltProbe) {
    spoilt::SPOILT.store(how as u32, Relaxed);
}

/// Skips all fences from now on if `skip`: increments must then be lost.
pub fn skip_fence(skip: bool) {
    fence::SKIP.store(skip, Relaxed);
}

/// Returns the number of IDs of the table that are held or in transit; `None` if another thread
/// holds the table's lock.
pub fn table_ids_in_use() -> Option<usize> {
    hooks::ids_in_use()
}

/// Compacts the table like [`crate::compact_ids`], whatever source the process has chosen.
pub fn compact_table() -> u32 {
    table::compact_ids()
}

/// Runs `body` while the calling thread holds the table's lock with all signals blocked; `None` if
/// another thread holds it.
pub fn while_table_is_locked<T>(body: impl FnOnce() -> T) -> Option<T> {
    hooks::while_locked(body)
}

/// Fences one CPU, which aborts the section in flight there. Returns `false` if the kernel refuses.
pub fn fence(cpu: u32) -> bool {
    hooks::fence(cpu)
}

/// Returns an ID's count in a value's bucket of a histogram.
pub fn recorded_by_id(histogram: &Histogram, value: u64, id: u32) -> i64 {
    histogram.word_of_id(value, id).map_or(0, |word| word.load(Relaxed))
}

/// Returns an ID's count in a bucket.
pub fn tallied_by_id(buckets: &Buckets, bucket: usize, id: u32) -> u64 {
    buckets.count_of_id(id, bucket)
}

/// Returns an ID's sum in a counter of floats.
pub fn float_by_id(counter: &FloatCounter, id: u32) -> f64 {
    counter.word_of_id(id).map_or(0.0, |word| f64::from_bits(word.load(Relaxed) as u64))
}

/// Returns the items in an ID's shard of a stack, the top first; `None` if the shard is inactive.
/// No thread may use the stack during the call.
pub fn items_of_id<T: Copy + Send>(stack: &Stack<T>, id: u32) -> Option<Vec<T>> {
    stack.items_of_id(id)
}

/// Pushes an item to the shared list of a stack.
///
/// # Errors
///
/// Returns the item if there is no memory.
pub fn push_shared<T: Send>(stack: &Stack<T>, item: T) -> Result<(), T> {
    stack.push_shared(item)
}

/// Returns the position of the oldest record in an ID's shard of a ring, and the position behind
/// its newest.
pub fn ends_of_id(ring: &Ring, id: u32) -> Option<(u64, u64)> {
    ring.ends_of_id(id)
}

/// Returns the lock and the value of an ID's shard: the lock is 0 if there is no value, and 1 if no
/// thread uses it.
pub fn shard_of_id<T, F>(local: &Local<T, F>, id: u32) -> Option<(&AtomicI64, *mut T)> {
    local.shard_of_id(id)
}

/// Unregisters the calling thread's rseq area, wherever that is: from now on its critical sections
/// are not protected. Returns `false` if the kernel refuses.
pub fn unregister_this_thread() -> bool {
    rseq::unregister_by_hand()
}

/// Returns the rseq area that the calling thread's sections use, and its number of registered
/// bytes; `None` if there is none.
pub fn rseq_area() -> Option<(*mut u8, usize)> {
    rseq::area()
}
