//! Data that is replaced while others read it: [`Domain`] and [`RcuCell`].

mod cell;
mod deferred;
mod domain;
mod grace;
#[cfg(test)]
mod tests;

pub use cell::RcuCell;
pub use domain::{Domain, Full, NotFenced, ReadGuard};
