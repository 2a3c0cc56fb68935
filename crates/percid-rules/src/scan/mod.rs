//! The NUMA scan: the memory of a process that a pass arms, the time between passes, and the pages
//! that move.
//!
//! To *arm* a page is to mark it so that its next access is observed. From time to time a thread of
//! the process makes a *pass*: it visits the regions of memory and arms a part of them
//! ([`Scan::pass`]). When all regions were visited, a *sequence* is over. The observed accesses
//! adapt the time to the next pass ([`adapted_period`]) and move pages ([`migration_policy`]).
//!
//! The order of the tests, the budgets and the state are the published ones (Linux 6.7, commits
//! 9ae5c00ea2e6 to ef4e0604996f); [`Rules`] selects among the fixes. Each decision of the scan is
//! compared with recordings of running Linux 6.1, 6.12 and 7.3 (`verify/vm`).
//!
//! ```
//! use std::ops::Range;
//! use std::time::Duration;
//!
//! use percid_rules::scan::{Effects, SkipReason, Rules, Scan, Scanner, Settings, Traits};
//!
//! /// Memory whose pages are never armed twice.
//! #[derive(Default)]
//! struct Log(Vec<Range<u64>>);
//!
//! impl Effects for Log {
//!     fn arm(&mut self, _region: u64, part: Range<u64>) -> u64 {
//!         let pages = (part.end - part.start) / 4096;
//!         self.0.push(part);
//!         pages
//!     }
//!     fn note(&mut self, _region: u64, _reason: SkipReason) {}
//! }
//!
//! let mut scan = Scan::new();
//! assert!(scan.add(0..4 << 20, Traits::ANONYMOUS));
//! let mut log = Log::default();
//! let scanner = Scanner { thread: 1, balances: true, threads: 1 };
//! scan.pass(scanner, Duration::ZERO, &Settings::default(), &Rules::LINUX_6_12, &mut log);
//! assert_eq!(log.0, [0..4 << 20]);
//! assert_eq!(scan.sequence(), 1);
//! ```

mod activity;
mod by_activity;
mod by_address;
pub mod migration_policy;
mod period;
mod region;
mod rules;
mod settings;
mod state;
pub mod tiers;
mod visit;
mod walk;

pub use activity::Width;
pub use period::{AccessCounts, adapted_period};
pub use region::{Policy, SkipReason, Traits};
pub use rules::{Order, Rules};
pub use settings::{BadSetting, Settings};
pub use state::Scan;
pub use tiers::{Stamp, Tiers};
pub use visit::{Effects, HUGE_PAGE, Scanner};
