//! The anchor of a thread: an address in the C library's record of it.
//!
//! The kernel has such an address if a thread has registered its list of robust mutexes, whose head
//! lies in the record: glibc does so at a thread's start. musl does so only when such a mutex is
//! locked, but links its records to a ring.

use crate::sys::process::{self, Thread};

/// An address in a thread's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) place: usize,
    /// `true` if the thread has a mapping of its own, made by the C library. The first one has not.
    pub(super) alone: bool,
}

/// Returns the start of the C library's record of the calling thread.
pub(super) fn thread() -> usize {
    // SAFETY: the call takes nothing. In both libraries the result is the address of the record.
    unsafe { libc::pthread_self() as usize }
}

/// Returns the calling thread's anchor.
#[cfg(not(target_env = "musl"))]
pub(super) fn own() -> Option<usize> {
    robust_list(0)
}

/// Returns the anchors of the threads, and those that have none.
#[cfg(not(target_env = "musl"))]
pub(super) fn all(threads: &[Thread]) -> (Vec<Anchor>, Vec<Thread>) {
    let (mut anchors, mut without) = (Vec::new(), Vec::new());
    for thread in threads {
        match robust_list(thread.number) {
            Some(place) => anchors.push(Anchor { place, alone: thread.number != process::id() }),
            None => without.push(*thread),
        }
    }
    (anchors, without)
}

/// Returns the head of a thread's list of robust mutexes, which glibc stores in the thread's
/// record; for 0, that of the calling thread.
#[cfg(not(target_env = "musl"))]
fn robust_list(thread: u32) -> Option<usize> {
    let (mut head, mut bytes) = (0usize, 0usize);
    // SAFETY: both places are valid for a word.
    let known = unsafe {
        libc::syscall(libc::SYS_get_robust_list, thread, &raw mut head, &raw mut bytes) == 0
    };
    (known && head != 0).then_some(head)
}

#[cfg(target_env = "musl")]
pub(super) use musl::{all, own};

#[cfg(target_env = "musl")]
mod musl {
    use super::{Anchor, Thread, process, thread};

    /// Number of the first words of a record: its own address, the neighbours in the ring of all
    /// records, and the thread's number, at positions that depend on where the thread pointer
    /// points.
    const WORDS: usize = NUMBER + 1;
    const BEFORE: usize = if cfg!(target_arch = "x86_64") { 2 } else { 1 };
    const NUMBER: usize = if cfg!(target_arch = "x86_64") { 6 } else { 4 };

    /// More threads than Linux supports.
    const MAX_THREADS: usize = 1 << 22;

    /// Returns the calling thread's anchor.
    pub(in super::super) fn own() -> Option<usize> {
        Some(thread())
    }

    /// Returns the anchors of the threads, and those that have none. The ring is read as a debugger
    /// would, because a thread may end at any time, and accepted if every link leads back.
    pub(in super::super) fn all(threads: &[Thread]) -> (Vec<Anchor>, Vec<Thread>) {
        let ring = (0..3).find_map(|_| ring()).unwrap_or_default();
        let anchor =
            |&(place, number): &(usize, u32)| Anchor { place, alone: number != process::id() };
        let is_missing =
            |thread: &&Thread| !ring.iter().any(|(_, number)| *number == thread.number);
        (ring.iter().map(anchor).collect(), threads.iter().filter(is_missing).copied().collect())
    }

    /// Returns the addresses and thread numbers of the records; `None` if a link does not lead
    /// back.
    fn ring() -> Option<Vec<(usize, u32)>> {
        let first = thread();
        let (mut place, mut words) = (first, record(first)?);
        let mut found = Vec::new();
        while found.len() < MAX_THREADS {
            found.push((place, words[NUMBER] as u32));
            let next = words[BEFORE + 1];
            let those = record(next)?;
            if those[0] != next || those[BEFORE] != place {
                return None;
            }
            if next == first {
                return Some(found);
            }
            (place, words) = (next, those);
        }
        None
    }

    /// Returns the first words of a record; `None` if nothing is mapped there any more.
    fn record(place: usize) -> Option<[usize; WORDS]> {
        let mut words = [0usize; WORDS];
        let bytes = size_of_val(&words);
        let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
        let start = std::ptr::without_provenance_mut(place);
        let there = libc::iovec { iov_base: start, iov_len: bytes };
        // SAFETY: the kernel checks the remote address; `words` has room for the bytes.
        let got = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &there, 1, 0) };
        (got == bytes as isize).then_some(words)
    }
}
