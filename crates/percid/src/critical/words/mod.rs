//! The sections of [`PerId`](crate::PerId): operations on words of a caller's own type.
//!
//! # A shard
//!
//! Its first word is the *state*; the caller's value follows. A section works on a shard only if
//! the state is [`READY`]: there is a value, and no thread holds the shard. It never writes the
//! state. [`per_id`](crate::per_id) has the protocol of states and its proof.
//!
//! # The sections
//!
//! Each begins with the same three steps; `at`, `next` and the like are offsets from the shard:
//!
//! ```text
//! shard = word + index * stride
//! if *shard != READY: leave
//! field = shard + at
//! ```
//!
//! | operation | goes on with | commits |
//! |---|---|---|
//! | `add_word` | | `*field = *field + n` |
//! | `swap` | `seen = *field` | `*field = new` |
//! | `store_if` | `seen = *field`; end if `seen != expected` | `*field = new` |
//! | `store_both_if` | the same; `shard[first] = value` | `*field = new` |
//! | `store_if_both` | the same; `other = shard[second]`; end if `other != expected_other` | `*field = new` |
//! | `copy_then_store_if` | `seen = *field`; end if `seen != expected`; copy bytes to `shard[to]` | `*field = new` |
//! | `push_link` | `seen = *field`; `item[next] = seen` | `*field = item` |
//! | `pop_link` | `seen = *field`; end if `seen == 0`; `other = seen[next]` | `*field = other` |
//!
//! Each returns the address of the shard, or 0 if it was left or aborted. A section that *ends*
//! returns the shard, and has changed nothing: the caller compares what was seen once more.
//!
//! # Proof obligations
//!
//! Those of [`critical`](crate::critical). For 2: `store_both_if` and `copy_then_store_if` write a
//! field, and `push_link` the new item, before the commit. An aborted section may leave these
//! writes behind. The functions' contracts say so: what they write is meaningless until the commit.
//! For 5: nothing but sections of the ID commits to a ready shard, and a thread that holds a shard
//! has fenced after it changed the state.
//!
//! # Memory orders
//!
//! The load of the state acquires: a section sees what the last holder did. The commits of all
//! sections but `add_word` release: a thread that loads the word sees what was written before.

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    target_arch = "aarch64",
    not(any(percid_elsewhere, percid_portable))
))]
#[macro_use]
mod aarch64;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    target_arch = "riscv64",
    not(any(percid_elsewhere, percid_portable))
))]
#[macro_use]
mod riscv64;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    target_arch = "x86_64",
    not(any(percid_elsewhere, percid_portable))
))]
#[macro_use]
mod x86_64;

#[allow(dead_code, reason = "only where there are no sections")]
pub(crate) mod portable;

/// The state of a shard that sections work on.
pub(crate) const READY: i64 = 1;

/// The result of a section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// The address of the shard; 0 if the section was left or aborted. It may contain the mark of
    /// the source.
    pub(crate) shard: usize,
    /// The value of the field before the commit; for `add_word` the one behind it.
    pub(crate) seen: u64,
    /// The value of the other word that the section loaded.
    pub(crate) other: u64,
}

/// A copy of bytes, and the store that publishes it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CopyRequest {
    /// The end of the source.
    pub(crate) from_end: *const u8,
    /// Its start, as a negative distance from the end.
    pub(crate) start: isize,
    /// The end of the bytes that are copied as words, as a negative distance from the end.
    pub(crate) words_end: isize,
    /// The end of the destination, as an offset from the shard.
    pub(crate) to: usize,
    pub(crate) expected: u64,
    pub(crate) new: u64,
}

impl CopyRequest {
    /// Creates a request to copy `bytes` to offset `to` of a shard.
    #[inline(always)]
    pub(crate) fn new(bytes: &[u8], to: usize, expected: u64, new: u64) -> CopyRequest {
        let range = bytes.as_ptr_range();
        let length = bytes.len() as isize;
        // Some processors load words only from aligned addresses without a trap.
        // #[gamma::skip(reason = "of other processors")]
        let aligned = (range.start.addr() | to).is_multiple_of(8);
        // #[gamma::skip(reason = "of other processors")]
        let by_word = cfg!(target_arch = "x86_64") || aligned;
        CopyRequest {
            from_end: range.end,
            start: -length,
            // #[gamma::skip(cond, reason = "bytes are copied more slowly; the rest is of other processors")]
            words_end: if by_word { -(length % 8) } else { -length },
            to: to + bytes.len(),
            expected,
            new,
        }
    }
}

/// Defines a module that has these sections for one source: the parent module explains marks and
/// displacements.
#[allow(unused_macros, reason = "only where there are sections")]
macro_rules! word_sections {
    ($source:ident: $mark:ident) => {
        #[doc = concat!("The sections of blocks that are marked with [`", stringify!($mark), "`].")]
        ///
        /// # Safety
        ///
        /// For all functions: `word` is the address of a block of shards in the shared slot plus
        /// marks as for [`add`](crate::critical::kernel::add), and all offsets are those of words
        /// inside a shard.
        pub(crate) mod $source {
            use super::{CopyRequest, Outcome};
            use crate::critical::$mark;

            const DISPLACEMENT: isize = -($mark as isize);

            /// Returns the sum as the value that was seen: it is in a register in any case.
            ///
            /// # Safety
            ///
            /// The obligations of the module hold.
            #[inline(always)]
            pub(crate) unsafe fn add_word(word: usize, at: usize, n: i64) -> Outcome {
                // SAFETY: obligations 1 to 5; only scratch registers are written before the commit.
                unsafe { add_word!($source, DISPLACEMENT, word, at, n) }
            }

            #[inline(always)]
            pub(crate) unsafe fn swap(word: usize, at: usize, new: u64) -> Outcome {
                // SAFETY: obligations 1 to 5; only scratch registers are written before the commit.
                unsafe { swap!($source, DISPLACEMENT, word, at, new) }
            }

            #[inline(always)]
            pub(crate) unsafe fn store_if(
                word: usize,
                at: usize,
                expected: u64,
                new: u64,
            ) -> Outcome {
                // SAFETY: obligations 1 to 5; only scratch registers are written before the commit.
                unsafe { store_if!($source, DISPLACEMENT, word, at, expected, new) }
            }

            #[inline(always)]
            pub(crate) unsafe fn store_both_if(
                word: usize,
                at: usize,
                expected: u64,
                first: (usize, u64),
                new: u64,
            ) -> Outcome {
                // SAFETY: obligations 1 to 5; the first word is meaningless until the commit.
                unsafe { store_both_if!($source, DISPLACEMENT, word, at, expected, first, new) }
            }

            #[inline(always)]
            pub(crate) unsafe fn store_if_both(
                word: usize,
                at: usize,
                expected: u64,
                second: (usize, u64),
                new: u64,
            ) -> Outcome {
                // SAFETY: obligations 1 to 5; only scratch registers are written before the commit.
                unsafe { store_if_both!($source, DISPLACEMENT, word, at, expected, second, new) }
            }

            /// # Safety
            ///
            /// In addition, the destination of the request lies inside a shard.
            #[inline(always)]
            pub(crate) unsafe fn copy_then_store_if(
                word: usize,
                at: usize,
                request: &CopyRequest,
            ) -> Outcome {
                // SAFETY: obligations 1 to 5; the destination is meaningless until the commit.
                unsafe { copy_then_store_if!($source, DISPLACEMENT, word, at, request) }
            }

            /// # Safety
            ///
            /// In addition, `link` is the address of a word that only this thread uses.
            #[inline(always)]
            pub(crate) unsafe fn push_link(
                word: usize,
                at: usize,
                item: u64,
                link: usize,
            ) -> Outcome {
                // SAFETY: obligations 1 to 5; the item's link is meaningless until the commit.
                unsafe { push_link!($source, DISPLACEMENT, word, at, item, link) }
            }

            /// # Safety
            ///
            /// In addition, the field is 0 or the address of an item with a word `next` bytes
            /// behind.
            #[inline(always)]
            pub(crate) unsafe fn pop_link(word: usize, at: usize, next: usize) -> Outcome {
                // SAFETY: obligations 1 to 5; only scratch registers are written before the commit.
                // The item can be read: it is in the list, since a thread that takes it out aborts
                // this section before it commits.
                unsafe { pop_link!($source, DISPLACEMENT, word, at, next) }
            }
        }
    };
}
with_sections! {
    word_sections!(kernel: KERNEL);
    word_sections!(table: TABLE);
}
without_sections! {
    pub(crate) use portable::{self as kernel, self as table};
}

/// The outcome of a section that was not tried.
pub(crate) const NOT_DONE: Outcome = Outcome { shard: 0, seen: 0, other: 0 };

/// Runs the section of the source that a word is marked with; returns [`NOT_DONE`] if it has no such
/// mark.
macro_rules! word_section {
    ($word:expr, $operation:ident($($argument:expr),*), else $none:expr) => {{
        let word: usize = $word;
        if word & $crate::critical::KERNEL != 0 {
            $crate::critical::words::kernel::$operation(word $(, $argument)*)
        } else if word & $crate::critical::TABLE != 0 {
            $crate::critical::words::table::$operation(word $(, $argument)*)
        } else {
            $none
        }
    }};
}
pub(crate) use word_section;
