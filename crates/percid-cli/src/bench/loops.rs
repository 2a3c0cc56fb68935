//! The loops that `bench ops` measures, one function per operation, all of one form.
//!
//! Each function is kept out of line, its loop starts on a cache line and is not unrolled, so that no operation is
//! favoured by where its code happens to lie or by what the compiler makes of it. Nothing is hoisted by hand: each
//! iteration pays what a program pays, plus counting down, which all pay alike.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering, compiler_fence};

use percid::Counter;

/// One operation to measure.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    PlainAdd,
    AtomicPrivate,
    AtomicShared,
    ThreadLocal,
    CounterAdd(&'static Counter),
    /// The increment of another crate's counter.
    #[cfg(feature = "peers")]
    Peer(fn(u64)),
}

/// An integer with its cache line, and the one that the prefetcher fetches with it, to itself.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

/// The memory of one worker that no other thread touches.
#[derive(Debug, Default)]
pub(crate) struct Private {
    plain: Alone<i64>,
    atomic: Alone<AtomicI64>,
}

static SHARED: Alone<AtomicI64> = Alone(AtomicI64::new(0));

thread_local! {
    static LOCAL: Cell<i64> = const { Cell::new(0) };
}

impl Op {
    /// Does the operation `times` times.
    pub(crate) fn repeat(self, times: u64, private: &mut Private) {
        match self {
            Op::PlainAdd => plain_add(&mut private.plain.0, times),
            Op::AtomicPrivate => atomic_add(&private.atomic.0, times),
            Op::AtomicShared => atomic_add(&SHARED.0, times),
            Op::ThreadLocal => thread_local_add(times),
            Op::CounterAdd(counter) => counter_add(counter, times),
            #[cfg(feature = "peers")]
            Op::Peer(repeat) => repeat(times),
        }
    }
}

/// Does an increment of another crate `times` times, as the other loops do theirs.
#[cfg(feature = "peers")]
#[inline(always)]
pub(super) fn repeat_peer(mut times: u64, increment: impl Fn()) {
    align_loop();
    while again(&mut times) {
        increment();
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

/// Counts down and says whether there was something left. The compiler cannot foresee the count, so it does not unroll.
#[inline(always)]
fn again(left: &mut u64) -> bool {
    let before = *left;
    *left = opaque(before.wrapping_sub(1));
    before != 0
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

#[inline(never)]
fn plain_add(cell: &mut i64, mut times: u64) {
    align_loop();
    while again(&mut times) {
        add_in_memory(cell);
    }
}

/// One addition that really goes to memory: without this the compiler would add `times` once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn add_in_memory(cell: &mut i64) {
    // SAFETY: `cell` is valid for reading and writing eight bytes, and ours alone.
    unsafe {
        std::arch::asm!("add qword ptr [{cell}], 1", cell = in(reg) cell, options(nostack));
    }
}

/// One addition that really goes to memory: without this the compiler would add `times` once.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn add_in_memory(cell: &mut i64) {
    // SAFETY: `cell` is a valid, aligned and exclusive reference.
    unsafe { std::ptr::write_volatile(cell, std::ptr::read_volatile(cell).wrapping_add(1)) }
}

#[inline(never)]
fn atomic_add(atomic: &AtomicI64, mut times: u64) {
    align_loop();
    while again(&mut times) {
        atomic.fetch_add(1, Ordering::Relaxed);
    }
}

#[inline(never)]
fn thread_local_add(mut times: u64) {
    // Somebody else may know the address, so the compiler must not keep the value in a register ...
    LOCAL.with(|cell| black_box(cell.as_ptr()));
    align_loop();
    while again(&mut times) {
        LOCAL.with(|cell| cell.set(cell.get().wrapping_add(1)));
        // ... and here that somebody might look. This emits no instruction.
        compiler_fence(Ordering::SeqCst);
    }
}

#[inline(never)]
fn counter_add(counter: &'static Counter, mut times: u64) {
    align_loop();
    while again(&mut times) {
        counter.add(1);
    }
}
