//! Structures that may grow: programs say how large theirs is.
//!
//! New members are added at the end. A program that knows fewer than the library gets those that it
//! knows; one that knows more finds zeros in the rest.

use std::ffi::c_int;
use std::mem::MaybeUninit;

/// Stores as much of `value` as fits into `size` bytes, and zeros behind it. Returns 0, or -EINVAL
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
    // SAFETY: `known` bytes are in both; the rest of `size` is the caller's too.
    unsafe {
        place.copy_from_nonoverlapping(std::ptr::from_ref(value).cast(), known);
        place.add(known).write_bytes(0, size - known);
    }
    0
}

/// Whether the caller's structure of `size` bytes says nothing that the library does not know of.
///
/// # Safety
///
/// `place` is the caller's memory of `size` bytes, all of them written.
pub(crate) unsafe fn is_known<T>(place: *const T, size: usize) -> bool {
    let place = place.cast::<u8>();
    // SAFETY: by contract.
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
            // SAFETY: that many bytes.
            unsafe { is_known(memory.as_ptr().cast::<u16>(), 4) }
        };
        assert!(known(&memory));
        memory[3] = 1;
        assert!(!known(&memory));
    }
}
