#![doc = include_str!("../README.md")]
#![deny(rustdoc::broken_intra_doc_links)]

#[cfg(not(target_os = "linux"))]
compile_error!("percid-numa uses Linux system calls: there is no other system it works on");

mod access;
mod balancer;
mod error;
mod inner;
mod migrate;
mod own_memory;
mod region;
mod report;
mod sys;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;

pub use access::AccessMethod;
pub use balancer::{Balancer, Builder};
pub use error::RegisterError;
pub use inner::Pass;
pub use migrate::Batch;
pub use own_memory::IdRegions;
pub use percid_rules::scan::{BadSetting, Order, Reason, Rules, Settings, Width};
pub use region::{Exclusion, Region};
pub use report::event::Event;
pub use report::{RegionReport, Report};
