//! Restartable critical sections: the closed list of operations, one file per architecture.
//!
//! # What a section is
//!
//! A section reads the index of the memory that this CPU owns, computes an address and commits with
//! one store. If the thread is preempted, moved to another CPU, interrupted by a signal or fenced
//! (`membarrier`) before the commit, the kernel resumes it at the abort pad, which leaves through the
//! same exit as a missing ID: the operation answers `false`, nothing has happened, and the slow path
//! decides how often to try again. So no loop here can run for ever, not even under a debugger that
//! single-steps.
//!
//! # The two indices
//!
//! * **kernel**: `mm_cid` of the rseq area, below [`FastPath::kernel_limit`]. The comparison catches an ID
//!   whose memory is not open yet, and a thread that has not registered percid's own area (its `mm_cid` is
//!   `u32::MAX` there). The C library's area starts with 0, but the library ends a program whose thread it
//!   cannot register; a thread that takes its registration back by hand must not call into percid. An area that
//!   is shared with other libraries starts with 0 too: there this source is refused.
//! * **table**: `table[cpu_id]`, where 0 means that the CPU has no ID. The two entries in front of the
//!   table are zero for ever: an unregistered thread's `cpu_id` is -1 or -2 and finds its "no ID" there
//!   without a comparison.
//!
//! # The cost, instruction by instruction (x86-64, a `static` counter, nothing hoisted)
//!
//! | instruction | why it is there | can it be hoisted? |
//! |---|---|---|
//! | `mov cell, [counter]` | where the counter's memory is | yes: a pointer kept in a register |
//! | `test cell, MARK; jz` | the source; not claimed yet | yes |
//! | `mov f, [GOT]` | address of [`FAST_PATH`] | yes; compilers hoist it out of loops |
//! | `mov area, [f]` | thread pointer to rseq area | yes: constant per process |
//! | `lea d, [descriptor]; mov fs:[area + 8], d` | declares the section | the `lea` |
//! | `mov i, fs:[area + 24]` | the index: kernel | no |
//! | `movsxd i, fs:[area + 4]; mov t, [f + 8]; mov i, [t + 4 i]` | the index: table | the second |
//! | `cmp i, [f + 16]; jae` or `test i, i; jz` | no ID, not registered | no |
//! | `inc i` | (kernel only) slot 0 is the shared one | no |
//! | `shl i, 24; add i, cell` | the address | no |
//! | `mov s, n; add s, [i]; mov [i], s` | the operation; its store commits | no |
//!
//! Two of these are stores to different cache lines. A processor that commits one line's stores per
//! cycle (Golden Cove) therefore needs two cycles where a plain add needs one, whatever is hoisted.
//!
//! The shape of the operation matters on the same processors: they forward a store to the next load of
//! the same word in no time only if the address is a base register and a displacement, and never for a
//! memory-destination `add` of a register. Medians measured there, ns per increment of one counter: 1.15
//! as it is, 3.1 with `add [i], n`, 2.8 with an index register. The kernel's ID is made ID + 1 by an
//! instruction of its own rather than by the displacement: that costs 0.08 ns at best and keeps the
//! forwarding from failing half of the time (medians of 1.1 and 3.1 took turns).
//!
//! # The list
//!
//! | operation | commits | writes before, where nobody looks | used by |
//! |---|---|---|---|
//! | add | the sum | - | counters, histograms |
//! | acquire (store if equal, and open) | the token | - | [`local`](crate::local), activation of stacks |
//! | push | the top | the slot above the items | stacks, pools |
//! | pop | the top | - | stacks, pools |
//! | append (copy, then publish) | the head | the free part of the ring | rings |
//! | discard | the tail | - | rings |
//!
//! # Proof obligations, discharged in the files of the architectures
//!
//! 1. The commit is one store, and the last instruction of the section.
//! 2. Before it, the section writes nothing but scratch registers and memory whose contents mean nothing
//!    until the commit, not even to the section itself when it runs again; so a restart finds its inputs,
//!    and nothing has happened.
//! 3. The index is read after `rseq_cs` was stored: from then on a change of CPU aborts the section,
//!    hence at the commit the thread still runs on the CPU whose index it read.
//! 4. The signature stands in front of the abort address.
//! 5. The address that is committed to lies in the memory of that index, which is open (kernel: the ID is
//!    below the limit; table: opened before the entry was stored; the zero entries in front of the table
//!    make -1 and -2 valid CPU numbers). Nobody else commits to it. Kernel: the ID belongs to the thread
//!    that runs here until it is preempted, which aborts the section. Table: entries are distinct, and
//!    whoever takes one away fences this CPU before using it. Seized blocks: see [`seizure`](crate::seizure).

#[cfg(all(target_arch = "aarch64", not(percid_portable)))]
mod aarch64;
#[cfg(any(percid_portable, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod atomic;
pub(crate) mod ring;
mod waiting;
#[cfg(all(target_arch = "x86_64", not(percid_portable)))]
mod x86_64;

#[cfg(all(target_arch = "aarch64", not(percid_portable)))]
pub(crate) use aarch64::*;
#[cfg(any(percid_portable, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) use atomic::*;
#[cfg(all(target_arch = "x86_64", not(percid_portable)))]
pub(crate) use x86_64::*;

pub(crate) use ring::Append;
pub(crate) use waiting::{Ending, NOWHERE, Waiting};

use std::ptr;
use std::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU32, Ordering::Relaxed};

/// What every section reads. Written by slow paths, and before any object that would lead a thread
/// into a section of that source is marked as ready for it.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct FastPath {
    /// From the thread pointer to the rseq area, in bytes.
    area: AtomicIsize,
    /// Entry 0 of the table source: `table[cpu] = ID + 1`, or 0.
    table: AtomicPtr<AtomicU32>,
    /// Kernel IDs below this have memory that is open.
    kernel_limit: AtomicU32,
}

/// The one instance: a process has one rseq area per thread, one table and one arena.
///
/// The critical sections that C programs have inline (`percid_inline.h`) link to it by name.
#[cfg_attr(feature = "capi", unsafe(export_name = "percid_fast_path"))]
pub(crate) static FAST_PATH: FastPath = FastPath {
    area: AtomicIsize::new(0),
    table: AtomicPtr::new(ptr::null_mut()),
    kernel_limit: AtomicU32::new(0),
};

/// What compiled C programs contain as numbers: a change here needs another version of the C interface.
#[cfg(feature = "capi")]
const _: () = {
    assert!(std::mem::offset_of!(FastPath, area) == 0);
    assert!(std::mem::offset_of!(FastPath, table) == 8);
    assert!(std::mem::offset_of!(FastPath, kernel_limit) == 16);
    assert!(crate::arena::SHIFT == 24);
};

impl FastPath {
    /// From the thread pointer to the rseq area, in bytes.
    pub(crate) fn area(&self) -> isize {
        self.area.load(Relaxed)
    }

    pub(crate) fn set_area(&self, offset: isize) {
        self.area.store(offset, Relaxed);
    }

    pub(crate) fn set_table(&self, entries: *mut AtomicU32) {
        self.table.store(entries, Relaxed);
    }

    pub(crate) fn kernel_limit(&self) -> u32 {
        self.kernel_limit.load(Relaxed)
    }

    /// Admits the kernel IDs below `limit`; it never falls.
    pub(crate) fn raise_kernel_limit(&self, limit: u32) {
        self.kernel_limit.fetch_max(limit, Relaxed);
    }
}
