//! Detection of accesses to pages, and the per-page state of a region.

pub(crate) mod directory;
pub(crate) mod lookers;
pub(crate) mod mapping_budget;
pub(crate) mod pages;
pub(crate) mod region_record;
mod second_looks;
pub(crate) mod trap;
pub(crate) mod wakeup;
mod wishes;
pub(crate) mod write_protect;
