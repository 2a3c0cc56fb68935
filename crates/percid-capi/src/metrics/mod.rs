//! Metrics by the values of their labels, and their exposition pages.

// The order of the header.
pub mod series;

pub mod family;

pub mod registry;

pub mod page;

mod error;
mod texts;
