//! The allocator behind: the next one in the order in which the loader looks for `malloc`.
//!
//! Each function is called by a pointer. At first it leads to a function that looks for all of them, so
//! that a call costs no question whether they were found. The search is `dlsym`'s, which may
//! allocate: such requests, and those of other threads meanwhile, get spare memory.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use crate::spare;

/// Declares the functions: how each is called, and its result while it is not found.
macro_rules! functions {
    ($($name:ident, $symbol:literal, ($($argument:ident: $type:ty),*) $(-> $result:ty, $spare:expr)?;)*) => {
        $(pub(crate) mod $name {
            use super::*;

            type Function = unsafe extern "C" fn($($type),*) $(-> $result)?;

            static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(first as Function as *mut c_void);

            unsafe extern "C" fn first($($argument: $type),*) $(-> $result)? {
                look();
                let found = FUNCTION.load(Acquire);
                if found == first as Function as *mut c_void {
                    return $($spare)?
                }
                // SAFETY: as in `call`.
                unsafe { transmute::<*mut c_void, Function>(found)($($argument),*) }
            }

            pub(super) fn found(function: *mut c_void) {
                FUNCTION.store(function, Release);
            }

            /// Calls the function.
            ///
            /// # Safety
            ///
            /// The obligations in the function's manual page.
            #[inline(always)]
            pub(crate) unsafe fn call($($argument: $type),*) $(-> $result)? {
                // SAFETY: the pointer is that of `first`, or of the function that the loader found
                // under this name, which has this type.
                unsafe {
                    transmute::<*mut c_void, Function>(FUNCTION.load(Acquire))($($argument),*)
                }
            }
        })*

        /// Looks for all functions, once.
        #[cold]
        fn look() {
            static LOOKING: AtomicBool = AtomicBool::new(false);
            if !LOOKING.swap(true, Relaxed) {
                $(if let Some(function) = next($symbol) {
                    $name::found(function);
                })*
            }
        }
    };
}

functions! {
    malloc, c"malloc", (size: usize) -> *mut c_void, spare::allocate(size, 1).cast();
    calloc, c"calloc", (count: usize, size: usize) -> *mut c_void,
        count.checked_mul(size).map_or(ptr::null_mut(), |bytes| spare::allocate(bytes, 1).cast());
    realloc, c"realloc", (_object: *mut c_void, _size: usize) -> *mut c_void, ptr::null_mut();
    free, c"free", (_object: *mut c_void);
    memalign, c"memalign", (align: usize, size: usize) -> *mut c_void,
        spare::allocate(size, align).cast();
    malloc_usable_size, c"malloc_usable_size", (_object: *mut c_void) -> usize, 0;
    malloc_trim, c"malloc_trim", (_pad: usize) -> c_int, 0;
}

/// Returns the next function with this name after this library's.
fn next(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!function.is_null()).then_some(function)
}

/// Calls a function, and leaves `errno` as it was.
pub(crate) fn without_errno<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: the address is that of the calling thread's `errno`.
    unsafe {
        let errno = libc::__errno_location();
        let before = errno.read();
        let result = call();
        errno.write(before);
        result
    }
}

/// The allocator behind, as Rust's interface has it. It frees a block whatever layout is named.
#[derive(Debug)]
pub(crate) struct Next;

// SAFETY: the functions are those of an allocator. `malloc` aligns to 16 bytes what has as many.
unsafe impl GlobalAlloc for Next {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and any power of two are right.
        let block = unsafe {
            if layout.align() <= 16 {
                malloc::call(layout.size().max(16))
            } else {
                memalign::call(layout.align(), layout.size())
            }
        };
        block.cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= 16 {
            // SAFETY: any numbers are right.
            return unsafe { calloc::call(1, layout.size().max(16)) }.cast();
        }
        // SAFETY: a block of this layout has that many bytes.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        if !spare::has(block) {
            // SAFETY: the caller guarantees that the block is the allocator's, and free.
            without_errno(|| unsafe { free::call(block.cast()) });
        }
    }
}
