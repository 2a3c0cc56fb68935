//! Structures that may grow: programs pass the size of theirs.
//!
//! New members are added at the end. A program with fewer members than the library receives those
//! that it has; one with more receives zeros in the rest.

use std::ffi::c_int;
use std::mem::MaybeUninit;

/// Stores the part of `value` that fits into `size` bytes, followed by zeros. Returns 0, or -EINVAL
/// for NULL or no bytes.
///
/// # Safety
///
/// `place` is NULL or the caller's memory of `size` bytes.
pub(crate) unsafe fn store<T: Copy>(place: *mut T, size: usize, value: &T) -> c_int {
    if place.is_null() || size == 0 {
        return -libc::EINVAL;
    }
    let known = size.min(size_of::<T>());
    let place = place.cast::<MaybeUninit<u8>>();
    // SAFETY: both have `known` bytes; the caller guarantees the rest of `size` too.
    unsafe {
        place.copy_from_nonoverlapping(std::ptr::from_ref(value).cast(), known);
        place.add(known).write_bytes(0, size - known);
    }
    0
}

/// Returns `true` if the members that the library does not have are zero in the caller's structure
/// of `size` bytes.
///
/// # Safety
///
/// `place` is the caller's memory of `size` bytes, all of them written.
pub(crate) unsafe fn is_known<T>(place: *const T, size: usize) -> bool {
    let place = place.cast::<u8>();
    // SAFETY: the caller guarantees `size` written bytes.
    (size_of::<T>()..size).all(|at| unsafe { *place.add(at) } == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_is_cut_off_or_filled_up_to_the_callers_size() {
        let value = [0x1111_u16, 0x2222];
        let stored = |size: usize| {
            let mut memory = [0x77_u8; 8];
            // SAFETY: `memory` is larger than `size`, and bytes have no alignment to keep.
            let result = unsafe { store(memory.as_mut_ptr().cast::<[u16; 2]>(), size, &value) };
            (result, memory)
        };
        assert_eq!(stored(2), (0, [0x11, 0x11, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77]));
        assert_eq!(stored(6), (0, [0x11, 0x11, 0x22, 0x22, 0, 0, 0x77, 0x77]));
        assert_eq!(stored(0), (-libc::EINVAL, [0x77; 8]));
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { store(std::ptr::null_mut(), 4, &value) }, -libc::EINVAL);
    }

    #[test]
    fn what_the_library_does_not_know_must_be_zero() {
        let mut memory = [1_u8, 1, 0, 0];
        let known = |memory: &[u8; 4]| {
            // SAFETY: the memory has 4 bytes.
            unsafe { is_known(memory.as_ptr().cast::<u16>(), 4) }
        };
        assert!(known(&memory));
        memory[3] = 1;
        assert!(!known(&memory));
    }
}
