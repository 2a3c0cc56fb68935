//! Thread numbers that identify the holder of a lock; no thread in a child of `fork` has the same
//! number.
//!
//! Threads are numbered in the order of their first calls, and no number is used twice. A child of
//! `fork` inherits the number of the thread that forked, and the next free one. So the process's
//! *generation* precedes it: the number of processes from the one that called first down to this
//! one. A process is identified by its number. A child's number is not its parent's. A descendant
//! may get the number of a process that has ended. If no process between the two ever called, the
//! two count as one.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::system;

/// The number of the process that called last, and below it its generation.
static PROCESS: AtomicU64 = AtomicU64::new(0);

/// Returns the calling thread's number, which is not 0.
pub(crate) fn me() -> u64 {
    u64::from(generation()) << 32 | u64::from(thread_number())
}

/// Returns `true` if a thread of this process has or had that number: a thread that has ended holds
/// nothing.
pub(crate) fn exists(holder: u64) -> bool {
    (holder >> 32) as u32 == generation()
}

/// Returns the number of this process among its ancestors, from 1 on.
pub(crate) fn generation() -> u32 {
    generation_of(&PROCESS, system::process_number())
}

fn generation_of(place: &AtomicU64, process: u32) -> u32 {
    let mut seen = place.load(Relaxed);
    loop {
        let (known, generation) = ((seen >> 32) as u32, seen as u32);
        if known == process && generation != 0 {
            return generation;
        }
        let next = u64::from(process) << 32 | u64::from(generation + 1);
        match place.compare_exchange(seen, next, Relaxed, Relaxed) {
            Ok(_) => return generation + 1,
            // A signal handler of this thread, or another thread, was faster.
            Err(now) => seen = now,
        }
    }
}

/// Returns a number from 1 on, below 2^30: [`TryOnce`](crate::id) uses numbers above those.
fn thread_number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static MINE: Cell<u32> = const { Cell::new(0) };
    }
    match MINE.get() {
        0 => {
            let mine = LAST.fetch_add(1, Relaxed) % (1 << 30) + 1;
            // A handler that ran in between may have drawn a number: it has released everything it
            // held.
            MINE.set(mine);
            mine
        }
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_process_know_each_other() {
        let mine = me();
        assert_eq!(mine, me());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(mine != me() && exists(mine) && exists(me())));
        });
        assert!(!exists(mine ^ 1 << 63) && mine != 0);
    }

    #[test]
    fn a_process_is_of_another_generation_than_its_parent() {
        let place = AtomicU64::new(0);
        let asked = [17, 17, 18, 18, 17, 0, 0].map(|process| generation_of(&place, process));
        assert_eq!(asked, [1, 1, 2, 2, 3, 4, 4]);
    }

    #[test]
    fn the_first_process_may_have_any_number() {
        assert_eq!(generation_of(&AtomicU64::new(0), 0), 1);
    }

    #[test]
    #[cfg(all(unix, not(any(miri, percid_plain))))]
    fn a_child_knows_no_thread_of_its_parent() {
        let mine = me();
        // SAFETY: the child calls async-signal-safe functions only, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let apart = me() != mine && !exists(mine) && exists(me());
            // SAFETY: ends the child.
            unsafe { libc::_exit(if apart { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the status has a valid place.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:x}");
        assert_eq!(me(), mine);
    }
}
