//! What is measured: each operation by each language, with each source that has sections.

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::AtomicU64;

use percid::pool::RawPool;
use percid::{ActiveMask, Counter, Histogram, Local, Overflow, Ring, Source, Stack};
use percid_capi::{local, mask, pool, ring, stack};

use crate::loops::{self, InC, Loops};
use crate::rounds::Way;

/// The ways of one operation; that of Rust is the first, if it has one.
pub(crate) struct Comparison {
    pub(crate) operation: &'static str,
    /// The source; empty if there is none.
    pub(crate) source: &'static str,
    pub(crate) ways: Vec<Way<'static>>,
}

/// The sources that have sections, by their numbers in C.
const SOURCES: [(Source, &str, c_int); 2] =
    [(Source::Kernel, "kernel", 1), (Source::Table, "table", 2)];

const CAPACITY: u32 = 64;
const SIZE: usize = 64;
const BYTES: usize = 64 * 1024;
const OVERWRITE: c_int = ring::Overflow::OverwriteOldest as c_int;

pub(crate) const POOL: &str = "pool get + put";
pub(crate) const MIMALLOC: &str = "mimalloc malloc + free";

/// All of them; and why a source is missing.
pub(crate) fn all() -> (Vec<Comparison>, Vec<String>) {
    let mut comparisons = vec![mask()];
    let mut missing = Vec::new();
    for (source, name, number) in SOURCES {
        match source.prepare() {
            Ok(()) => comparisons.extend(of_source(source, name, number)),
            Err(why) => missing.push(format!("{name}: {why}")),
        }
    }
    comparisons.push(references());
    (comparisons, missing)
}

fn of_source(source: Source, name: &'static str, number: c_int) -> Vec<Comparison> {
    [
        counter(source, name),
        histogram(source, name),
        local(source, name, number),
        stack(source, name, number),
        pool(source, name, number),
        ring(source, name, number),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn counter(source: Source, name: &'static str) -> Option<Comparison> {
    let object = leaked(Counter::with_source(source).ok()?);
    let of_c = ptr::from_ref(object).cast_mut().cast();
    let rust = move |times| loops::counter_add(object, times);
    Some(comparison("counter add", name, rust, loops::COUNTER_ADD, of_c, None))
}

fn histogram(source: Source, name: &'static str) -> Option<Comparison> {
    let object = leaked(Histogram::with_source(source).ok()?);
    let of_c = ptr::from_ref(object).cast_mut().cast();
    let rust = move |times| loops::histogram_record(object, times);
    Some(comparison("histogram record", name, rust, loops::HISTOGRAM_RECORD, of_c, None))
}

/// It has no source.
fn mask() -> Comparison {
    let object = leaked(ActiveMask::new());
    let of_static = ptr::from_ref(object).cast_mut().cast();
    let mut handle = ptr::null_mut();
    // SAFETY: a place for a handle.
    unsafe { mask::percid_mask_create(&mut handle) };
    let rust = move |times| loops::mask_mark(object, times);
    comparison("mask mark", "", rust, loops::MASK_MARK, handle.cast(), Some(of_static))
}

fn local(source: Source, name: &'static str, number: c_int) -> Option<Comparison> {
    let object: &Local<u64> = leaked(Local::with_source(source, || 0).ok()?);
    let mut handle: *mut local::Local = ptr::null_mut();
    // SAFETY: a place for a handle; no callbacks.
    unsafe {
        local::percid_local_create_with_source(
            &mut handle,
            number,
            8,
            8,
            None,
            None,
            ptr::null_mut(),
        );
    }
    let rust = move |times| loops::local_with(object, times);
    Some(comparison("local acquire + release", name, rust, loops::LOCAL, handle.cast(), None))
}

fn stack(source: Source, name: &'static str, number: c_int) -> Option<Comparison> {
    let object: &Stack<usize> = leaked(Stack::with_source(source, CAPACITY).ok()?);
    let of_static = ptr::from_ref(object).cast_mut().cast();
    let mut handle = ptr::null_mut();
    // SAFETY: a place for a handle.
    unsafe { stack::percid_stack_create_with_source(&mut handle, number, CAPACITY) };
    let rust = move |times| loops::stack_push_pop(object, times);
    Some(comparison("stack push + pop", name, rust, loops::STACK, handle.cast(), Some(of_static)))
}

fn pool(source: Source, name: &'static str, number: c_int) -> Option<Comparison> {
    let layout = Layout::from_size_align(SIZE, 16).ok()?;
    let object = leaked(RawPool::with_source(source, layout, CAPACITY).ok()?);
    let of_static = ptr::from_ref(object).cast_mut().cast();
    let mut handle = ptr::null_mut();
    // SAFETY: a place for a handle.
    unsafe { pool::percid_pool_create_with_source(&mut handle, number, SIZE, 16, CAPACITY) };
    let rust = move |times| loops::pool_get_put(object, times);
    Some(comparison(POOL, name, rust, loops::POOL, handle.cast(), Some(of_static)))
}

fn ring(source: Source, name: &'static str, number: c_int) -> Option<Comparison> {
    let object = leaked(Ring::with_source(source, BYTES, Overflow::OverwriteOldest).ok()?);
    let of_static = ptr::from_ref(object).cast_mut().cast();
    let mut handle = ptr::null_mut();
    // SAFETY: a place for a handle.
    unsafe { ring::percid_ring_create_with_source(&mut handle, number, BYTES, OVERWRITE) };
    let rust = move |times| loops::ring_append(object, times);
    Some(comparison(
        "ring append 16 bytes",
        name,
        rust,
        loops::RING,
        handle.cast(),
        Some(of_static),
    ))
}

/// What else a program might do.
fn references() -> Comparison {
    let word: &AtomicU64 = leaked(AtomicU64::new(0));
    let word = ptr::from_ref(word).cast_mut().cast();
    let ways = vec![
        in_c("atomic add", loops::percid_bench_c_atomic_add, word),
        in_c("malloc + free", loops::percid_bench_c_malloc_free, ptr::null_mut()),
        in_c(MIMALLOC, loops::percid_bench_c_mimalloc, ptr::null_mut()),
    ];
    Comparison { operation: "for comparison", source: "", ways }
}

/// With C's object, and one of static storage, if the library's can be that as well.
fn comparison(
    operation: &'static str,
    source: &'static str,
    rust: impl Fn(u64) + 'static,
    loops: Loops,
    object: *mut c_void,
    of_static: Option<*mut c_void>,
) -> Comparison {
    let mut ways = vec![
        Way { name: "Rust", repeat: Box::new(rust) },
        in_c("C", loops.c, object),
        in_c("C++", loops.cpp, object),
        in_c("C, called", loops.called, object),
    ];
    if let Some(of_static) = of_static {
        ways.insert(2, in_c("C, static", loops.c, of_static));
    }
    Comparison { operation, source, ways }
}

fn in_c(name: &'static str, body: InC, object: *mut c_void) -> Way<'static> {
    // SAFETY: the object is of the loop's type and is never destroyed.
    Way { name, repeat: Box::new(move |times| unsafe { body(object, times) }) }
}

/// The program measures until it ends.
fn leaked<T>(object: T) -> &'static T {
    Box::leak(Box::new(object))
}
