//! What a recorded schedule says of threads and CPUs, whatever IDs they have: how long threads wait,
//! for whom.
//!
//! Each question goes through the events once, in their order, and does the same work for each.

mod follower;
mod histogram;
mod latency;
mod recent_turns;
mod turn;
mod wakeups;

pub use histogram::{Bin, Histogram};
pub use latency::{Latency, LatencySettings, LongWait, ThreadLatency, latency};
pub use turn::Who;
pub use wakeups::Wakeups;
