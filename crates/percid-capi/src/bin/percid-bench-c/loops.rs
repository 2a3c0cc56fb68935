//! The loops in Rust, in the form of those in `loops.c`, and the declarations of those in C.

use std::ffi::c_void;

use std::ptr::NonNull;

use percid::per_id::{Bytes, Pointer, Word};
use percid::pool::RawPool;
use percid::{ActiveMask, Counter, Histogram, Local, PerId, Ring, Stack, field};

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
    WORD_ADD: percid_bench_c_static_word_add, percid_bench_c_word_add, percid_bench_cpp_static_word_add, percid_bench_called_word_add;
    WORD_LOCK: percid_bench_c_static_word_lock, percid_bench_c_word_lock, percid_bench_cpp_static_word_lock, percid_bench_called_word_lock;
    LIST: percid_bench_c_static_list_push_pop, percid_bench_c_list_push_pop, percid_bench_cpp_static_list_push_pop, percid_bench_called_list_push_pop;
    COPY: percid_bench_c_static_copy_and_publish, percid_bench_c_copy_and_publish, percid_bench_cpp_static_copy_and_publish, percid_bench_called_copy_and_publish;
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
/// Returns a record that is made of two words, as in C: a word that is loaded whole must have been
/// stored whole.
#[inline(always)]
fn sixteen_bytes(times: u64) -> [u8; 16] {
    (u128::from(times) | 1 << 64).to_le_bytes()
}

in_rust!(ring_append, Ring, |it, times| {
    let record = sixteen_bytes(times);
    let _ = it.append(&record);
});

/// The same fields as in librseq's loops, for each ID.
#[derive(Debug)]
pub(crate) struct Value {
    count: Word,
    lock: Word,
    head: Pointer<Item>,
    used: Word,
    bytes: Bytes<64>,
}

impl Value {
    pub(crate) fn new() -> Value {
        Value {
            count: Word::new(0),
            lock: Word::new(0),
            head: Pointer::null(),
            used: Word::new(0),
            bytes: Bytes::new(),
        }
    }
}

#[derive(Debug)]
struct Item {
    next: Pointer<Item>,
}

in_rust!(word_add, PerId<Value>, |it, times| {
    _ = it.add(field!(Value, count), 1);
});
in_rust!(word_lock, PerId<Value>, |it, times| {
    if let Ok(value) = it.store_if(field!(Value, lock), 0, 1) {
        value.count.store(value.count.load() + 1);
        value.lock.store(0);
    }
});
in_rust!(list_push_pop, PerId<Value>, |it, times| {
    static ITEM: Item = Item { next: Pointer::null() };
    let (head, next) = (field!(Value, head), field!(Item, next));
    // SAFETY: the item is static, and taken out before it is added again: the thread stays on its
    // CPU, and no other thread uses the list.
    unsafe {
        _ = it.push(head, NonNull::from(&ITEM), next);
        _ = it.pop(head, next);
    }
});
in_rust!(copy_and_publish, PerId<Value>, |it, times| {
    let record = sixteen_bytes(times);
    let used = it.current().map_or(0, |value| value.used.load());
    let begin = if used == 64 { 0 } else { used };
    let to = (field!(Value, bytes), begin as usize);
    _ = it.copy_then_store_if(field!(Value, used), used, begin + 16, to, &record);
});

/// The loops of librseq, if it was built with them.
#[cfg(librseq)]
pub(crate) mod librseq {
    use super::InC;
    use std::ffi::c_int;

    unsafe extern "C" {
        fn percid_bench_librseq_start() -> c_int;
        fn percid_bench_librseq_add(object: *mut std::ffi::c_void, times: u64);
        fn percid_bench_librseq_lock(object: *mut std::ffi::c_void, times: u64);
        fn percid_bench_librseq_list(object: *mut std::ffi::c_void, times: u64);
        fn percid_bench_librseq_copy(object: *mut std::ffi::c_void, times: u64);
    }

    /// Returns the loops in the order of [`super::super::operations`]; `None` if librseq cannot be
    /// used here.
    pub(crate) fn loops() -> Option<[InC; 4]> {
        // SAFETY: the function may be called at any time, and once.
        (unsafe { percid_bench_librseq_start() } == 0).then_some([
            percid_bench_librseq_add,
            percid_bench_librseq_lock,
            percid_bench_librseq_list,
            percid_bench_librseq_copy,
        ])
    }
}

#[cfg(not(librseq))]
pub(crate) mod librseq {
    use super::InC;

    pub(crate) fn loops() -> Option<[InC; 4]> {
        None
    }
}
