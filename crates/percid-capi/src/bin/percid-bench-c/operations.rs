//! The measured operations: each in every language, with the source of the process.

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::AtomicU64;

use percid::pool::RawPool;
use percid::{ActiveMask, Counter, Histogram, Local, Overflow, PerId, Ring, Stack};
use percid_capi::metrics::family::Family;
use percid_capi::metrics::registry::{
    FamilySettings, percid_family_create, percid_registry_create,
};
use percid_capi::metrics::series::Kind;
use percid_capi::{local, mask, memory, pool, ring, stack};
use percid_metrics::{Description, Registry};

use crate::loops::{self, InC, Loops, Value};
use crate::rounds::Way;

/// The ways of one operation; Rust is the first, if it has one.
pub(crate) struct Comparison {
    pub(crate) operation: &'static str,
    pub(crate) ways: Vec<Way<'static>>,
}

const CAPACITY: u32 = 64;
const SIZE: usize = 64;
const BYTES: usize = 64 * 1024;
const OVERWRITE: c_int = ring::Overflow::OverwriteOldest as c_int;

pub(crate) const RUST: &str = "Rust";
/// The ways that are compared with Rust.
pub(crate) const INLINE: [&str; 2] = ["C", "C++"];
pub(crate) const POOL: &str = "pool get + put";
pub(crate) const MIMALLOC: &str = "mimalloc malloc + free";

pub(crate) fn all() -> Vec<Comparison> {
    let counter = leaked(Counter::new());
    let histogram = leaked(Histogram::new());
    let mask = leaked(ActiveMask::new());
    let local: &Local<u64> = leaked(Local::new(|| 0));
    let stack = leaked(Stack::new(CAPACITY));
    let layout = Layout::new::<[u64; SIZE / 8]>();
    let pool = leaked(RawPool::new(layout, CAPACITY));
    let ring = leaked(Ring::new(BYTES, Overflow::OverwriteOldest));
    let mut all = vec![
        comparison("counter add", loops::COUNTER_ADD, of_c(counter), |times| {
            loops::counter_add(counter, times);
        }),
        comparison("histogram record", loops::HISTOGRAM_RECORD, of_c(histogram), |times| {
            loops::histogram_record(histogram, times);
        }),
        comparison("mask mark", loops::MASK_MARK, created::mask(), |times| {
            loops::mask_mark(mask, times);
        }),
        comparison("local acquire + release", loops::LOCAL, created::local(), |times| {
            loops::local_with(local, times);
        }),
        comparison("stack push + pop", loops::STACK, created::stack(), |times| {
            loops::stack_push_pop(stack, times);
        }),
        comparison(POOL, loops::POOL, created::pool(), |times| loops::pool_get_put(pool, times)),
        comparison("ring append 16 bytes", loops::RING, created::ring(), |times| {
            loops::ring_append(ring, times);
        }),
        families(),
        references(),
    ];
    all.extend(of_own_words());
    all
}

/// A loop over an operation on words.
type OfWords = fn(&PerId<Value>, u64);

/// Returns the operations on words of one's own, beside those of librseq, if it was built with it.
fn of_own_words() -> Vec<Comparison> {
    let values: &PerId<Value> = leaked(PerId::new(Value::new));
    let operations: [(&str, Loops, OfWords); 4] = [
        ("own word add", loops::WORD_ADD, loops::word_add),
        ("own lock", loops::WORD_LOCK, loops::word_lock),
        ("own list push + pop", loops::LIST, loops::list_push_pop),
        ("own copy 16 bytes", loops::COPY, loops::copy_and_publish),
    ];
    let librseq = loops::librseq::loops();
    let of_own_words = |number: usize| {
        let (operation, loops, rust) = operations[number];
        let rust = move |times: u64| rust(values, times);
        let mut comparison = comparison(operation, loops, created::memory(), rust);
        let librseq = librseq.map(|loops| in_c("librseq", loops[number], ptr::null_mut()));
        comparison.ways.extend(librseq);
        comparison
    };
    (0..operations.len()).map(of_own_words).collect()
}

/// Objects of C with handles. A handle is NULL if the object cannot be created; then only the error
/// path is measured.
mod created {
    use super::*;

    macro_rules! created {
        ($name:ident, $create:path, $($argument:expr),*) => {
            pub(super) fn $name() -> *mut c_void {
                let mut handle = ptr::null_mut();
                // SAFETY: `handle` is a valid place for a handle, and no callback is passed.
                let _ = unsafe { $create(&mut handle, $($argument),*) };
                handle.cast()
            }
        };
    }

    created!(mask, mask::percid_mask_create,);
    created!(local, local::percid_local_create, 8, 8, None, None, ptr::null_mut());
    created!(stack, stack::percid_stack_create, CAPACITY, usize::MAX);
    created!(pool, pool::percid_pool_create, SIZE, 8, CAPACITY);
    created!(memory, memory::percid_memory_create, size_of::<Value>(), 8, None, ptr::null_mut());
    created!(ring, ring::percid_ring_create, BYTES, OVERWRITE);

    pub(super) fn family() -> *mut Family {
        let labels = [c"method".as_ptr(), c"status".as_ptr()];
        let settings = FamilySettings {
            kind: Kind::Counter as c_int,
            name: c"requests".as_ptr(),
            help: ptr::null(),
            unit: ptr::null(),
            labels: labels.as_ptr(),
            label_count: labels.len(),
            constants: ptr::null(),
            constant_count: 0,
            limits: ptr::null(),
            limit_count: 0,
            most: 0,
            overflow: ptr::null(),
            why: ptr::null_mut(),
            why_size: 0,
        };
        let (mut registry, mut family) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the places for handles are valid, and the texts outlive the calls.
        let _ = unsafe {
            percid_registry_create(&mut registry)
                + percid_family_create(&mut family, registry, &settings, size_of_val(&settings))
        };
        family
    }
}

/// Returns the ways to get a counter by the values of two labels. C calls a function of the
/// library.
fn families() -> Comparison {
    let rust = Registry::new().register::<percid_metrics::Counter>(
        Description::new("requests").labels(["method", "status"]),
    );
    let rust = move |times: u64| {
        let Ok(family) = &rust else { return };
        for _ in 0..times {
            if let Ok(counter) = family.get(black_box(["GET", "200"])) {
                counter.inc();
            }
        }
    };
    let ways = vec![
        Way { name: RUST, repeat: Box::new(rust) },
        in_c("C, called", loops::percid_bench_c_family_add, created::family().cast()),
    ];
    Comparison { operation: "family look-up + add", ways }
}

/// Returns operations without percid, for comparison.
fn references() -> Comparison {
    let word = of_c(leaked(AtomicU64::new(0)));
    let ways = vec![
        in_c("atomic add", loops::percid_bench_c_atomic_add, word),
        in_c("malloc + free", loops::percid_bench_c_malloc_free, ptr::null_mut()),
        in_c(MIMALLOC, loops::percid_bench_c_mimalloc, ptr::null_mut()),
    ];
    Comparison { operation: "for comparison", ways }
}

/// Returns the ways of an operation on objects of static storage, and on one with a handle.
fn comparison(
    operation: &'static str,
    loops: Loops,
    handle: *mut c_void,
    rust: impl Fn(u64) + 'static,
) -> Comparison {
    let ways = vec![
        Way { name: RUST, repeat: Box::new(rust) },
        in_c(INLINE[0], loops.c_static, ptr::null_mut()),
        in_c(INLINE[1], loops.cpp_static, ptr::null_mut()),
        in_c("C, by a pointer", loops.c, handle),
        in_c("C, called", loops.called, handle),
    ];
    Comparison { operation, ways }
}

pub(crate) fn in_c(name: &'static str, body: InC, object: *mut c_void) -> Way<'static> {
    // SAFETY: the object has the loop's type and is never destroyed, or the loop uses a static
    // object.
    Way { name, repeat: Box::new(move |times| unsafe { body(object, times) }) }
}

/// Returns the pointer for C. The library's counters and histograms have the same layout as C's.
fn of_c<T>(object: &'static T) -> *mut c_void {
    ptr::from_ref(object).cast_mut().cast()
}

/// Leaks an object: the program measures until it ends.
fn leaked<T>(object: T) -> &'static T {
    Box::leak(Box::new(object))
}
