//! The contract of a policy for concurrency IDs, as [`Policy`](crate::policies::Policy) states it.
//!
//! The engine checks the contract in every run. [`check`] searches for a violation in random
//! schedules on random machines, and reduces it to few steps.

mod driver;
mod execution;
pub(crate) mod holders;
mod schedule;
mod search;
mod shrink;
mod violation;

pub use schedule::{Schedule, Step};
pub use search::{Finding, Found, Search, check};
pub use violation::{Breach, Violation};
