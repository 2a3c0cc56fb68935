//! Thread numbers that identify the holder of a lock; no thread in a child of `fork` has the same
//! number.
//!
//! The kernel's thread numbers alone would not suffice. If the child begins a new PID namespace (a
//! container's first process, a fork after `unshare`), its threads have the numbers 1, 2, 3 there.
//! Threads of its parent may have these numbers in their namespace, so the child would mistake a
//! lock that such a thread holds for its own.
//!
//! So the process's *generation* precedes the number: the number of forks between it and the
//! process that called first. A process records its generation in memory that the kernel wipes in
//! every child, however it was made. It takes the next one from a counter that the child inherits.
//! Any holder that the child's copy of the memory names was written after the counter had reached
//! that holder's generation; so the child's own generation is higher. Within a process the kernel's
//! numbers suffice.
//!
//! If the kernel cannot wipe memory (before Linux 4.14), all generations are 0, and only the
//! kernel's number remains.

use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use super::{memory, process};
use crate::sys::preserving_errno;

/// The word that a fork wipes: the process's generation, 0 if it has none yet. Null at first. The
/// pointer never changes after that, so that all threads of a process agree.
static GENERATION: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// The target of [`GENERATION`] if there is no such word: always 0.
static NONE: AtomicU32 = AtomicU32::new(0);

/// The generations that were assigned, in this process and its ancestors.
static GENERATIONS: AtomicU32 = AtomicU32::new(0);

/// Returns the calling thread's number, which is not 0.
pub(crate) fn me() -> u64 {
    u64::from(generation()) << 32 | u64::from(process::thread_id())
}

/// Returns the process's number, which none of its ancestors and children has. If the kernel cannot
/// wipe memory, it is the kernel's number. Async-signal-safe.
#[cfg(any(feature = "capi", test))]
pub(crate) fn process() -> u64 {
    match generation() {
        0 => u64::from(std::process::id()),
        generation => u64::from(generation) << 32,
    }
}

/// Returns `true` if a thread of this process has that number, according to the kernel.
pub(crate) fn exists(holder: u64) -> bool {
    (holder >> 32) as u32 == generation() && process::has_thread(holder as u32)
}

/// Returns the number of this process among its ancestors; 0 if that is not known.
pub(crate) fn generation() -> u32 {
    let own = word();
    if ptr::eq(own, &NONE) { 0 } else { decided(own, || GENERATIONS.fetch_add(1, Relaxed) + 1) }
}

/// Returns the value that was stored first in a word that was 0.
fn decided(word: &AtomicU32, next: impl FnOnce() -> u32) -> u32 {
    match word.load(Relaxed) {
        0 => {
            let next = next();
            // Another thread may be here at the same time, or a signal handler of this one.
            word.compare_exchange(0, next, Relaxed, Relaxed).map_or_else(|first| first, |_| next)
        }
        known => known,
    }
}

fn word() -> &'static AtomicU32 {
    // SAFETY: the pointer is null, or points to a word that stays forever.
    unsafe { GENERATION.load(Acquire).as_ref() }.unwrap_or_else(|| preserving_errno(map))
}

/// Maps the word. Several threads, or a thread and its signal handler, may do so at once: the first
/// to publish wins and the others unmap theirs.
#[cold]
fn map() -> &'static AtomicU32 {
    let page = memory::map_wiped_on_fork(size_of::<AtomicU32>()).map(NonNull::cast::<AtomicU32>);
    let own = page.map_or(ptr::from_ref(&NONE).cast_mut(), NonNull::as_ptr);
    match GENERATION.compare_exchange(ptr::null_mut(), own, AcqRel, Acquire) {
        // SAFETY: a fresh zeroed mapping that stays, aligned to a page; or the static.
        Ok(_) => unsafe { &*own },
        Err(first) => {
            if let Some(page) = page {
                // SAFETY: no other thread has seen this mapping: the exchange failed.
                unsafe { memory::unmap(page.cast(), size_of::<AtomicU32>()) };
            }
            // SAFETY: the published word is a mapping that stays, or the static.
            unsafe { &*first }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the exit status of a child that runs `body`.
    fn in_child(body: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child calls async-signal-safe functions only, and exits.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child at once.
            0 => unsafe { libc::_exit(if body() { 7 } else { 1 }) },
            child => {
                let mut status = 0;
                // SAFETY: `status` is a valid place.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                libc::WEXITSTATUS(status)
            }
        }
    }

    #[test]
    fn the_first_of_two_threads_decides() {
        let word = AtomicU32::new(0);
        let other_comes = || {
            assert_eq!(decided(&word, || 5), 5);
            6
        };
        assert_eq!((decided(&word, other_comes), decided(&word, || 7)), (5, 5));
    }

    #[test]
    fn threads_of_a_process_know_each_other() {
        let mine = me();
        assert_eq!(mine, me());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(mine != me() && exists(mine) && exists(me())));
        });
        if cfg!(not(miri)) {
            assert!(!exists(mine & !0xffff_ffff | 1 << 23), "beyond the kernel's largest number");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri does not fork")]
    fn a_child_knows_no_thread_of_its_ancestors() {
        let mine = me();
        let number = mine as u32;
        // The thread has the same kernel number as `mine`: in another PID namespace that can
        // happen.
        let renamed = move || me() & !0xffff_ffff | u64::from(number);
        assert_eq!(renamed(), mine);
        let grandchild = move |theirs| renamed() != mine && renamed() != theirs && !exists(theirs);
        let process_there = process();
        assert_eq!(process_there, process());
        let child = move || {
            let theirs = me();
            // A thread of the parent with the number of a thread that exists here.
            let lookalike = mine & !0xffff_ffff | u64::from(process::thread_id());
            renamed() != mine
                && !exists(mine)
                && !exists(lookalike)
                && process() != process_there
                && in_child(move || grandchild(theirs)) == 7
        };
        assert_eq!(in_child(child), 7);
        assert_eq!(me(), mine);
    }
}
