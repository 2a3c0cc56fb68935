//! The threads that use shared data without a lock ("look at" it). Data that was made unreachable
//! may be freed once there is no such thread.
//!
//! # Proof
//!
//! A look begins and ends with a read-modify-write of one word, and so does counting: all of these
//! operations are in one order. A thread that begins after the count reads the value that the
//! counting thread wrote, so it observes every earlier removal. A thread that began before the
//! count is counted, unless it has ended by then. In that case the counting thread reads the value
//! that it wrote, so its reads come before. Therefore beginning acquires, ending releases, and
//! counting does both. A load is not enough: it may be executed before the stores that remove the
//! data.
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom`.

use crate::sys::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::sys::process;

/// Number of threads that are looking; in the upper half, the generation of their process. A child
/// of `fork` has none of the threads that were looking in its parent.
#[derive(Debug)]
pub(crate) struct Lookers {
    pub(crate) word: AtomicU64,
}

impl Lookers {
    /// Counts the calling thread as a looker while `body` runs. Async-signal-safe.
    pub(crate) fn look<T>(&self, body: impl FnOnce() -> T) -> T {
        let own = u64::from(process::generation()) << 32;
        let is_own = |word: u64| word >> 32 == own >> 32;
        let come = |word| Some(if is_own(word) { word + 1 } else { own + 1 });
        // If the word is of another process, a handler that interrupted `body` has called `fork`.
        let go = |word| is_own(word).then(|| word - 1);
        let _ = self.word.fetch_update(Acquire, Relaxed, come);
        let result = body();
        let _ = self.word.fetch_update(Release, Relaxed, go);
        result
    }

    /// Returns the number of this process's threads that may still use data that was removed
    /// before.
    pub(crate) fn count(&self) -> u32 {
        let word = self.word.fetch_add(0, AcqRel);
        if (word >> 32) as u32 == process::generation() { word as u32 } else { 0 }
    }
}
