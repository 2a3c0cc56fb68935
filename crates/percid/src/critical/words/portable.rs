//! Stubs for builds without critical sections: see [`critical::portable`](crate::critical).

use super::{CopyRequest, NOT_DONE, Outcome};

#[inline(always)]
pub(crate) unsafe fn add_word(_word: usize, _at: usize, _n: i64) -> Outcome {
    NOT_DONE
}

#[inline(always)]
pub(crate) unsafe fn swap(_word: usize, _at: usize, _new: u64) -> Outcome {
    NOT_DONE
}

#[inline(always)]
pub(crate) unsafe fn store_if(_word: usize, _at: usize, _expected: u64, _new: u64) -> Outcome {
    NOT_DONE
}

#[inline(always)]
pub(crate) unsafe fn store_both_if(
    _word: usize,
    _at: usize,
    _expected: u64,
    _first: (usize, u64),
    _new: u64,
) -> Outcome {
    NOT_DONE
}

#[inline(always)]
pub(crate) unsafe fn store_if_both(
    _word: usize,
    _at: usize,
    _expected: u64,
    _second: (usize, u64),
    _new: u64,
) -> Outcome {
    NOT_DONE
}

#[inline(always)]
pub(crate) unsafe fn copy_then_store_if(
    _word: usize,
    _at: usize,
    _request: &CopyRequest,
) -> Outcome {
    NOT_DONE
}

#[inline(always)]
pub(crate) unsafe fn push_link(_word: usize, _at: usize, _item: u64, _link: usize) -> Outcome {
    NOT_DONE
}

#[inline(always)]
pub(crate) unsafe fn pop_link(_word: usize, _at: usize, _next: usize) -> Outcome {
    NOT_DONE
}
