//! Metrics by the values of their labels, and the pages that a server shows of them.

// The header's order.
pub mod series;

pub mod family;

pub mod registry;

pub mod page;

mod error;
mod texts;
