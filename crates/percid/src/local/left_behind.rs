//! Values that threads of the parent were using at the time of a fork.
//!
//! The child has a copy of each such lock with its holder's token in it, and no thread that will
//! ever release it. Tokens do not identify a process: the child's threads may get the stacks, and
//! so the tokens, of threads of its parent. So every object stores the *generation* (see
//! [`holder`]) of the process in which its values were first made. While that is the calling
//! process's, all tokens belong to threads that live here, and a visitor waits for them without a
//! limit. If it is another, the first visitor of the process gives up on a lock that stays taken.
//! It does so at once if the process has no other thread, otherwise after about a second. It
//! *abandons* the shard: it replaces the token by [`ABANDONED`](super::lock::ABANDONED), which is
//! no thread's token, and does not touch the value. When it has visited all shards, no token of the
//! parent is left, and the object's generation becomes the process's.
//!
//! A thread of the child that takes longer than that is mistaken for one of the parent. Then only
//! the visit misses its value: the thread still has exclusive access, and its release, a plain
//! store, removes the mark.

use crate::backoff::Backoff;
use crate::sys::atomic::{AtomicU32, Ordering::Relaxed};
use crate::sys::{holder, process};

/// Records the process that makes a value, if it is the object's first. This happens before the
/// value's lock is released, so no value is older than the record.
pub(crate) fn note(generation: &AtomicU32) {
    if generation.load(Relaxed) == 0 {
        // If another thread was faster, it belongs to the same process.
        let _ = generation.compare_exchange(0, holder::generation(), Relaxed, Relaxed);
    }
}

/// A visitor's information about forks since the object's generation.
#[derive(Debug)]
pub(crate) struct Forks {
    /// The process's generation, if it is not the object's.
    since: Option<u32>,
    /// `true` if no other thread exists that could hold a lock.
    alone: bool,
    /// `true` if all shards were visited so far.
    complete: bool,
}

impl Forks {
    pub(crate) fn since(generation: &AtomicU32) -> Forks {
        let (then, now) = (generation.load(Relaxed), holder::generation());
        let since = (then != 0 && then != now).then_some(now);
        Forks { since, alone: since.is_some() && process::threads() == Some(1), complete: true }
    }

    /// Returns `true` if the holder, after such a wait, counts as a thread of another process.
    pub(crate) fn has_left(&self, waited: &Backoff) -> bool {
        self.since.is_some() && (self.alone || waited.is_exhausted())
    }

    /// Records that a shard is skipped.
    pub(crate) fn pass_by(&mut self) {
        self.complete = false;
    }

    /// Ends the visit: updates the object's generation if all shards were visited.
    pub(crate) fn settle(&self, generation: &AtomicU32) {
        if let Some(now) = self.since.filter(|_| self.complete) {
            generation.store(now, Relaxed);
        }
    }
}

#[cfg(all(test, unix, not(any(miri, percid_plain))))]
pub(super) mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::id::Source;
    use crate::local::Local;

    /// Runs `body` in a child, for at most a minute; it must return `true` there.
    pub(in crate::local) fn in_child(body: impl FnOnce() -> bool) {
        let status = status_of_child(body);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:x}");
    }

    /// Returns the exit status of a child that runs `body`: 7 if that returned `true`.
    fn status_of_child(body: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child calls async-signal-safe functions only, unless it has threads, and
        // exits.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child.
            0 => unsafe {
                libc::alarm(60);
                libc::_exit(if body() { 7 } else { 1 })
            },
            child => {
                let mut status = 0;
                // SAFETY: `status` is a valid place.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                status
            }
        }
    }

    fn sum(local: &Local<u64>) -> u64 {
        let mut sum = 0;
        local.for_each(|value| sum += *value);
        sum
    }

    /// Runs `check` while another thread is in a closure, and holds the value 1 of the values whose
    /// sum is 111.
    fn beside_a_closure(source: Source, check: impl FnOnce(&Local<u64>)) {
        let local = <Local<_>>::with_source(source, || 0).expect("an available source");
        let (inside, left) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                local.with(|value| {
                    *value += 1;
                    inside.wait();
                    left.wait();
                });
            });
            inside.wait();
            local.with(|value| {
                *value += 10;
                local.with(|value| *value += 100);
            });
            let outcome = catch_unwind(AssertUnwindSafe(|| check(&local)));
            left.wait();
            outcome.unwrap_or_else(|why| resume_unwind(why));
        });
        assert_eq!(sum(&local), 111, "{source}");
    }

    fn sources() -> impl Iterator<Item = Source> {
        Source::ALL.iter().copied().filter(|source| source.prepare().is_ok())
    }

    #[test]
    fn a_child_passes_by_what_a_thread_of_its_parent_was_using() {
        for source in sources() {
            beside_a_closure(source, |local| {
                in_child(|| {
                    let first = sum(local);
                    local.with(|value| *value += 1000);
                    (first, sum(local)) == (110, 1110)
                });
            });
        }
    }

    #[test]
    fn a_child_with_threads_waits_for_them() {
        beside_a_closure(Source::Atomic, |local| {
            // A user-space emulator (qemu 7.2) ends such a child.
            if libc::WEXITSTATUS(status_of_child(|| thread::spawn(|| ()).join().is_ok())) != 7 {
                return percid_skips::not_checked(
                    "a child of fork with threads",
                    "it cannot have any",
                );
            }
            in_child(|| {
                let (inside, is_done) = (Barrier::new(2), AtomicBool::new(false));
                thread::scope(|scope| {
                    scope.spawn(|| {
                        local.with(|value| {
                            *value += 1000;
                            inside.wait();
                            thread::sleep(Duration::from_millis(100));
                            is_done.store(true, Relaxed);
                        });
                    });
                    inside.wait();
                    sum(local) == 1110 && is_done.load(Relaxed)
                })
            });
        });
    }

    /// The closure takes longer than a visitor waits for a thread of the parent.
    #[test]
    fn without_a_fork_a_visit_waits_as_long_as_it_takes() {
        let local = <Local<_>>::with_source(Source::Atomic, || 0).expect("an available source");
        let inside = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                local.with(|value| {
                    inside.wait();
                    let mut waited = Backoff::default();
                    while !waited.is_exhausted() {
                        waited.wait();
                    }
                    thread::sleep(Duration::from_millis(500));
                    *value = 1;
                });
            });
            inside.wait();
            assert_eq!(sum(&local), 1);
        });
    }

    #[test]
    fn an_object_belongs_to_the_process_that_made_its_values_until_another_has_seen_them_all() {
        let generation = AtomicU32::new(0);
        let now = holder::generation();
        assert!(Forks::since(&generation).since.is_none(), "there are no values");
        note(&generation);
        note(&generation);
        assert!(generation.load(Relaxed) == now && Forks::since(&generation).since.is_none());
        generation.store(now + 1, Relaxed);
        note(&generation);
        let mut forks = Forks::since(&generation);
        assert!(forks.since == Some(now) && !forks.alone, "tests have threads");
        assert!(!forks.has_left(&Backoff::default()));
        forks.pass_by();
        forks.settle(&generation);
        assert_eq!(generation.load(Relaxed), now + 1);
        Forks::since(&generation).settle(&generation);
        assert_eq!(generation.load(Relaxed), now);
    }
}
