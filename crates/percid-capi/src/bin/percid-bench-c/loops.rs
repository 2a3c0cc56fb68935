//! The loops in Rust, in the form of those in `loops.c`, and the declarations of those in C.

use std::ffi::c_void;

use percid::pool::RawPool;
use percid::{ActiveMask, Counter, Histogram, Local, Ring, Stack};

/// A loop in C.
pub(crate) type InC = unsafe extern "C" fn(object: *mut c_void, times: u64);

/// The C loops of an operation: for a passed object, and for an object of static storage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loops {
    pub(crate) c_static: InC,
    pub(crate) c: InC,
    pub(crate) cpp_static: InC,
    pub(crate) called: InC,
}

macro_rules! loops_of_c {
    ($($name:ident: $c_static:ident, $c:ident, $cpp_static:ident, $called:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $c_static(object: *mut c_void, times: u64);
                fn $c(object: *mut c_void, times: u64);
                fn $cpp_static(object: *mut c_void, times: u64);
                fn $called(object: *mut c_void, times: u64);
            )*
        }
        $(pub(crate) const $name: Loops =
            Loops { c_static: $c_static, c: $c, cpp_static: $cpp_static, called: $called };)*
    };
}

loops_of_c! {
    COUNTER_ADD: percid_bench_c_static_counter_add, percid_bench_c_counter_add, percid_bench_cpp_static_counter_add, percid_bench_called_counter_add;
    HISTOGRAM_RECORD: percid_bench_c_static_histogram_record, percid_bench_c_histogram_record, percid_bench_cpp_static_histogram_record, percid_bench_called_histogram_record;
    MASK_MARK: percid_bench_c_static_mask_mark, percid_bench_c_mask_mark, percid_bench_cpp_static_mask_mark, percid_bench_called_mask_mark;
    LOCAL: percid_bench_c_static_local_acquire_release, percid_bench_c_local_acquire_release, percid_bench_cpp_static_local_acquire_release, percid_bench_called_local_acquire_release;
    STACK: percid_bench_c_static_stack_push_pop, percid_bench_c_stack_push_pop, percid_bench_cpp_static_stack_push_pop, percid_bench_called_stack_push_pop;
    POOL: percid_bench_c_static_pool_get_put, percid_bench_c_pool_get_put, percid_bench_cpp_static_pool_get_put, percid_bench_called_pool_get_put;
    RING: percid_bench_c_static_ring_append, percid_bench_c_ring_append, percid_bench_cpp_static_ring_append, percid_bench_called_ring_append;
}

unsafe extern "C" {
    pub(crate) fn percid_bench_c_atomic_add(object: *mut c_void, times: u64);
    pub(crate) fn percid_bench_c_family_add(object: *mut c_void, times: u64);
    pub(crate) fn percid_bench_c_malloc_free(object: *mut c_void, times: u64);
    pub(crate) fn percid_bench_c_mimalloc(object: *mut c_void, times: u64);
}

/// References for the C loops, which call these functions and are linked after the libraries.
#[used]
static TABLE: &percid_capi::interface::Interface = &percid_capi::interface::INTERFACE;
#[used]
static MALLOC: unsafe extern "C" fn(usize) -> *mut c_void = libmimalloc_sys::mi_malloc;
#[used]
static FREE: unsafe extern "C" fn(*mut c_void) = libmimalloc_sys::mi_free;

/// Defines a loop over an operation on an object, executed at least once.
macro_rules! in_rust {
    ($name:ident, $type:ty, |$it:ident, $left:ident| $body:expr) => {
        #[inline(never)]
        pub(crate) fn $name($it: &$type, times: u64) {
            let mut $left = times;
            // SAFETY: the directive only makes the assembler insert no-operations, so that the loop
            // begins on a cache line. It changes no register, flag or memory.
            unsafe { std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags)) };
            loop {
                $body;
                $left -= 1;
                if $left == 0 {
                    break;
                }
            }
        }
    };
}

in_rust!(counter_add, Counter, |it, times| it.add(1));
in_rust!(histogram_record, Histogram, |it, times| it.record(times));
in_rust!(mask_mark, ActiveMask, |it, times| it.mark(3));
in_rust!(local_with, Local<u64>, |it, times| it.with(|value| *value += 1));
in_rust!(stack_push_pop, Stack<usize>, |it, times| {
    if it.push(std::ptr::from_ref(it).addr()).is_ok() {
        let _ = it.pop();
    }
});
in_rust!(pool_get_put, RawPool, |it, times| {
    if let Some(got) = it.get() {
        // SAFETY: the object belongs to this thread until `put`, and has 64 bytes.
        unsafe {
            got.cast::<u64>().write_volatile(times);
            let _ = it.put(got);
        }
    }
});
in_rust!(ring_append, Ring, |it, times| {
    let mut record = [0; 16];
    record[..8].copy_from_slice(&times.to_ne_bytes());
    record[8] = 1;
    let _ = it.append(&record);
});
