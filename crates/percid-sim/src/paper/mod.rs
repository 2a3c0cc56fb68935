//! The published tables beside what the simulator makes of them.

pub mod bounds;
pub mod intermittent;
