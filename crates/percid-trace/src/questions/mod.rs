//! What a recorded schedule says of threads and CPUs, whatever IDs they have: how long threads wait,
//! for whom, where they go, and what CPUs do meanwhile.
//!
//! Each question goes through the events once, in their order, and does the same work for each. One asks what
//! was [counted](crate::counters) beside them.

mod affinities;
mod bound;
mod counters;
mod follower;
mod histogram;
mod idle_clock;
mod latency;
mod losses;
mod migrations;
mod picture;
mod preemptions;
mod recent_turns;
mod turn;
mod usage;
mod wakeups;

pub use counters::{
    Before, Counters, CountersSettings, Distance, Modelled, PAUSES, TurnCounts, counters,
};
pub use histogram::{Bin, Histogram};
pub use latency::{Latency, LatencySettings, LongWait, ThreadLatency, latency};
pub use losses::{Loss, LossKind, Losses, LossesSettings, LostMoment, losses};
pub use migrations::{Migrations, MigrationsSettings, ThreadMigrations, migrations};
pub use picture::{Picture, PictureSettings, ProcessRan, picture};
pub use preemptions::{Delay, Preemptions, PreemptionsSettings, preemptions};
pub use turn::Who;
pub use usage::{Cell, CpuUsage, SliceUsage, Usage, UsageSettings, usage};
pub use wakeups::Wakeups;
