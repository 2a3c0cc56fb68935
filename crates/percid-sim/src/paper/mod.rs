//! The published tables beside what the simulator makes of them.

pub mod intermittent;
