#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg), doc(auto_cfg(hide(percid_elsewhere, percid_portable))))]
#![deny(rustdoc::broken_intra_doc_links)]

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod access;
mod access_method;
mod balancer;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod balancing;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod call_size;
mod done;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
mod elsewhere;
mod error;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod kernel;
mod lock;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod migrate;
mod own_memory;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod publish;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod region;
mod report;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod sys;
#[cfg(all(
    feature = "testing",
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere)
))]
#[doc(hidden)]
pub mod testing;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod tiers;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
use elsewhere::{balancing, publish, region};

pub use access_method::AccessMethod;
pub use balancer::{Balancer, Builder};
pub use done::{Batch, Pass};
pub use error::RegisterError;
pub use own_memory::IdRegions;
pub use percid_rules::scan::{BadSetting, Order, Rules, Settings, SkipReason, Tiers, Width};
pub use region::{Exclusion, Region};
pub use report::event::Event;
pub use report::placement_timeline::PlacementTimeline;
pub use report::{RegionReport, Report};
