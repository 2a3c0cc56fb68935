//! Detection of accesses to pages, and the per-page state of a region.

pub(crate) mod bell;
pub(crate) mod directory;
pub(crate) mod entry;
pub(crate) mod lookers;
pub(crate) mod mapping_budget;
pub(crate) mod pages;
mod second_looks;
pub(crate) mod trap;
mod wishes;
pub(crate) mod write_protect;
