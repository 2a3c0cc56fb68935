//! No marks: see `mark.rs`.

use crate::block::Block;

#[inline(always)]
pub(crate) fn has_mark(_: &Block) -> bool {
    false
}

#[inline(always)]
pub(crate) fn set_mark(_: &Block) {}

#[inline(always)]
pub(crate) fn take_mark(_: &Block) {}
