//! The pages of a simulated process: their nodes, the armed ones, and the last thread that trapped
//! on each.

use std::ops::Range;

use percid_rules::scan::HUGE_PAGE;

use super::workload::layout::{PAGE, Part, Used};
use crate::time::Ns;

/// Number of a node of the machine.
pub(super) type Node = u16;

/// The memory that a page table entry maps: a page or, if the alignment allows it, a huge page.
#[derive(Debug, Clone)]
pub(super) struct MappedPage {
    pub(super) start: u64,
    /// Size in pages.
    pub(super) pages: u64,
    pub(super) node: Node,
    pub(super) armed: bool,
    /// Time at which it was last armed.
    pub(super) armed_at: Ns,
    /// The thread that last trapped on it, and its node at that time.
    pub(super) last: Option<(u32, Node)>,
    /// `true` if it was ever armed.
    seen: bool,
}

/// The memory of a process, region by region.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) regions: Vec<Vec<MappedPage>>,
    /// The pages that the last pass armed: region and index.
    pub(super) armed: Vec<(usize, usize)>,
    /// Number of pages that were armed at least once.
    pub(super) seen: u64,
    pub(super) pte_updates: u64,
    pub(super) pmd_updates: u64,
}

impl Pages {
    /// Creates the pages. `place` returns the node for a region and a start address.
    pub(super) fn new(parts: &[Part], place: impl Fn(&Part, u64) -> Node) -> Pages {
        let regions = parts.iter().map(|part| map(part, &place)).collect();
        Pages { regions, armed: Vec::new(), seen: 0, pte_updates: 0, pmd_updates: 0 }
    }
}

/// Returns the pages of a region: huge pages if the workload's memory covers them, single pages
/// otherwise. Stacks grow from their upper end.
fn map(part: &Part, place: impl Fn(&Part, u64) -> Node) -> Vec<MappedPage> {
    let Range { start, end } = part.range.clone();
    let is_memory = matches!(part.used, Used::Memory(_));
    let mut at = if is_memory { start } else { end - part.resident * PAGE };
    let mut pages = Vec::new();
    while at < end {
        let huge = is_memory && at % HUGE_PAGE == 0 && at + HUGE_PAGE <= end;
        let size = if huge { HUGE_PAGE } else { PAGE };
        let node = place(part, at);
        let (pages_of_it, last) = (size / PAGE, None);
        let (armed, armed_at, seen) = (false, 0, false);
        pages.push(MappedPage { start: at, pages: pages_of_it, node, armed, armed_at, last, seen });
        at += size;
    }
    pages
}

impl Pages {
    /// Arms the pages of a range of the region with this index. Returns the number of pages that
    /// were not armed before.
    pub(super) fn arm(&mut self, region: usize, range: Range<u64>, now: Ns) -> u64 {
        let pages = &mut self.regions[region];
        let first = pages.partition_point(|page| page.start < range.start);
        let mut changed = 0;
        for (index, page) in pages.iter_mut().enumerate().skip(first) {
            if page.start >= range.end {
                break;
            }
            if page.armed {
                continue;
            }
            (page.armed, page.armed_at) = (true, now);
            changed += page.pages;
            self.armed.push((region, index));
            *if page.pages > 1 { &mut self.pmd_updates } else { &mut self.pte_updates } += 1;
            if !page.seen {
                page.seen = true;
                self.seen += page.pages;
            }
        }
        changed
    }

    /// Returns all armed pages: region and index.
    pub(super) fn all_armed(&self) -> Vec<(usize, usize)> {
        let regions = self.regions.iter().enumerate();
        let armed = regions.flat_map(|(region, pages)| {
            let indexes = pages.iter().enumerate().filter(|(_, page)| page.armed);
            indexes.map(move |(index, _)| (region, index))
        });
        armed.collect()
    }
}
