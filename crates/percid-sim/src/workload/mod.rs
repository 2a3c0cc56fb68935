//! Workloads: the behaviour of a program's threads, as files with parameters.

mod description;
mod effort;
mod part;
mod program;

pub use description::{Memory, Workload};
pub(crate) use program::MAX_DEPTH;
pub use program::{
    AffinityChange, Confinement, Group, GroupIndex, Op, Part, Program, Quota, Spread, Wakes,
};
