//! Restartable critical sections: the closed list of operations. This module describes the
//! operations and proves them correct; their assembly is in one file per architecture.
//!
//! # Critical sections
//!
//! A section reads the index of the memory that this CPU owns, computes an address and commits with
//! one store. If the thread is preempted, moved to another CPU, interrupted by a signal or fenced
//! (`membarrier`) before the commit, the kernel resumes it at the abort pad. The pad leaves through
//! the same exit as a missing ID: the operation returns `false`, nothing has changed, and the slow
//! path decides how often to retry. So no loop here can run forever, not even under a debugger that
//! single-steps.
//!
//! # The two indices
//!
//! * **kernel**: `mm_cid` of the rseq area, below [`kernel_limit`](fast_path::FastPath). The
//!   comparison catches an ID whose memory is not open yet, and a thread that has not registered
//!   percid's own area (its `mm_cid` is `u32::MAX` there). The C library's area starts with 0, but
//!   the library ends a program if it cannot register a thread; a thread that unregisters itself
//!   manually must not call into percid. An area that is shared with other libraries starts with 0
//!   too: there this source is refused.
//! * **table**: `table[cpu_id]`, where 0 means that the CPU has no ID. The two entries in front of
//!   the table are zero forever: an unregistered thread's `cpu_id` is -1 or -2, so it reads "no ID"
//!   there without a comparison.
//!
//! # The cost, instruction by instruction (x86-64, a `static` counter, nothing hoisted)
//!
//! | instruction | why it is there | can it be hoisted? |
//! |---|---|---|
//! | `mov cell, [counter]` | address of the counter's memory | yes: a pointer kept in a register |
//! | `test cell, MARK; jz` | the source; not claimed yet | yes |
//! | `mov f, [GOT]` | address of [`FAST_PATH`] | yes; compilers hoist it out of loops |
//! | `mov area, [f]` | thread pointer to rseq area | yes: constant per process |
//! | `lea d, [descriptor]; mov fs:[area + 8], d` | declares the section | the `lea` |
//! | `mov i, fs:[area + 24]` | the index: kernel | no |
//! | `movsxd i, fs:[area + 4]; mov t, [f + 8]; mov i, [t + 4 i]` | the index: table | the second |
//! | `cmp i, [f + 16]; jae` or `test i, i; jz` | no ID, not registered | no |
//! | `inc i` | (kernel only) slot 0 is the shared one | no |
//! | `shl i, 24; add i, cell` | the address | no |
//! | `mov s, [i]; add s, n; mov [i], s` | the operation; its store commits | no |
//!
//! Two of these are stores to different cache lines. A processor that commits one line's stores per
//! cycle (Golden Cove) therefore needs two cycles, and one for a plain add, whatever is hoisted.
//!
//! The form of the operation matters. Processors forward a store to the next load of the same word
//! without delay only under conditions, which differ. Medians in ns per increment of one counter:
//!
//! | form | Golden Cove | Zen 5 |
//! |---|---|---|
//! | `mov s, [i]; add s, n; mov [i], s` | - | 1.5 |
//! | `mov s, n; add s, [i]; mov [i], s` | 1.15 | 2.35 |
//! | `add [i], n` | 3.1 | 1.6 |
//! | the second with an index register | 2.8 | - |
//!
//! Golden Cove needs an address of a base register and a displacement, and never forwards to a
//! memory-destination `add` of a register; Zen 5 needs a load that does nothing else. The first
//! form has both. A separate instruction computes ID + 1 from the kernel's ID, rather than the
//! displacement: that costs 0.08 ns at best and keeps the forwarding of Golden Cove from failing
//! half of the time (medians alternated between 1.1 and 3.1).
//!
//! # The list
//!
//! | operation | commits | writes before (meaningless until then) | used by |
//! |---|---|---|---|
//! | add | the sum | - | counters, histograms |
//! | add a float | the sum | - | float counters |
//! | tally (count a value, and add it to a sum) | the journal | the last bucket's count, again; the other sum | buckets |
//! | acquire (store if equal, and open) | the token | - | locals, activation of stacks |
//! | push | the top | the slot above the items | stacks, pools |
//! | pop | the top | - | stacks, pools |
//! | append (copy, then publish) | the head | the free part of the ring | rings |
//! | discard | the tail | - | rings |
//! | [operations on words](words) | a word | another field, or an item | values of callers' own types |
//!
//! # Proof obligations, discharged by the assembly of each architecture
//!
//! 1. The commit is one store, and the last instruction of the section.
//! 2. Before it, the section writes nothing but scratch registers and memory whose contents are
//!    meaningless until the commit, even to the section itself when it runs again. So a restart
//!    finds its inputs, and nothing has changed.
//! 3. The index is read after `rseq_cs` was stored: from then on a change of CPU aborts the
//!    section. Hence at the commit the thread still runs on the CPU whose index it read.
//! 4. The signature stands in front of the abort address.
//! 5. The address that is committed to lies in the memory of that index, which is open (kernel: the
//!    ID is below the limit; table: opened before the entry was stored; the zero entries in front
//!    of the table make -1 and -2 valid CPU numbers). No other CPU commits to it. Kernel: the ID
//!    belongs to the thread that runs here until it is preempted, which aborts the section. Table:
//!    entries are distinct, and a thread that takes an ID fences this CPU before using the ID.
//!    Seized blocks: see [`seizure`](crate::seizure).

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) mod fast_path;
#[allow(dead_code, reason = "only where there are no sections")]
pub(crate) mod portable;
pub(crate) mod ring;
pub(crate) mod tally;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) mod waiting;

// Each of these modules defines a macro for every operation of the list.
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

// After the macros that its own use.
pub(crate) mod words;

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) use fast_path::FAST_PATH;
without_sections! {
    pub(crate) use portable::{self as kernel, self as table};
}

/// `true` if this build has critical sections.
pub(crate) const EXIST: bool = crate::architectures::SECTIONS_EXIST;

/// The mark of the table in the lowest bits of a word.
pub(crate) const TABLE: usize = 1;
/// The mark of the kernel's IDs.
pub(crate) const KERNEL: usize = 2;
/// All bits that may hold marks: blocks are aligned to 8 bytes.
pub(crate) const MARKS: usize = 7;

/// Defines a module that has every section for one source, from the macros of the architecture. The
/// address of a word is the word less the mark of the source, which a section makes part of the
/// displacement of its memory operands.
#[allow(unused_macros, reason = "only where there are sections")]
macro_rules! sections {
    ($source:ident: $mark:ident) => {
        #[doc = concat!("The sections of words that are marked with [`", stringify!($mark), "`].")]
        pub(crate) mod $source {
            use std::mem::MaybeUninit;

            use crate::critical::ring::Append;
            use crate::critical::{MARKS, $mark};

            const DISPLACEMENT: isize = -($mark as isize);

            /// Adds `n` to this CPU's shard of a word. Returns `true` if it did.
            ///
            /// ```text
            /// shard = word + index * stride
            /// *shard = *shard + n                       // commits
            /// ```
            ///
            /// # Safety
            ///
            /// `word` is the address of a word in a block of the arena, in the shared slot, plus
            /// marks that were read from a handle by an acquiring load, or that name a source which
            /// has been prepared (so [`FAST_PATH`](super::FAST_PATH) is set, and leads to an rseq
            /// area in every thread).
            #[inline(always)]
            pub(crate) unsafe fn add(word: usize, n: i64) -> bool {
                // SAFETY: obligations 1 to 5 above; only scratch registers are written before the
                // commit.
                unsafe { add!($source, DISPLACEMENT, word, n) }
            }

            /// Adds `n` to this CPU's shard of a word that holds a float. Returns `true` if it did.
            ///
            /// ```text
            /// shard = word + index * stride
            /// *shard = *shard + n                       // commits
            /// ```
            ///
            /// # Safety
            ///
            /// The same as for [`add`].
            #[inline(always)]
            pub(crate) unsafe fn add_float(word: usize, n: f64) -> bool {
                // SAFETY: obligations 1 to 5 above; only scratch registers are written before the
                // commit.
                unsafe { add_float!($source, DISPLACEMENT, word, n) }
            }

            /// Adds `times` to the count of a bucket of this CPU's shard, and `sum` to its sum.
            /// Returns `true` if it did. `place` is the bucket in the form that a journal contains.
            ///
            /// ```text
            /// shard = word + index * stride
            /// (which, last, count) = journal
            /// now = counts[place], or count if last == place
            /// counts[last] = count                      // as often as need be
            /// sums[other] = sums[which] + sum
            /// journal = (other, place, now + times)     // commits
            /// ```
            ///
            /// # Safety
            ///
            /// `word` is the address of a block of buckets (see [`buckets`](crate::buckets)) in the
            /// shared slot plus marks as for [`add`], and `place` is a bucket of that block.
            #[inline(always)]
            pub(crate) unsafe fn tally(word: usize, place: usize, times: u64, sum: f64) -> bool {
                // SAFETY: obligations 1 to 5. Before the commit two words are written: the count of
                // the journal's bucket, which the journal replaces as long as it names that bucket,
                // and the unused sum. Both lie in the block.
                unsafe { tally!($source, DISPLACEMENT, word, place, times, sum) }
            }

            /// Stores `token` in this CPU's shard of a word if that contains `expected`, and if the
            /// word `CLOSED` bytes behind it contains zero. Returns the address of that shard; 0 if
            /// it did not store.
            ///
            /// ```text
            /// shard = word + index * stride
            /// if *(shard + CLOSED) != 0: leave
            /// if *shard != expected: leave
            /// *shard = token                            // commits
            /// ```
            ///
            /// The order matters: a state that was read from a closed shard may be wrong when the
            /// shard is open again. So the state must be read after the shard was found open. A
            /// visitor does its last store to the state before it opens the shard.
            ///
            /// # Safety
            ///
            /// The same as for [`add`].
            #[inline(always)]
            pub(crate) unsafe fn acquire<const CLOSED: isize>(
                word: usize,
                expected: usize,
                token: usize,
            ) -> usize {
                // SAFETY: obligations 1 to 5 above; only scratch registers are written before the
                // commit. The loads acquire: the writes of the last owner before it released the
                // word are seen after the comparison.
                unsafe {
                    let shard: usize =
                        acquire!($source, DISPLACEMENT, word, CLOSED, expected, token);
                    shard & !MARKS
                }
            }

            /// Pushes `item` on this CPU's shard of a stack. Returns `true` if it did; it does not
            /// if there is no room, or if the shard is inactive or seized.
            ///
            /// ```text
            /// shard = word + index * stride
            /// top = shard[0]
            /// if top - 1 >= capacity (unsigned): leave  // full, inactive or seized
            /// shard[top] = item
            /// shard[0] = top + 1                        // commits
            /// ```
            ///
            /// # Safety
            ///
            /// `word` is the address of a stack's block (see [`stack`](crate::stack)) in the shared
            /// slot plus marks as for [`add`], and `capacity` is the capacity of the stack.
            #[inline(always)]
            pub(crate) unsafe fn push(word: usize, capacity: &u64, item: MaybeUninit<u64>) -> bool {
                // SAFETY: obligations 1 to 5. Before the commit only the slot above the top is
                // written, which contains no item. It is a slot of the block: its index less one is
                // below the capacity.
                unsafe { push!($source, DISPLACEMENT, word, capacity, item) }
            }

            /// Pops an item from this CPU's shard of a stack. Returns `None` if there is none, or
            /// if the shard is inactive or seized.
            ///
            /// ```text
            /// shard = word + index * stride
            /// top = shard[0] - 1
            /// if top <= 0: leave                        // empty, inactive or seized
            /// item = shard[top]
            /// shard[0] = top                            // commits
            /// ```
            ///
            /// # Safety
            ///
            /// The same as for [`push`].
            #[inline(always)]
            pub(crate) unsafe fn pop(word: usize) -> Option<MaybeUninit<u64>> {
                // SAFETY: obligations 1 to 5; only scratch registers are written before the commit.
                // The slot below the top is one of the block's, and contains an item.
                unsafe { pop!($source, DISPLACEMENT, word) }
            }

            /// Appends a record to this CPU's shard of a ring. Returns `true` if it did; it does
            /// not if there is no room. Positions are offsets in the data modulo its size.
            ///
            /// ```text
            /// shard = word + index * stride
            /// if head - tail + needed > capacity: leave
            /// number = data[head] less its length       // an aborted try may have left one
            /// data[head] = number with the record's length
            /// data[head + 8 ...] = the record's whole words, then its rest
            /// data[head + size] = number + 1
            /// head = head + size                        // commits
            /// ```
            ///
            /// # Safety
            ///
            /// `word` is the address of a ring's block (see [`ring`](crate::ring)) in the shared
            /// slot plus marks as for [`add`], and the request fits the ring.
            #[inline(always)]
            pub(crate) unsafe fn append(word: usize, request: &Append) -> bool {
                // SAFETY: obligations 1 to 5. Before the commit only the part between head and tail
                // is written, in which no record lies; the mask keeps every place inside the data.
                unsafe { append!($source, DISPLACEMENT, word, request) }
            }

            /// Discards the oldest records of this CPU's shard of a ring until at most `keep` bytes
            /// are left. Returns `true` if it did.
            ///
            /// ```text
            /// shard = word + index * stride
            /// position = tail
            /// while position < head - keep: position = position + size of the record there
            /// tail = position                           // commits
            /// ```
            ///
            /// # Safety
            ///
            /// The same as for [`append`]; in addition `mask` is the ring's capacity less one.
            #[inline(always)]
            pub(crate) unsafe fn discard(word: usize, keep: u64, mask: u64) -> bool {
                // SAFETY: obligations 1 to 5; only scratch registers are written before the commit.
                // Whole records lie between tail and head, so the loop meets their ends; it reads
                // inside the data.
                unsafe { discard!($source, DISPLACEMENT, word, keep, mask) }
            }
        }
    };
}
with_sections! {
    sections!(kernel: KERNEL);
    sections!(table: TABLE);
}

/// Runs the section of the source that a word is marked with. A word without such a mark yields the
/// result of an aborted section.
///
/// It is a macro and not a function: if a fast path is inlined, the compiler knows what follows a
/// missing mark before it inlines the sections, and places the slow path behind them.
macro_rules! by_mark {
    ($word:expr, $operation:ident $(::<$closed:tt>)? ($($argument:expr),*), else $none:expr) => {{
        let word: usize = $word;
        if word & $crate::critical::KERNEL != 0 {
            $crate::critical::kernel::$operation$(::<$closed>)?(word $(, $argument)*)
        } else if word & $crate::critical::TABLE != 0 {
            $crate::critical::table::$operation$(::<$closed>)?(word $(, $argument)*)
        } else {
            $none
        }
    }};
}
pub(crate) use by_mark;
