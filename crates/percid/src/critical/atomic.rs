//! The twins of the critical sections on machines without any: there is nothing to try, so every
//! operation takes the way of a missing ID, which ends at an atomic instruction.

/// See the function of this name in `x86_64.rs`.
///
/// # Safety
///
/// None; the signature is that of the architectures that have sections.
pub(crate) unsafe fn add_kernel<const DISPLACEMENT: isize>(_cell: usize, _n: i64) -> bool {
    false
}

/// See the function of this name in `x86_64.rs`.
///
/// # Safety
///
/// As [`add_kernel`].
pub(crate) unsafe fn add_table<const DISPLACEMENT: isize>(_cell: usize, _n: i64) -> bool {
    false
}
