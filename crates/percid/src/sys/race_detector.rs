//! Race detectors that the process runs under: ThreadSanitizer, and valgrind's helgrind and drd.
//!
//! They know locks and atomic instructions, and see neither the critical sections nor, if this
//! library is not compiled for them, its atomics. So what a structure hands from one thread to
//! another would look like a race. Where one of them watches, structures that hand something over
//! have no fast paths ([`handle`](crate::handle) leaves out the mark of the source), and their slow
//! paths announce: [`release`] before something can be taken, [`acquire`] after it was taken, both
//! with the same key. Without a detector an announcement is a load and a test, in slow paths only.
//!
//! # Facts of the detectors' interfaces
//!
//! * ThreadSanitizer (compiler-rt's `sanitizer/tsan_interface.h`): `__tsan_acquire(void *)` and
//!   `__tsan_release(void *)`. The runtime has them, in whatever way it is linked; a weak reference
//!   is null without it.
//! * valgrind (the manual's chapter on client requests, `valgrind.h`): a sequence of instructions
//!   that does nothing; valgrind looks there for the address of a request and five arguments.
//!   0x1001 asks whether there is a valgrind. `helgrind.h` and `drd.h` give the same numbers to
//!   "happens before" and "happens after".

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    fence,
};

/// Who watches.
static WATCHER: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const NOBODY: u32 = 1;
const THREAD_SANITIZER: u32 = 2;
const VALGRIND: u32 = 3;

/// Addresses that stand for words.
static KEYS: [AtomicU32; 1024] = [const { AtomicU32::new(0) }; 1024];

/// Whether one watches this process.
#[inline]
pub(crate) fn is_present() -> bool {
    match WATCHER.load(Relaxed) {
        UNKNOWN => look(),
        watcher => watcher != NOBODY,
    }
}

/// Whether it is ThreadSanitizer.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) fn is_thread_sanitizer() -> bool {
    is_present() && WATCHER.load(Relaxed) == THREAD_SANITIZER
}

/// Announces that what this thread did so far comes before what others do after an [`acquire`] with
/// this key, an address.
#[inline]
pub(crate) fn release(key: usize) {
    if is_present() {
        announce(key, calls::tsan_release, calls::HAPPENS_BEFORE);
    }
}

/// See [`release`].
#[inline]
pub(crate) fn acquire(key: usize) {
    if is_present() {
        announce(key, calls::tsan_acquire, calls::HAPPENS_AFTER);
    }
}

/// A key for whoever hands over a word, an address or not. One of 4096: two words of one key make a
/// detector believe in an order that is not there.
pub(crate) fn key_of(word: u64) -> usize {
    // Fibonacci hashing: the upper bits depend on all.
    let hash = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    (&raw const KEYS).addr() + hash as usize
}

/// The bits of a word whose bytes need not all be initialised, and the word with these very bits.
pub(crate) fn frozen(mut word: std::mem::MaybeUninit<u64>) -> u64 {
    calls::touch(&mut word);
    // SAFETY: the compiler takes it that the assembly has written all of it; a detector, which this
    // is for, runs no other kind of code.
    unsafe { word.assume_init() }
}

#[cold]
#[inline(never)]
fn look() -> bool {
    let watcher = if calls::tsan_acquire().is_some() && calls::tsan_release().is_some() {
        THREAD_SANITIZER
    } else if calls::is_valgrind() {
        VALGRIND
    } else {
        NOBODY
    };
    WATCHER.store(watcher, Relaxed);
    watcher != NOBODY
}

#[cold]
#[inline(never)]
fn announce(key: usize, tsan: fn() -> Option<calls::Announce>, request: usize) {
    // The detector's notion of order must not be stronger than the processor's, nor the compiler's.
    fence(SeqCst);
    if WATCHER.load(Relaxed) == VALGRIND {
        calls::valgrind(request, key);
    } else if let Some(call) = tsan() {
        // SAFETY: the runtime's function, which takes any address of the program's memory; it is
        // async-signal-safe, as it is called for every atomic access.
        unsafe { call(std::ptr::with_exposed_provenance_mut(key)) };
    }
    fence(SeqCst);
}

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(miri)
))]
mod calls {
    use std::arch::asm;
    use std::ffi::c_void;
    use std::mem::MaybeUninit;

    use crate::sys::weak::weak;

    #[cfg(test)]
    pub(super) const EXIST: bool = true;

    pub(super) type Announce = unsafe extern "C" fn(*mut c_void);

    pub(super) const HAPPENS_BEFORE: usize = 0x4847_0121;
    pub(super) const HAPPENS_AFTER: usize = 0x4847_0122;
    const RUNNING_ON_VALGRIND: usize = 0x1001;

    pub(super) fn tsan_acquire() -> Option<Announce> {
        let address = weak!("__tsan_acquire");
        // SAFETY: null, or the address of the runtime's function, which has this type.
        unsafe { std::mem::transmute::<usize, Option<Announce>>(address) }
    }

    pub(super) fn tsan_release() -> Option<Announce> {
        let address = weak!("__tsan_release");
        // SAFETY: null, or the address of the runtime's function, which has this type.
        unsafe { std::mem::transmute::<usize, Option<Announce>>(address) }
    }

    pub(super) fn is_valgrind() -> bool {
        valgrind(RUNNING_ON_VALGRIND, 0) != 0
    }

    /// Asks valgrind; 0 if there is none.
    pub(super) fn valgrind(request: usize, argument: usize) -> usize {
        let request = [request, argument, 0, 0, 0, 0];
        let mut answer = 0_usize;
        // SAFETY: the register is rolled by 128 bits altogether, and the exchange is of a register
        // with itself.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") request.as_ptr(),
                inout("rdx") answer,
                options(nostack),
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!(
                "ror x12, x12, #3",
                "ror x12, x12, #13",
                "ror x12, x12, #51",
                "ror x12, x12, #61",
                "orr x10, x10, x10",
                inout("x3") answer,
                in("x4") request.as_ptr(),
                options(nostack),
            );
        }
        // SAFETY: shifts of the register that is always zero, and a register combined with itself.
        #[cfg(target_arch = "riscv64")]
        unsafe {
            asm!(
                ".option push",
                ".option norvc",
                "srli zero, zero, 3",
                "srli zero, zero, 13",
                "srli zero, zero, 51",
                "srli zero, zero, 61",
                "or a0, a0, a0",
                ".option pop",
                inout("a3") answer,
                in("a4") request.as_ptr(),
                options(nostack),
            );
        }
        answer
    }

    /// Nothing, but the compiler does not know.
    pub(super) fn touch(word: &mut MaybeUninit<u64>) {
        // SAFETY: no instruction.
        unsafe { asm!("/* {0} */", in(reg) word, options(nostack, preserves_flags)) };
    }
}

/// Where no assembly is known nobody watches.
#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(miri)
)))]
mod calls {
    use std::ffi::c_void;
    use std::mem::MaybeUninit;

    #[cfg(test)]
    pub(super) const EXIST: bool = false;

    pub(super) type Announce = unsafe extern "C" fn(*mut c_void);

    pub(super) const HAPPENS_BEFORE: usize = 0;
    pub(super) const HAPPENS_AFTER: usize = 0;

    pub(super) fn tsan_acquire() -> Option<Announce> {
        None
    }

    pub(super) fn tsan_release() -> Option<Announce> {
        None
    }

    pub(super) fn is_valgrind() -> bool {
        false
    }

    pub(super) fn valgrind(_request: usize, _argument: usize) -> usize {
        0
    }

    pub(super) fn touch(word: &mut MaybeUninit<u64>) {
        *word = MaybeUninit::new(0);
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;

    /// The suite does not run under one, unless it is compiled for ThreadSanitizer.
    #[test]
    fn nobody_watches_whom_nobody_watches() {
        let runtime = calls::tsan_acquire().is_some();
        assert_eq!(is_present(), runtime || calls::is_valgrind());
        assert_eq!(is_present(), WATCHER.load(Relaxed) != NOBODY);
        // Without effect.
        release(key_of(7));
        acquire(key_of(7));
    }

    #[test]
    fn keys_are_addresses_of_their_own() {
        let keys: std::collections::HashSet<usize> =
            (0..64).map(|item| key_of(item * 64)).collect();
        assert!(keys.len() > 60);
        let table = (&raw const KEYS).addr();
        assert!(keys.iter().all(|key| (table..table + size_of_val(&KEYS)).contains(key)));
    }

    #[test]
    fn a_frozen_word_has_the_bits_that_it_had() {
        // Asked for where there may be a detector only.
        if calls::EXIST {
            assert_eq!(frozen(MaybeUninit::new(0x1234_5678_9abc_def0)), 0x1234_5678_9abc_def0);
        }
    }
}
