//! percid-numa at work: on several nodes if there are some, and on pretended ones.

mod area;
mod armed;
mod changes;
mod environment;
mod follow;
mod handler;
mod hazards;
mod partial;
mod placement;
mod race;
mod shared;
mod stages;
mod tiers;
mod touch;
mod trap;
mod write_protect;

pub(crate) use changes::run as changes;
pub(crate) use follow::run as follow;
pub(crate) use partial::run as partial;
pub(crate) use race::{Contender, Scene, advice as cost, run as race};
pub(crate) use shared::run as shared;
pub(crate) use tiers::run as tiers;
pub(crate) use touch::run as touch;
pub(crate) use trap::run as trap;
pub(crate) use write_protect::run as written;
