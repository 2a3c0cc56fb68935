//! Every interleaving of the pieces of percid that are built on atomics.
//!
//! The pieces are the library's own files, compiled here once more with its atomic types and its
//! unsynchronised cell replaced by those of loom. loom runs a test once for every order in which
//! its threads' accesses can take place, and every value that a load may return under the memory
//! model. loom does not support rseq and membarrier: the protocol of the table has its models in
//! `verify/models`.
//!
//! `cargo test -p percid-loom` explores everything and prints the number of interleavings. Each
//! module of tests has a negative control: the same test over a piece with one part removed, which
//! must fail.

#![cfg(test)]

#[path = "../../../crates/percid/src/baseline.rs"]
mod baseline;
#[path = "../../../crates/percid/src/pool/current.rs"]
mod current;
#[path = "../../../crates/percid/src/pool/cut.rs"]
mod cut;
#[path = "../../../crates/percid/src/id/entry.rs"]
#[expect(dead_code, reason = "what needs no exploration is not used here")]
mod entry;
#[path = "../../../crates/percid-numa/src/publish/exchange.rs"]
mod exchange;
#[path = "../../../crates/percid/src/float_word.rs"]
mod float_word;
#[path = "../../../crates/percid/src/arena/free_list.rs"]
mod free_list;
#[path = "../../../crates/percid/src/arena/frontier.rs"]
mod frontier;
#[path = "../../../crates/percid/src/arena/given_back.rs"]
#[expect(dead_code, reason = "what needs no exploration is not used here")]
mod given_back;
#[path = "../../../crates/percid/src/handle/word.rs"]
mod handle_word;
#[path = "../../../crates/percid/src/pool/left.rs"]
mod left;
#[path = "../../../crates/percid/src/local/lock.rs"]
#[expect(dead_code, reason = "what needs no exploration is not used here")]
mod lock;
#[path = "../../../crates/percid-numa/src/access/lookers.rs"]
mod lookers;
#[path = "../../../crates/percid/src/membership.rs"]
mod membership;
#[path = "../../../crates/percid/src/arena/places.rs"]
#[expect(dead_code, reason = "what needs no exploration is not used here")]
mod places;
#[path = "../../../crates/percid/src/id/prepared.rs"]
mod prepared;
#[path = "../../../crates/percid/src/id/published.rs"]
mod published;
#[path = "../../../crates/percid/src/push_list.rs"]
mod push_list;
#[path = "../../../crates/percid/src/critical/waiting/rendezvous.rs"]
#[expect(dead_code, reason = "the section itself is not compiled here")]
mod rendezvous;
#[path = "../../../crates/percid/src/critical/ring.rs"]
#[expect(dead_code, reason = "the words are loom's")]
mod ring_layout;
#[path = "../../../crates/percid/src/id/seen.rs"]
mod seen;
#[path = "../../../crates/percid/src/seizure.rs"]
mod seizure;
#[path = "../../../crates/percid/src/id/set_words.rs"]
mod set_words;
#[path = "../../../crates/percid/src/shared_slot.rs"]
mod shared_slot;
#[path = "../../../crates/percid/src/pool/spare.rs"]
mod spare;
#[path = "../../../crates/percid/src/buckets/takes.rs"]
#[expect(dead_code, reason = "what needs no exploration is not used here")]
mod takes;
#[path = "../../../crates/percid/src/id/try_lock.rs"]
mod try_lock;
#[path = "../../../crates/percid/src/id/try_once.rs"]
mod try_once;
#[path = "../../../crates/percid/src/visit_lock.rs"]
mod visit_lock;
#[path = "../../../crates/percid-numa/src/access/wishes.rs"]
mod wishes;

mod baseline_tests;
mod current_tests;
mod cut_tests;
mod entry_tests;
mod exchange_tests;
mod explore;
mod free_list_tests;
mod frontier_tests;
mod handle_tests;
mod left_tests;
mod lock_tests;
mod lookers_tests;
mod membership_tests;
mod places_tests;
mod prepared_tests;
mod published_tests;
mod push_list_tests;
mod rendezvous_tests;
mod ring_tests;
mod seizure_tests;
mod set_words_tests;
mod shared_slot_tests;
mod spare_tests;
mod takes_tests;
mod try_lock_tests;
mod try_once_tests;
mod visit_lock_tests;
mod wishes_tests;

/// Replacement of the library's `sys` for these files, with loom's types.
mod sys {
    pub(crate) mod atomic {
        pub(crate) use loom::sync::atomic::*;
    }
    pub(crate) mod cell {
        pub(crate) use loom::cell::UnsafeCell;
    }
    pub(crate) mod holder {
        /// A thread of the parent, at the time of a fork.
        pub(crate) const GONE: u64 = 1;

        pub(crate) fn me() -> u64 {
            super::thread::token() as u64
        }

        pub(crate) fn exists(holder: u64) -> bool {
            holder != GONE
        }
    }
    pub(crate) mod race_detector {
        pub(crate) fn acquire(_key: usize) {}
        pub(crate) fn release(_key: usize) {}
    }
    pub(crate) mod process {
        pub(crate) fn generation() -> u32 {
            1
        }
    }
    pub(crate) fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
        body()
    }
    pub(crate) mod thread {
        use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

        static NEXT: AtomicUsize = AtomicUsize::new(16);

        loom::thread_local! {
            static OWN: usize = NEXT.fetch_add(16, Relaxed);
        }

        /// Returns a number that no other thread has. In the library it is an address, which a
        /// thread that is started later may have again; but its start comes after the end of the
        /// other.
        pub(crate) fn token() -> usize {
            OWN.with(|own| *own)
        }
    }
}

/// The fence of the library, which loom does not support. `light` has the effect of `all` on a
/// thread: a full barrier at its present point. Loom explores all points, since it explores all
/// orders.
mod id {
    pub(crate) use crate::try_lock;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Source {
        Kernel,
        Table,
        Atomic,
    }

    pub(crate) mod fence {
        use loom::sync::atomic::{Ordering::SeqCst, fence};
        use std::cell::Cell;
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

        /// The negative control: no drainer fences, so `light` is nothing but a barrier to the
        /// compiler.
        pub(crate) static SKIP: AtomicBool = AtomicBool::new(false);
        /// The kernel refuses the fence.
        pub(crate) static REFUSE: AtomicBool = AtomicBool::new(false);

        thread_local! {
            static REFUSING: Cell<bool> = const { Cell::new(false) };
        }

        /// Runs `body` while the kernel refuses the fence to the threads of this test, which are
        /// coroutines of one thread of the kernel.
        pub(crate) fn refusing(body: impl FnOnce()) {
            REFUSING.set(true);
            body();
            REFUSING.set(false);
        }

        pub(crate) fn light() {
            if !SKIP.load(Relaxed) {
                fence(SeqCst);
            }
        }

        pub(crate) fn all() -> Result<(), i32> {
            if REFUSE.load(Relaxed) || REFUSING.get() {
                return Err(1);
            }
            light();
            Ok(())
        }
    }

    pub(crate) mod set {
        use loom::sync::atomic::AtomicU64;

        use crate::set_words;

        pub(crate) fn ids(index: usize, bits: u64) -> impl Iterator<Item = u32> {
            let id = move |bit| index as u32 * 64 + bit;
            (0..64).filter(move |bit| bits & 1 << bit != 0).map(id)
        }

        /// A set of the first 64 IDs, with the accesses of the library's.
        #[derive(Debug, Default)]
        pub(crate) struct IdSet(AtomicU64);

        impl IdSet {
            pub(crate) fn insert(&self, id: u32) {
                set_words::insert(&self.0, 1 << id);
            }

            pub(crate) fn remove(&self, id: u32) {
                set_words::remove(&self.0, 1 << id);
            }

            pub(crate) fn contains(&self, id: u32) -> bool {
                set_words::members(&self.0) & 1 << id != 0
            }
        }
    }
}

/// The layout of a ring, and the marks of the sources.
mod critical {
    pub(crate) mod ring {
        pub(crate) use crate::ring_layout::*;
        pub(crate) use crate::ring_tests::Word;
    }

    pub(crate) const TABLE: usize = 1;
    pub(crate) const KERNEL: usize = 2;
    pub(crate) const MARKS: usize = 7;
}

/// The memory of rings, and the name of a block.
mod arena {
    pub(crate) use crate::ring_tests::word;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Block(pub(crate) usize);
}

/// Waiting, in loom's kind.
mod backoff {
    #[derive(Debug, Default)]
    pub(crate) struct Backoff {
        rounds: u32,
    }

    impl Backoff {
        pub(crate) fn wait(&mut self) {
            self.rounds += 1;
            loom::thread::yield_now();
        }

        /// Returns `true` at once: waiting times are not explored.
        pub(crate) fn is_sleeping(&self) -> bool {
            true
        }

        pub(crate) fn is_exhausted(&self) -> bool {
            false
        }
    }
}
