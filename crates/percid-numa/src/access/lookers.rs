//! The threads that look at something shared without a lock: what was taken out of their sight may
//! be given back once there is none.
//!
//! # Proof
//!
//! Looking begins, and ends, by a read-modify-write of one word, and so does counting: all of them
//! are in one order. A thread that comes after the count has read what the counting thread wrote,
//! so it sees all that was taken out before. One that came before is counted, unless it has gone by
//! then; and then the counting thread has read what it wrote, so its looks come before. Therefore
//! coming acquires, going releases, and counting does both. A mere load would not do: it may be
//! carried out before the stores that take something out.
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom`.

use crate::sys::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::sys::process;

/// How many threads are looking; in the upper half, the process that they belong to. A child of
/// `fork` has none of the threads that were looking in its parent.
#[derive(Debug)]
pub(crate) struct Lookers {
    pub(crate) word: AtomicU64,
}

impl Lookers {
    /// Announces the calling thread while it looks. Async-signal-safe.
    pub(crate) fn look<T>(&self, body: impl FnOnce() -> T) -> T {
        let own = u64::from(process::generation()) << 32;
        let is_own = |word: u64| word >> 32 == own >> 32;
        let come = |word| Some(if is_own(word) { word + 1 } else { own + 1 });
        // Not of its own process any more: a handler that interrupted `body` has called `fork`.
        let go = |word| is_own(word).then(|| word - 1);
        let _ = self.word.fetch_update(Acquire, Relaxed, come);
        let result = body();
        let _ = self.word.fetch_update(Release, Relaxed, go);
        result
    }

    /// Returns how many threads of this process are looking at what was taken out before.
    pub(crate) fn count(&self) -> u32 {
        let word = self.word.fetch_add(0, AcqRel);
        if (word >> 32) as u32 == process::generation() { word as u32 } else { 0 }
    }
}
