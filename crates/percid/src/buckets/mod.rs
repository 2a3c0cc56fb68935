//! [`Buckets`]: counts of values, and their sum.

mod object;
mod takes;
mod tallies;
#[cfg(test)]
mod tests;

pub use object::Buckets;
