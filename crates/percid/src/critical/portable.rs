//! Stubs of the critical sections for builds without them. No section is tried, so every operation
//! continues as if the ID were missing, and ends at an atomic instruction. The functions are
//! `unsafe` only to have the same signatures; none has an obligation for its caller.

use std::mem::MaybeUninit;

use super::ring::Append;

#[inline(always)]
pub(crate) unsafe fn add(_word: usize, _n: i64) -> bool {
    false
}

#[inline(always)]
pub(crate) unsafe fn add_float(_word: usize, _n: f64) -> bool {
    false
}

#[inline(always)]
pub(crate) unsafe fn tally(_word: usize, _place: usize, _times: u64, _sum: f64) -> bool {
    false
}

#[inline(always)]
pub(crate) unsafe fn acquire<const CLOSED: isize>(
    _word: usize,
    _expected: usize,
    _token: usize,
) -> usize {
    0
}

#[inline(always)]
pub(crate) unsafe fn push(_word: usize, _capacity: &u64, _item: MaybeUninit<u64>) -> bool {
    false
}

#[inline(always)]
pub(crate) unsafe fn pop(_word: usize) -> Option<MaybeUninit<u64>> {
    None
}

#[inline(always)]
pub(crate) unsafe fn append(_word: usize, _request: &Append) -> bool {
    false
}

#[inline(always)]
pub(crate) unsafe fn discard(_word: usize, _keep: u64, _mask: u64) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No word is marked here, so no operation calls these functions. They return that nothing was
    /// done.
    #[test]
    fn nothing_is_done_and_nothing_else_is_claimed() {
        let request = Append::new(b"record", 1024).expect("a record that fits");
        // SAFETY: these functions have no obligation for the caller.
        unsafe {
            assert!(!add(0, 1) && !add_float(0, 1.0) && !tally(0, 0, 1, 1.0));
            assert!(!push(0, &1, MaybeUninit::new(7)));
            assert!(!append(0, &request) && !discard(0, 0, 1023));
            assert!(pop(0).is_none());
            assert_eq!(acquire::<8>(0, 0, 1), 0);
        }
    }
}
