//! How access to a page is seen, and what is known of a region's pages.

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
