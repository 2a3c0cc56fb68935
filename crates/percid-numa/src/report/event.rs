//! The events of a balancer: its decisions and their outcomes, one after the other.

use std::ops::Range;

use percid_rules::scan::SkipReason;

/// A decision, or the outcome of one. A region is identified by its start address.
///
/// ```
/// use percid_numa::{Balancer, Event};
///
/// let balancer = Balancer::new();
/// balancer.pass();
/// for event in balancer.take_events() {
///     match event {
///         Event::Armed { region, pages, .. } => println!("{region:#x}: {pages} pages armed"),
///         other => println!("{other:?}"),
///     }
/// }
/// assert!(balancer.take_events().is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A pass begins.
    Pass {
        /// The thread on behalf of which it is made.
        thread: u32,
        /// The sequence that it belongs to.
        sequence: i64,
    },
    /// A region was skipped, or would have been ([`SkipReason::IgnorePidInactive`]).
    Skipped {
        /// The region.
        region: usize,
        /// The reason.
        reason: SkipReason,
    },
    /// A part of a region was armed.
    Armed {
        /// The region.
        region: usize,
        /// The part.
        part: Range<usize>,
        /// Number of its pages that were not armed before.
        pages: u64,
    },
    /// Pages were moved.
    Moved {
        /// The region.
        region: usize,
        /// Number of pages that were moved.
        pages: u64,
        /// Number of pages that could not be moved.
        failed: u64,
    },
    /// The memory of a region is not mapped any more, or was replaced. From now on the region is
    /// left alone.
    Gone {
        /// The region.
        region: usize,
    },
    /// The mappings of the process could not be read: this pass armed nothing.
    MappingsUnreadable,
    /// Another SIGSEGV handler has taken the place of percid's: trapped regions are not armed.
    HandlerReplaced,
}
