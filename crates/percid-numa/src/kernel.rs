//! The kernel, as far as it says where pages are and which nodes there are, and moves pages. Behind
//! one trait, so that tests choose what it answers.

use std::ops::Range;

use crate::sys::{memory, nodes};

/// Answers of a kernel.
pub(crate) trait Kernel {
    /// Looks up the nodes of pages, as [`nodes::query`].
    ///
    /// # Errors
    ///
    /// The `errno` of the whole call.
    fn query(&self, pages: &[usize], nodes: &mut [i32]) -> Result<(), i32>;

    /// Moves pages to nodes, as [`nodes::move_to`].
    ///
    /// # Errors
    ///
    /// The `errno` of the whole call; some pages may have been moved before.
    fn move_to(&self, pages: &[usize], nodes: &[i32], outcomes: &mut [i32]) -> Result<(), i32>;

    /// Returns which pages of a range have memory, where that can be known without their nodes.
    fn resident(&self, range: &Range<usize>) -> Option<Vec<bool>>;

    /// Returns the nodes that have memory.
    fn nodes_with_memory(&self) -> Vec<u32>;

    /// Returns the nodes that have CPUs; `None` on kernels that do not say.
    fn nodes_with_cpus(&self) -> Option<Vec<u32>>;

    /// Returns the tiers of memory with their nodes: a larger number is slower.
    fn tiers(&self) -> Vec<(u32, Vec<u32>)>;

    /// Returns how far each online node is from a node.
    fn distances(&self, from: u32) -> Vec<(u32, u32)>;
}

/// The kernel that runs this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linux;

impl Kernel for Linux {
    fn query(&self, pages: &[usize], nodes: &mut [i32]) -> Result<(), i32> {
        nodes::query(pages, nodes)
    }

    fn move_to(&self, pages: &[usize], nodes: &[i32], outcomes: &mut [i32]) -> Result<(), i32> {
        nodes::move_to(pages, nodes, outcomes)
    }

    fn resident(&self, range: &Range<usize>) -> Option<Vec<bool>> {
        memory::resident(range)
    }

    fn nodes_with_memory(&self) -> Vec<u32> {
        nodes::nodes_with_memory()
    }

    fn nodes_with_cpus(&self) -> Option<Vec<u32>> {
        nodes::with_cpus()
    }

    fn tiers(&self) -> Vec<(u32, Vec<u32>)> {
        nodes::tiers()
    }

    fn distances(&self, from: u32) -> Vec<(u32, u32)> {
        nodes::distances(from)
    }
}

/// A kernel of the tests' own.
#[cfg(test)]
pub(crate) mod pretended {
    use std::cell::{Cell, RefCell};
    use std::collections::{BTreeMap, BTreeSet};
    use std::ops::Range;

    use super::Kernel;
    use crate::sys::{memory, nodes};

    /// A machine of which all is chosen. It moves pages as `move_pages` of Linux 5.17 and later does
    /// (`mm/migrate.c`).
    #[derive(Debug, Default)]
    pub(crate) struct Pretended {
        /// Pages that have memory, by their addresses, with their nodes.
        pub(crate) homes: RefCell<BTreeMap<usize, u32>>,
        /// Pages that do not move at present.
        pub(crate) busy: BTreeSet<usize>,
        /// Nodes that it lets nothing be moved to, and why.
        pub(crate) refused: BTreeMap<u32, i32>,
        /// Why it answers no question about places, if it does not.
        pub(crate) mute: Option<i32>,
        /// It does not say which pages have memory.
        pub(crate) hides_residents: bool,
        pub(crate) with_cpus: Option<Vec<u32>>,
        pub(crate) with_memory: Vec<u32>,
        pub(crate) tiers: Vec<(u32, Vec<u32>)>,
        pub(crate) distances: BTreeMap<u32, Vec<(u32, u32)>>,
        /// The pages that it was asked about so far.
        pub(crate) asked: Cell<usize>,
    }

    impl Kernel for Pretended {
        fn query(&self, pages: &[usize], nodes: &mut [i32]) -> Result<(), i32> {
            self.asked.set(self.asked.get() + pages.len());
            for (page, node) in pages.iter().zip(nodes) {
                let home = self.homes.borrow().get(page).copied();
                *node = home.map_or(-libc::ENOENT, |home| home as i32);
            }
            self.mute.map_or(Ok(()), Err)
        }

        fn move_to(&self, pages: &[usize], nodes: &[i32], outcomes: &mut [i32]) -> Result<(), i32> {
            outcomes.fill(nodes::UNTOUCHED);
            let mut done = 0;
            for of_node in nodes.chunk_by(|one, other| one == other) {
                let (node, here) = (of_node[0], done..done + of_node.len());
                done = here.end;
                if let Some(errno) = self.refused.get(&(node as u32)) {
                    return Err(*errno);
                }
                let mut homes = self.homes.borrow_mut();
                let free = |page: &&usize| !self.busy.contains(page);
                for page in pages[here.clone()].iter().filter(free) {
                    homes.entry(*page).and_modify(|home| *home = node as u32);
                }
                // Behind pages that stay it goes no further, and says nothing of those before them.
                if pages[here.clone()].iter().any(|page| self.busy.contains(page)) {
                    return Ok(());
                }
                outcomes[here].fill(node);
            }
            Ok(())
        }

        fn resident(&self, range: &Range<usize>) -> Option<Vec<bool>> {
            let homes = self.homes.borrow();
            let pages = range.clone().step_by(memory::page_size());
            (!self.hides_residents).then(|| pages.map(|page| homes.contains_key(&page)).collect())
        }

        fn nodes_with_memory(&self) -> Vec<u32> {
            self.with_memory.clone()
        }

        fn nodes_with_cpus(&self) -> Option<Vec<u32>> {
            self.with_cpus.clone()
        }

        fn tiers(&self) -> Vec<(u32, Vec<u32>)> {
            self.tiers.clone()
        }

        fn distances(&self, from: u32) -> Vec<(u32, u32)> {
            self.distances.get(&from).cloned().unwrap_or_default()
        }
    }
}
