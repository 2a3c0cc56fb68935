//! Which regions are scanned, how often, and which pages move: pure state machines.

pub(crate) mod activity;
pub(crate) mod judgement;
pub(crate) mod period;
pub(crate) mod rules;
pub(crate) mod settings;
pub mod walk;
