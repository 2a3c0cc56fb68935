//! The shared words between the readers and the thread that answers. A reader requests a report,
//! and detects whether it has read a complete one. The answering thread detects that it must end.
//!
//! # Proof
//!
//! The count of answers is odd from before a report is written until after it: a release fence
//! stands between the odd count and the writing, and the even count is stored with release. A
//! reader loads the count, reads, fences and loads the count again. If it has read any part of a
//! later report, the fences make it load that report's odd count, or a later one. If it began at an
//! even count, it reads all of that report.
//!
//! The end is stored in a separate word and then counted as a request, which prevents the thread
//! from sleeping, or wakes it. The order matters: if the thread takes that request for a reader's
//! and answers it, it then checks the end again, and finds it set. In the opposite order the thread
//! could find the end not set, and sleep after the last wake.
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom`.

use crate::sys::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};

/// The words of the header that change: see [`publish`](super).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Exchange {
    pub(crate) requests: AtomicU32,
    pub(crate) answers: AtomicU32,
    pub(crate) length: AtomicU64,
}

impl Exchange {
    /// Counts a report in `answers` while `write` writes it, and stores its length. Does not trust
    /// the count in the shared memory, which others may have changed.
    pub(crate) fn answer(&self, answers: &mut u32, write: impl FnOnce() -> u64) {
        *answers = answers.wrapping_add(1);
        self.answers.store(*answers, Relaxed);
        fence(Release);
        self.length.store(write(), Relaxed);
        *answers = answers.wrapping_add(1);
        self.answers.store(*answers, Release);
    }

    /// Sets `over`, so that the thread that answers must end, and adds a request so that it checks
    /// `over`.
    pub(crate) fn end(&self, over: &AtomicU32) {
        over.store(1, SeqCst);
        // As a request it cannot be missed between two looks.
        self.requests.fetch_add(1, SeqCst);
    }
}
