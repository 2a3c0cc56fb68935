//! Hooks for percid's own proofs. Not for programs: they break what the library promises.

use std::sync::atomic::Ordering::Relaxed;

use crate::counter::Counter;
use crate::id::table::{self, hooks};
use crate::sys::rseq;

/// An ID that was taken from a CPU and belongs to the holder of this value alone.
#[derive(Debug)]
pub struct Stolen {
    id: u32,
}

/// Takes the ID of `cpu` away from it, as the slow path of another CPU would. `None` if it has none, or
/// somebody else is busy with the table.
pub fn steal(cpu: u32) -> Option<Stolen> {
    hooks::steal(cpu).map(|id| Stolen { id })
}

/// As [`steal`], by the way of compaction: evicted with a fence of all CPUs, then kept from being reused.
pub fn evict(cpu: u32) -> Option<Stolen> {
    hooks::evict(cpu).map(|id| Stolen { id })
}

impl Stolen {
    /// The ID.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Adds `n` to the stolen ID's own copy of a table counter, by a load and a store without any
    /// protection: right if and only if nobody else uses the ID.
    pub fn add_unprotected(&self, counter: &Counter, n: i64) {
        if let Some(word) = counter.word_of_id(self.id) {
            word.store(word.load(Relaxed).wrapping_add(n), Relaxed);
        }
    }

    /// Hands the ID to `cpu`, or frees it if that CPU has one by now or `None` is given.
    pub fn put_back(self, cpu: Option<u32>) {
        // Whoever has the lock is nearly always running, and done in a few microseconds.
        while !(0..200).any(|_| hooks::put_back(self.id, cpu)) {
            std::thread::yield_now();
        }
    }
}

/// Skips all fences from now on: increments must then be lost.
pub fn skip_fence(skip: bool) {
    table::SKIP_FENCE.store(skip.into(), Relaxed);
}

/// How many IDs of the table are held or in transit; `None` if somebody is busy with the table.
pub fn table_ids_in_use() -> Option<usize> {
    hooks::ids_in_use()
}

/// As [`crate::compact`], whatever source the process has chosen.
pub fn compact_table() -> u32 {
    table::compact()
}

/// Runs `body` while the calling thread holds the table's lock with all signals blocked; `None` if
/// somebody else holds it.
pub fn while_table_is_locked<T>(body: impl FnOnce() -> T) -> Option<T> {
    hooks::while_locked(body)
}

/// Fences one CPU, which aborts the section in flight there. `false` if the kernel refuses.
pub fn fence(cpu: u32) -> bool {
    hooks::fence(cpu)
}

/// Takes the calling thread's registration for rseq back, wherever its area is: from now on its critical
/// sections are protected by nothing. `false` if the kernel refuses.
pub fn unregister_this_thread() -> bool {
    rseq::unregister_by_hand()
}
