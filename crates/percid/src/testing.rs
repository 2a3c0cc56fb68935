//! Hooks for percid's own proofs. Not for programs: they break what the library promises.

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

/// An ID that was taken from a CPU and belongs to the holder of this value alone.
#[derive(Debug)]
pub struct Stolen {
    id: u32,
}

/// Takes the ID of `cpu` away from it, as the slow path of another CPU would. `None` if it has
/// none, or another thread is busy with the table.
pub fn steal(cpu: u32) -> Option<Stolen> {
    hooks::steal(cpu).map(|id| Stolen { id })
}

/// As [`steal`], by the way of compaction: evicted with a fence of all CPUs, then kept from being
/// reused.
pub fn evict(cpu: u32) -> Option<Stolen> {
    hooks::evict(cpu).map(|id| Stolen { id })
}

impl Stolen {
    /// The ID.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Adds `n` to the stolen ID's own shard of a table counter, by a load and a store without any
    /// protection: right if and only if no other thread uses the ID.
    pub fn add_unprotected(&self, counter: &Counter, n: i64) {
        if let Some(word) = counter.word_of_id(self.id) {
            word.store(word.load(Relaxed).wrapping_add(n), Relaxed);
        }
    }

    /// As [`add_unprotected`](Stolen::add_unprotected), for a value's bucket of a histogram.
    pub fn record_unprotected(&self, histogram: &Histogram, value: u64, times: u64) {
        if let Some(word) = histogram.word_of_id(value, self.id) {
            word.store(word.load(Relaxed).wrapping_add(times as i64), Relaxed);
        }
    }

    /// As [`add_unprotected`](Stolen::add_unprotected), for values of some buckets.
    pub fn tally_unprotected(&self, buckets: &Buckets, bucket: usize, times: u64, sum: f64) {
        buckets.tally_unprotected(self.id, bucket, times, sum);
    }

    /// As [`add_unprotected`](Stolen::add_unprotected), for a counter of floats.
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
    /// Gives the item back if that shard is full or inactive.
    pub fn push_unprotected<T: Send>(&self, stack: &Stack<T>, item: T) -> Result<(), T> {
        stack.push_to_id(self.id, item)
    }

    /// Pops from the stolen ID's own shard of a stack as if no other thread used it.
    pub fn pop_unprotected<T: Send>(&self, stack: &Stack<T>) -> Option<T> {
        stack.pop_from_id(self.id)
    }

    /// Appends to the stolen ID's own shard of a ring as if no other thread used it. Returns
    /// whether it did.
    pub fn append_unprotected(&self, ring: &Ring, record: &[u8]) -> bool {
        ring.append_to_id(self.id, record)
    }

    /// Hands the ID to `cpu`, or frees it if that CPU has one by now or `None` is given.
    pub fn put_back(self, cpu: Option<u32>) {
        // The thread that has the lock is nearly always running, and done in a few microseconds.
        while !(0..200).any(|_| hooks::put_back(self.id, cpu)) {
            std::thread::yield_now();
        }
    }
}

/// Makes the library believe that the machine may have `count` CPUs. To be called before anything
/// else.
pub fn pretend_possible_cpus(count: usize) {
    affinity::PRETENDED.store(count, Relaxed);
}

/// How the probe of the kernel is spoilt, see [`spoil_probe`].
pub use crate::id::spoilt::Spoilt as SpoiltProbe;

/// Spoils the probe that finds out whether the kernel aborts critical sections. To be called before
/// anything else.
pub fn spoil_probe(how: SpoiltProbe) {
    spoilt::SPOILT.store(how as u32, Relaxed);
}

/// Skips all fences from now on: increments must then be lost.
pub fn skip_fence(skip: bool) {
    fence::SKIP.store(skip, Relaxed);
}

/// How many IDs of the table are held or in transit; `None` if another thread is busy with the
/// table.
pub fn table_ids_in_use() -> Option<usize> {
    hooks::ids_in_use()
}

/// As [`crate::compact`], whatever source the process has chosen.
pub fn compact_table() -> u32 {
    table::compact()
}

/// Runs `body` while the calling thread holds the table's lock with all signals blocked; `None` if
/// another thread holds it.
pub fn while_table_is_locked<T>(body: impl FnOnce() -> T) -> Option<T> {
    hooks::while_locked(body)
}

/// Fences one CPU, which aborts the section in flight there. `false` if the kernel refuses.
pub fn fence(cpu: u32) -> bool {
    hooks::fence(cpu)
}

/// What an ID has counted for a value's bucket of a histogram.
pub fn recorded_by_id(histogram: &Histogram, value: u64, id: u32) -> i64 {
    histogram.word_of_id(value, id).map_or(0, |word| word.load(Relaxed))
}

/// What an ID has counted in a bucket.
pub fn tallied_by_id(buckets: &Buckets, bucket: usize, id: u32) -> u64 {
    buckets.count_of_id(id, bucket)
}

/// What an ID has added to a counter of floats.
pub fn float_by_id(counter: &FloatCounter, id: u32) -> f64 {
    counter.word_of_id(id).map_or(0.0, |word| f64::from_bits(word.load(Relaxed) as u64))
}

/// The items that lie in an ID's shard of a stack, the top first; `None` if the shard is inactive.
/// No thread may use the stack meanwhile.
pub fn items_of_id<T: Copy + Send>(stack: &Stack<T>, id: u32) -> Option<Vec<T>> {
    stack.items_of_id(id)
}

/// Pushes an item to the shared list of a stack.
///
/// # Errors
///
/// Gives the item back if there is no memory.
pub fn push_shared<T: Send>(stack: &Stack<T>, item: T) -> Result<(), T> {
    stack.push_shared(item)
}

/// The positions of the oldest record in an ID's shard of a ring and behind its newest.
pub fn ends_of_id(ring: &Ring, id: u32) -> Option<(u64, u64)> {
    ring.ends_of_id(id)
}

/// The lock and the value of an ID's shard: 0 in the lock if there is no value, 1 if no thread uses
/// it.
pub fn shard_of_id<T, F>(local: &Local<T, F>, id: u32) -> Option<(&AtomicI64, *mut T)> {
    local.shard_of_id(id)
}

/// Takes the calling thread's registration for rseq back, wherever its area is: from now on its
/// critical sections are protected by nothing. `false` if the kernel refuses.
pub fn unregister_this_thread() -> bool {
    rseq::unregister_by_hand()
}

/// The rseq area that the calling thread's sections use, and how many bytes of it are registered;
/// `None` if there is none.
pub fn rseq_area() -> Option<(*mut u8, usize)> {
    rseq::area()
}
