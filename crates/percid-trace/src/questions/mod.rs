//! Analyses of a recorded schedule that do not depend on IDs: how long threads wait, which threads
//! delay them, where they migrate, and what CPUs do during that time.
//!
//! Each analysis reads the events once, in their order, and does the same work for each event. One
//! of them analyses the [counter values](crate::counters) that were recorded beside the events.

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
