//! The number of copies of every object, and the copy that a thread uses.
//!
//! There are as many copies as CPUs may be used. A thread uses the copy of its current CPU, if the
//! CPU number is cheap to read. Otherwise it uses a copy of its own: threads get the copies in
//! round-robin order, each at its first use, and keep them. Either way the number is reduced modulo
//! the number of copies. It is a hint: two threads with the same copy lose time and nothing else.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use super::system;
use crate::sys::MAX_CPUS;
use crate::sys::cpuset::CpuSet;

/// The result of [`possible_count`] in the proofs; 0 for the true number.
#[cfg(feature = "testing")]
pub(crate) static PRETENDED: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of copies. The standard library is called once, as it may read files and
/// allocate; later changes of a process's permissions are ignored.
pub(crate) fn possible_count() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    #[cfg(feature = "testing")]
    if let pretended @ 1.. = PRETENDED.load(Relaxed) {
        return pretended;
    }
    match COUNT.load(Relaxed) {
        0 => {
            let count = thread::available_parallelism().map_or(1, usize::from);
            // If several threads are here at once, the first decides.
            let count = count.clamp(1, MAX_CPUS);
            COUNT.compare_exchange(0, count, Relaxed, Relaxed).map_or_else(|first| first, |_| count)
        }
        known => known,
    }
}

/// Returns the copy that the calling thread currently uses.
pub(crate) fn current_cpu() -> u32 {
    let number = system::current_cpu().unwrap_or_else(stripe) as usize;
    (number % possible_count()) as u32
}

/// Returns the calling thread's number, in the order of the first calls.
fn stripe() -> u32 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<Option<u32>> = const { Cell::new(None) };
    }
    // A signal handler that runs in between may draw a number of its own, which is then not used.
    MINE.get().unwrap_or_else(|| {
        let mine = NEXT.fetch_add(1, Relaxed) as u32;
        MINE.set(Some(mine));
        mine
    })
}

/// Adds the CPUs that the process may use to `set`, numbered from 0 on: the system's own numbers
/// are not known.
pub(crate) fn read_allowed(set: &mut CpuSet) -> bool {
    (0..possible_count() as u32).for_each(|cpu| set.insert(cpu));
    true
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// More threads than copies, so that the numbers repeat.
    #[test]
    fn a_thread_uses_a_copy_that_there_is() {
        let copies = possible_count() as u32;
        let threads: Vec<_> = (0..2 * copies + 1)
            .map(|_| thread::spawn(|| [(); 100].map(|()| current_cpu())))
            .collect();
        for thread in threads {
            let used = thread.join().expect("no panic");
            assert!(used.iter().all(|&copy| copy < copies), "{used:?}");
        }
    }

    #[test]
    fn a_thread_keeps_its_stripe_and_no_other_thread_gets_it() {
        let deal = |_| {
            let of_thread = || {
                let mine = stripe();
                assert_eq!(mine, stripe());
                mine
            };
            thread::spawn(of_thread).join().expect("no panic")
        };
        assert_eq!((0..10).map(deal).collect::<HashSet<_>>().len(), 10);
    }

    #[test]
    fn there_are_as_many_cpus_as_copies() {
        let mut allowed = CpuSet::new();
        assert!(read_allowed(&mut allowed));
        assert_eq!((allowed.len(), allowed.contains(0)), (possible_count(), true));
    }
}
