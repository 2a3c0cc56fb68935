//! Race detectors that the process runs under: ThreadSanitizer, and valgrind's helgrind and drd.
//!
//! They support locks and atomic instructions. They do not detect the critical sections nor, if
//! this library is not compiled for them, its atomics. So passing an object from one thread to
//! another through a structure would look like a race. If a detector is present, such structures
//! have no fast paths ([`handle`](crate::handle) omits the mark of the source). Their slow paths
//! announce: [`release`] before something can be taken, [`acquire`] after it was taken, both with
//! the same key. Without a detector an announcement is a load and a test, in slow paths only.
//!
//! # Facts of the detectors' interfaces
//!
//! * ThreadSanitizer (compiler-rt's `sanitizer/tsan_interface.h`): `__tsan_acquire(void *)` and
//!   `__tsan_release(void *)`. The runtime defines them, in whatever way it is linked; a weak
//!   reference is null without it.
//! * valgrind (the manual's chapter on client requests, `valgrind.h`): a sequence of instructions
//!   without effect, which valgrind recognises. It reads the address of a request and five
//!   arguments there. 0x1001 tests whether valgrind is present. `helgrind.h` and `drd.h` give the
//!   same numbers to "happens before" and "happens after".

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    fence,
};

#[cfg(test)]
use crate::sys::steps::{self, Step};

/// The detector that is present.
static WATCHER: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const NOBODY: u32 = 1;
const THREAD_SANITIZER: u32 = 2;
const VALGRIND: u32 = 3;

/// Addresses that serve as keys of words.
static KEYS: [AtomicU32; 1024] = [const { AtomicU32::new(0) }; 1024];

/// Returns `true` if a detector is present.
#[inline]
pub(crate) fn is_present() -> bool {
    match WATCHER.load(Relaxed) {
        UNKNOWN => look(),
        watcher => watcher != NOBODY,
    }
}

/// Makes the library behave as under a detector from now on.
#[cfg(test)]
#[allow(dead_code, reason = "for tests of Linux with sections")]
pub(crate) fn pretend() {
    WATCHER.store(THREAD_SANITIZER, Relaxed);
}

/// Returns `true` if the detector is ThreadSanitizer.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) fn is_thread_sanitizer() -> bool {
    is_present() && WATCHER.load(Relaxed) == THREAD_SANITIZER
}

/// Announces that everything this thread did so far precedes what other threads do after an
/// [`acquire`] with this key, an address.
#[inline]
pub(crate) fn release(key: usize) {
    if is_present() {
        announce(key, calls::tsan_release, calls::HAPPENS_BEFORE);
    }
}

/// Announces the counterpart of [`release`].
#[inline]
pub(crate) fn acquire(key: usize) {
    if is_present() {
        announce(key, calls::tsan_acquire, calls::HAPPENS_AFTER);
    }
}

/// Returns a key for passing a word, an address or not, to another thread. It is one of 4096: two
/// words with the same key make a detector assume an order that does not exist.
pub(crate) fn key_of(word: u64) -> usize {
    // Fibonacci hashing: the upper bits depend on all bits.
    let hash = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    (&raw const KEYS).addr() + hash as usize
}

/// Returns the bits of a word whose bytes need not all be initialised, and makes the word have
/// exactly these bits.
pub(crate) fn frozen(mut word: std::mem::MaybeUninit<u64>) -> u64 {
    calls::touch(&mut word);
    // SAFETY: the compiler must assume that the assembly has initialised the whole word. Under a
    // detector, the only case in which this is called, no other kind of code runs.
    unsafe { word.assume_init() }
}

// #[gamma::skip(reason = "of detectors: the tests of percid-capi run under each")]
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

// #[gamma::skip(reason = "of detectors: the tests of percid-capi run under each")]
#[cold]
#[inline(never)]
fn announce(key: usize, tsan: fn() -> Option<calls::Announce>, request: usize) {
    #[cfg(test)]
    steps::at(if request == calls::HAPPENS_BEFORE {
        Step::Release(key)
    } else {
        Step::Acquire(key)
    });
    // The detector must not assume a stronger order than the processor and the compiler provide.
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

// #[gamma::skip(reason = "of detectors: the tests of percid-capi run under each")]
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

    /// Sends a request to valgrind; returns 0 if it is not present.
    pub(super) fn valgrind(request: usize, argument: usize) -> usize {
        let request = [request, argument, 0, 0, 0, 0];
        let mut answer = 0_usize;
        // SAFETY: the register is rotated by 128 bits in total, and the exchange is of a register
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
        // SAFETY: the register is rotated by 128 bits in total, and a register is combined with
        // itself.
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

    /// Has no effect, but hides that from the compiler.
    pub(super) fn touch(word: &mut MaybeUninit<u64>) {
        // SAFETY: no instruction.
        unsafe { asm!("/* {0} */", in(reg) word, options(nostack, preserves_flags)) };
    }
}

/// Stubs: no detector is found on systems for which the assembly is not known.
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

    /// The test suite does not run under a detector, unless it is compiled for ThreadSanitizer.
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
        // Only called if there may be a detector.
        if calls::EXIST {
            assert_eq!(frozen(MaybeUninit::new(0x1234_5678_9abc_def0)), 0x1234_5678_9abc_def0);
        }
    }
}
