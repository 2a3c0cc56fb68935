//! The words through which a reader requests a report and learns whether it has read a whole one,
//! and through which the thread that answers learns that it is to end.
//!
//! # Proof
//!
//! The count of answers is odd from before a report is written until after it: a release fence
//! stands between the odd count and the writing, and the even count is stored with release. A
//! reader loads the count, reads, fences and loads the count again. If it has read anything of a
//! later report, the fences show it that report's odd count, or a later one. If it began at an even
//! count, it sees all of that report.
//!
//! The end is said by a word of its own, and then by a request, which keeps the thread from falling
//! asleep, or wakes it. In this order: a thread that took that request for a reader's and has answered
//! it looks for the end again, and finds it. The other way round it could find that it is not over,
//! and fall asleep after the last wake.
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom`.

use crate::sys::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};

/// A part of the header: see [`publish`](super).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Exchange {
    pub(crate) requests: AtomicU32,
    pub(crate) answers: AtomicU32,
    pub(crate) length: AtomicU64,
}

impl Exchange {
    /// Counts a report in `answers` while `write` writes it, and stores its length. What others
    /// have stored in the count is not believed.
    pub(crate) fn answer(&self, answers: &mut u32, write: impl FnOnce() -> u64) {
        *answers = answers.wrapping_add(1);
        self.answers.store(*answers, Relaxed);
        fence(Release);
        self.length.store(write(), Relaxed);
        *answers = answers.wrapping_add(1);
        self.answers.store(*answers, Release);
    }

    /// Says in `over` that the thread that answers is to end, and requests that it looks there.
    pub(crate) fn end(&self, over: &AtomicU32) {
        over.store(1, SeqCst);
        // As a request it cannot be missed between two looks.
        self.requests.fetch_add(1, SeqCst);
    }
}
