//! What is measured: one increment by three ways, in loops of one form.

use percid::Counter;
use percid_capi::counter::{self, percid_counter_add_slow};

/// A way of incrementing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// `Counter::add` in Rust.
    Rust,
    /// `percid_counter_add` in C, inline.
    Inline,
    /// `percid_counter_add_slow` in C, which is what a compiler without the inline function calls.
    Call,
}

unsafe extern "C" {
    fn percid_bench_inline(counter: *mut counter::Counter, times: u64);
    fn percid_bench_call(counter: *mut counter::Counter, times: u64);
}

/// The C half calls it, and is linked behind the library.
#[used]
static CALLED_BY_C: unsafe extern "C" fn(*mut counter::Counter, i64) = percid_counter_add_slow;

impl Way {
    pub(crate) const ALL: [Way; 3] = [Way::Rust, Way::Inline, Way::Call];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Rust => "Rust, inline",
            Way::Inline => "C, inline",
            Way::Call => "C, called",
        }
    }

    /// Increments this many times, at least once.
    pub(crate) fn repeat(self, counter: &Counter, times: u64) {
        let of_c = std::ptr::from_ref(counter).cast_mut().cast();
        match self {
            Way::Rust => in_rust(counter, times),
            // SAFETY: a counter of the library is one of the C interface.
            Way::Inline => unsafe { percid_bench_inline(of_c, times) },
            // SAFETY: as above.
            Way::Call => unsafe { percid_bench_call(of_c, times) },
        }
    }
}

#[inline(never)]
fn in_rust(counter: &Counter, mut times: u64) {
    // SAFETY: the directive makes the assembler insert no-operations, and nothing else: the loop
    // begins on a cache line.
    unsafe { std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags)) };
    loop {
        counter.add(1);
        times -= 1;
        if times == 0 {
            break;
        }
    }
}
