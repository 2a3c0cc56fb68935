//! The one form of all loops.
//!
//! Each loop is kept out of line, begins on a cache line (or close behind, where the compiler
//! computes something once in front of it) and is not unrolled, so that no operation is favoured by
//! where its code happens to be or by what the compiler makes of it. Nothing is hoisted by hand:
//! each iteration pays what a program pays, plus counting down, which all pay alike.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use std::hint::black_box;

/// Does `operation` `times` times, at least once, with the number of times that are left as a word
/// that changes.
///
/// The function that calls this is the loop: it is marked `#[inline(never)]`, and generic at most
/// over *what* it works on.
#[inline(always)]
pub(super) fn repeat(mut times: u64, mut operation: impl FnMut(u64)) {
    align_loop();
    // The test is at the end: one at the start would be moved out of the loop, to where the
    // alignment is.
    loop {
        operation(times);
        if !again(&mut times) {
            break;
        }
    }
}

/// Lets the code that follows, a loop, begin on a cache line.
#[inline(always)]
fn align_loop() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: the directive makes the assembler insert no-operations, and nothing else.
    unsafe {
        std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags));
    }
}

/// Counts down and returns whether something is left. The compiler cannot foresee the count, so it
/// does not unroll.
#[inline(always)]
fn again(left: &mut u64) -> bool {
    *left = opaque(*left).wrapping_sub(1);
    *left != 0
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn opaque(mut number: u64) -> u64 {
    // SAFETY: there is no instruction; the register keeps its value.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) number, options(nomem, nostack, preserves_flags))
    };
    number
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn opaque(number: u64) -> u64 {
    black_box(number)
}

/// Lets the compiler assume that other code reads `word` and at all memory, so that neither can be
/// left out. Unlike [`black_box`](std::hint::black_box), which goes through the stack, this emits
/// no instruction: it costs all nothing.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn observe(word: u64) {
    // SAFETY: there is no instruction.
    unsafe { std::arch::asm!("/* {0} */", in(reg) word, options(nostack, preserves_flags)) };
}

/// Lets the compiler assume that other code reads `word` and at all memory, so that neither can be
/// left out.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(super) fn observe(word: u64) {
    black_box(word);
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}
