//! Counters: one addition.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering, compiler_fence};

use percid::Counter;

use super::form::repeat;
use super::operation::{Account, Alone, Family, Measured, Operation, one_per_worker};

const FAMILY: Family = Family::Counters;

pub(super) fn operations(workers: usize) -> impl Iterator<Item = Operation> {
    let others = [
        Operation::other(FAMILY, "atomic_private", AtomicPrivate(one_per_worker(workers))),
        Operation::other(FAMILY, "atomic_shared", AtomicShared::default()),
        Operation::other(FAMILY, "thread_local", ThreadLocal::default()),
    ];
    #[cfg(feature = "counter-peers")]
    let others = others.into_iter().chain(super::counter_peers::operations());
    others.into_iter().chain(Operation::per_source(FAMILY, "counter_add", Counter::with_source))
}

pub(super) fn plain_add(workers: usize) -> Operation {
    Operation::other(FAMILY, "plain_add", PlainAdd(one_per_worker(workers)))
}

/// An addition to memory that no other thread accesses. The integers are atomic so that their sum
/// can be read.
struct PlainAdd(Box<[Alone<AtomicI64>]>);

impl Measured for PlainAdd {
    fn repeat(&self, times: u64, worker: usize) {
        add_plainly(&self.0[worker].0, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        Some(Account::of(done, sum(&self.0)))
    }
}

/// An atomic addition to memory that no other thread accesses.
struct AtomicPrivate(Box<[Alone<AtomicI64>]>);

impl Measured for AtomicPrivate {
    fn repeat(&self, times: u64, worker: usize) {
        atomic_add(&self.0[worker].0, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        Some(Account::of(done, sum(&self.0)))
    }
}

fn sum(integers: &[Alone<AtomicI64>]) -> i64 {
    integers.iter().map(|integer| integer.0.load(Ordering::Relaxed)).sum()
}

/// An atomic addition to one integer that all threads share.
#[derive(Default)]
struct AtomicShared(AtomicI64);

impl Measured for AtomicShared {
    fn repeat(&self, times: u64, _: usize) {
        atomic_add(&self.0, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        Some(Account::of(done, self.0.load(Ordering::Relaxed)))
    }
}

/// An addition to a `thread_local!` cell. Each batch ends by adding the cell's value to the total.
#[derive(Default)]
struct ThreadLocal {
    total: AtomicI64,
}

thread_local! {
    static LOCAL: Cell<i64> = const { Cell::new(0) };
}

impl Measured for ThreadLocal {
    fn repeat(&self, times: u64, _: usize) {
        thread_local_add(times);
        self.total.fetch_add(LOCAL.take(), Ordering::Relaxed);
    }

    fn account(&self, done: u64) -> Option<Account> {
        Some(Account::of(done, self.total.load(Ordering::Relaxed)))
    }
}

impl Measured for Counter {
    fn repeat(&self, times: u64, _: usize) {
        counter_add(self, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        Some(Account::of(done, self.sum()))
    }
}

#[inline(never)]
fn add_plainly(integer: &AtomicI64, times: u64) {
    repeat(times, |_| add_in_memory(integer));
}

/// Executes one addition in memory: otherwise the compiler would add `times` once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn add_in_memory(integer: &AtomicI64) {
    // SAFETY: the pointer is valid for reading and writing eight bytes, and no other thread
    // accesses them during the addition.
    unsafe {
        std::arch::asm!("add qword ptr [{0}], 1", in(reg) integer.as_ptr(), options(nostack));
    }
}

/// Executes one addition in memory: otherwise the compiler would add `times` once.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn add_in_memory(integer: &AtomicI64) {
    let place = integer.as_ptr();
    // SAFETY: the pointer is valid and aligned, and no other thread accesses the integer during the
    // addition.
    unsafe { place.write_volatile(place.read_volatile().wrapping_add(1)) }
}

#[inline(never)]
fn atomic_add(atomic: &AtomicI64, times: u64) {
    repeat(times, |_| {
        atomic.fetch_add(1, Ordering::Relaxed);
    });
}

#[inline(never)]
fn thread_local_add(times: u64) {
    // Other code may know the address, so the compiler must not keep the value in a register ...
    LOCAL.with(|cell| black_box(cell.as_ptr()));
    repeat(times, |_| {
        LOCAL.with(|cell| cell.set(cell.get().wrapping_add(1)));
        // ... and must store it here. This emits no instruction.
        compiler_fence(Ordering::SeqCst);
    });
}

#[inline(never)]
fn counter_add(counter: &Counter, times: u64) {
    repeat(times, |_| counter.add(1));
}
