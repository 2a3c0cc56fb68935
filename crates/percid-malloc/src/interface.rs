//! The functions of C. Those of C++ (`new`, `delete`) call them: the C++ library's own do, and a
//! program that replaces only some of them would get blocks of both if all were replaced here.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_void};
use std::ptr;

use libc::{EINVAL, ENOMEM};
use percid_alloc::MAX_SIZE;

use crate::next::{self, without_errno};
use crate::{CACHES, spare};

/// The alignment of every block, in bytes.
const ALIGN: usize = 16;

/// Returns the layout of a request that the caches may serve.
#[inline(always)]
fn small(size: usize) -> Option<Layout> {
    // SAFETY: the alignment is a power of two, and the size is far below the largest one.
    (size <= MAX_SIZE).then(|| unsafe { Layout::from_size_align_unchecked(size, ALIGN) })
}

fn fail(error: c_int) -> *mut c_void {
    // SAFETY: the address is that of the calling thread's `errno`.
    unsafe { libc::__errno_location().write(error) };
    ptr::null_mut()
}

/// `malloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    match small(size) {
        // SAFETY: a request of no bytes is one of the smallest class, whose blocks have a size.
        Some(layout) => unsafe { CACHES.alloc(layout) }.cast(),
        // SAFETY: any size is right.
        None => unsafe { next::malloc::call(size) },
    }
}

/// `calloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        None => fail(ENOMEM),
        Some(bytes) => match small(bytes) {
            // SAFETY: as in `malloc`.
            Some(layout) => unsafe { CACHES.alloc_zeroed(layout) }.cast(),
            // SAFETY: any numbers are right.
            None => unsafe { next::calloc::call(count, size) },
        },
    }
}

/// `free(3)`. It leaves `errno` as it was.
///
/// # Safety
///
/// The object is one of these functions', and not used any more; or it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(object: *mut c_void) {
    if object.is_null() || spare::has(object.cast()) {
        return;
    }
    // SAFETY: the object is the allocator's behind, which knows its size, or comes from a cache, whose
    // blocks came from there. That allocator frees a block whatever layout is named.
    unsafe {
        let usable = next::malloc_usable_size::call(object);
        CACHES.dealloc_by_usable_size(object.cast(), usable);
    }
}

/// `realloc(3)`. An object keeps its block if it fits and fills half of it.
///
/// # Safety
///
/// The object is one of these functions', or null. It is not used any more, unless the result is null
/// and `size` is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(object: *mut c_void, size: usize) -> *mut c_void {
    if object.is_null() {
        return malloc(size);
    }
    if size == 0 {
        // SAFETY: the caller guarantees it.
        unsafe { free(object) };
        return ptr::null_mut();
    }
    // SAFETY: the object is one of these functions'.
    let usable = unsafe { malloc_usable_size(object) };
    if size <= usable && size >= usable / 2 {
        return object;
    }
    if size > MAX_SIZE && usable > MAX_SIZE && !spare::has(object.cast()) {
        // SAFETY: the object is the allocator's behind.
        return unsafe { next::realloc::call(object, size) };
    }
    let moved = malloc(size);
    if !moved.is_null() {
        // SAFETY: both blocks have that many bytes, and the new one is nobody else's.
        unsafe {
            moved.cast::<u8>().copy_from_nonoverlapping(object.cast(), usable.min(size));
            free(object);
        }
    }
    moved
}

/// `reallocarray(3)`.
///
/// # Safety
///
/// That of [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    object: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller guarantees it.
        Some(bytes) => unsafe { realloc(object, bytes) },
        None => fail(ENOMEM),
    }
}

/// `memalign(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    if align <= ALIGN && align.is_power_of_two() {
        return malloc(size);
    }
    // SAFETY: any numbers are right; the function refuses what is no power of two, or rounds it up.
    unsafe { next::memalign::call(align, size) }
}

/// `aligned_alloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if align.is_power_of_two() { memalign(align, size) } else { fail(EINVAL) }
}

/// `posix_memalign(3)`. It leaves `errno` as it was.
///
/// # Safety
///
/// A pointer can be written to `object`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    object: *mut *mut c_void,
    align: usize,
    size: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return EINVAL;
    }
    let block = without_errno(|| memalign(align, size));
    if block.is_null() {
        return ENOMEM;
    }
    // SAFETY: the caller guarantees it.
    unsafe { object.write(block) };
    0
}

/// `valloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(page(), size)
}

/// `pvalloc(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(page()) {
        Some(bytes) => memalign(page(), bytes.max(page())),
        None => fail(ENOMEM),
    }
}

fn page() -> usize {
    // SAFETY: reads a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// `free_sized(3)` of C23. The size is not used: a program's own `malloc` may be another one.
///
/// # Safety
///
/// That of [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(object: *mut c_void, _size: usize) {
    // SAFETY: the caller guarantees it.
    unsafe { free(object) };
}

/// `free_aligned_sized(3)` of C23.
///
/// # Safety
///
/// That of [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(object: *mut c_void, _align: usize, _size: usize) {
    // SAFETY: the caller guarantees it.
    unsafe { free(object) };
}

/// `malloc_usable_size(3)`.
///
/// # Safety
///
/// The object is one of these functions', or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(object: *mut c_void) -> usize {
    if spare::has(object.cast()) {
        // SAFETY: the object is from there.
        return unsafe { spare::size_of(object.cast()) };
    }
    // SAFETY: the object is the allocator's behind, or null.
    unsafe { next::malloc_usable_size::call(object) }
}

/// `malloc_trim(3)`: gives back the caches, and then what the allocator behind can.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(pad: usize) -> c_int {
    let returned = CACHES.trim() > 0;
    // SAFETY: any number is right.
    let released = unsafe { next::malloc_trim::call(pad) };
    c_int::from(returned || released != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_blocks_are_moved_and_never_given_to_the_allocator_behind() {
        let block = spare::allocate(100, 16);
        assert!(!block.is_null());
        // SAFETY: the block has 100 bytes, and each object is used no more after it was moved or freed.
        unsafe {
            block.write_bytes(7, 100);
            assert_eq!(malloc_usable_size(block.cast()), 100);
            let moved = realloc(block.cast(), 100_000).cast::<u8>();
            assert!(!spare::has(moved) && (0..100).all(|at| moved.add(at).read() == 7));
            free(block.cast());
            assert_eq!(malloc_usable_size(block.cast()), 100, "it is still there");
            free(moved.cast());
        }
    }
}
