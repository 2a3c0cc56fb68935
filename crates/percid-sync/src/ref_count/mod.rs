//! References that are counted by ID while their object lives: [`RefCount`], and [`Owner`] and
//! [`Arc`] on it.

mod arc;
mod count;
#[cfg(test)]
mod tests;

pub use arc::{Arc, Owner};
pub use count::{KillError, RefCount};
