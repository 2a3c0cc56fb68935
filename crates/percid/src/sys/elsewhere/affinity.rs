//! How many copies of everything there are, and which of them a thread uses.
//!
//! As many copies as CPUs may be used. A thread uses the one of the CPU that it is on, if asking for
//! that is cheap, or else one of its own: threads get the copies in turn, each at its first use, and
//! keep theirs. Either way the number is reduced to that of the copies; it is a hint, and two
//! threads with the same one lose time and nothing else.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use super::system;
use crate::sys::MAX_CPUS;
use crate::sys::cpuset::CpuSet;

/// What the proofs want [`possible_count`] to say; 0 for the truth.
#[cfg(feature = "testing")]
pub(crate) static PRETENDED: AtomicUsize = AtomicUsize::new(0);

/// How many copies there are. The standard library is asked once, as it may read files and
/// allocate; later changes of a process's rights are not followed.
pub(crate) fn possible_count() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    #[cfg(feature = "testing")]
    if let pretended @ 1.. = PRETENDED.load(Relaxed) {
        return pretended;
    }
    match COUNT.load(Relaxed) {
        0 => {
            let count = thread::available_parallelism().map_or(1, usize::from);
            // Of several threads the first decides.
            let count = count.clamp(1, MAX_CPUS);
            COUNT.compare_exchange(0, count, Relaxed, Relaxed).map_or_else(|first| first, |_| count)
        }
        known => known,
    }
}

/// Which copy the calling thread uses at the moment.
pub(crate) fn current_cpu() -> u32 {
    let number = system::current_cpu().unwrap_or_else(stripe) as usize;
    (number % possible_count()) as u32
}

/// The calling thread's number among all that have asked.
fn stripe() -> u32 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<Option<u32>> = const { Cell::new(None) };
    }
    // A signal handler that runs in between deals a number that is then used by nobody.
    MINE.get().unwrap_or_else(|| {
        let mine = NEXT.fetch_add(1, Relaxed) as u32;
        MINE.set(Some(mine));
        mine
    })
}

/// Puts the CPUs that the process may use into `set`, by numbers from 0 on: the system's own are
/// not known.
pub(crate) fn read_allowed(set: &mut CpuSet) -> bool {
    (0..possible_count() as u32).for_each(|cpu| set.insert(cpu));
    true
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// More threads than copies, so that the numbers come round.
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
