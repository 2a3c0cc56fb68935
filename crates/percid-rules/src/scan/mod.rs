//! The NUMA scan: which memory of a process a pass arms, how often passes come, and which pages move.
//!
//! To *arm* a page is to make the next access to it noticed. A thread of the process makes a *pass* now and then:
//! it walks over the regions of memory and arms a part of them ([`Scan::pass`]). When all regions were walked a
//! *sequence* is over. What the accesses say adapts the time to the next pass ([`adapted_period`]) and moves pages
//! ([`migration_policy`]).
//!
//! The order of the questions, the budgets and the state are the published ones (Linux 6.7, commits 9ae5c00ea2e6 to
//! ef4e0604996f); [`Rules`] chooses among the fixes. The walk is compared, decision by decision, with recordings of
//! a running Linux 6.12 (`verify/vm`).

mod activity;
mod by_activity;
pub mod migration_policy;
mod period;
mod region;
mod rules;
mod settings;
mod walk;

pub use activity::Width;
pub use period::{AccessCounts, adapted_period};
pub use region::{Policy, Reason, Traits};
pub use rules::{Order, Rules};
pub use settings::{BadSetting, Settings};
pub use walk::{Effects, HUGE_PAGE, Scan, Scanner};
