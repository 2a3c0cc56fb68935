//! The common form of all loops.
//!
//! Each loop is not inlined, begins on a cache line (or shortly after, if the compiler computes
//! something once before it) and is not unrolled. So no operation is favoured by the position of
//! its code or by the compiler's optimisations. Nothing is hoisted by hand: each iteration has the
//! costs that a program has, plus counting down, which is the same for all.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use std::hint::black_box;

/// Executes `operation` `times` times, at least once. Its argument is the number of remaining
/// executions, as a word that changes.
///
/// The calling function is the loop: it is marked `#[inline(never)]`, and generic at most over the
/// object of the operation.
#[inline(always)]
pub(super) fn repeat(mut times: u64, mut operation: impl FnMut(u64)) {
    align_loop();
    // The test is at the end: one at the start would be moved out of the loop, before the
    // alignment.
    loop {
        operation(times);
        if !again(&mut times) {
            break;
        }
    }
}

/// Aligns the following code, a loop, to a cache line.
#[inline(always)]
fn align_loop() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: the directive only makes the assembler insert no-operations.
    unsafe {
        std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags));
    }
}

/// Counts down. Returns `true` if executions are left. The compiler cannot predict the count, so it
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

/// Makes the compiler assume that other code reads `word` and all memory, so that neither can be
/// left out. Unlike [`black_box`](std::hint::black_box), which uses the stack, this emits no
/// instruction and has no cost.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn observe(word: u64) {
    // SAFETY: there is no instruction.
    unsafe { std::arch::asm!("/* {0} */", in(reg) word, options(nostack, preserves_flags)) };
}

/// Makes the compiler assume that other code reads `word` and all memory, so that neither can be
/// left out.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(super) fn observe(word: u64) {
    black_box(word);
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}
