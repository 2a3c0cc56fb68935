//! The kernel's interface for the nodes of pages, the properties of nodes, and moving pages. It is
//! behind one trait, so that tests can choose the answers.

use std::ops::Range;

use crate::sys::{memory, nodes};

/// Interface of a kernel.
pub(crate) trait Kernel {
    /// Looks up the nodes of pages, like [`nodes::query`].
    ///
    /// # Errors
    ///
    /// The `errno` of the whole call.
    fn query(&self, pages: &[usize], nodes: &mut [i32]) -> Result<(), i32>;

    /// Moves pages to nodes, like [`nodes::move_to`].
    ///
    /// # Errors
    ///
    /// The `errno` of the whole call; some pages may have been moved before.
    fn move_to(&self, pages: &[usize], nodes: &[i32], outcomes: &mut [i32]) -> Result<(), i32>;

    /// Returns which pages of a range have memory; `None` if that cannot be found without their
    /// nodes.
    fn resident(&self, range: &Range<usize>) -> Option<Vec<bool>>;

    /// Returns the nodes that have memory.
    fn nodes_with_memory(&self) -> Vec<u32>;

    /// Returns the nodes that have CPUs; `None` if the kernel does not report them.
    fn nodes_with_cpus(&self) -> Option<Vec<u32>>;

    /// Returns the memory tiers with their nodes: a larger number is slower.
    fn tiers(&self) -> Vec<(u32, Vec<u32>)>;

    /// Returns the distances of all online nodes from a node.
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

/// A kernel for tests.
#[cfg(test)]
pub(crate) mod pretended {
    use std::cell::{Cell, RefCell};
    use std::collections::{BTreeMap, BTreeSet};
    use std::ops::Range;

    use super::Kernel;
    use crate::sys::{memory, nodes};

    /// A machine whose properties the test chooses. It moves pages like `move_pages` of Linux 5.17
    /// and later (`mm/migrate.c`).
    #[derive(Debug, Default)]
    pub(crate) struct Pretended {
        /// The node of each page that has memory, by the page's address.
        pub(crate) homes: RefCell<BTreeMap<usize, u32>>,
        /// Pages that cannot be moved at present.
        pub(crate) busy: BTreeSet<usize>,
        /// Pages that lose their memory before anybody asks for their nodes.
        pub(crate) discarded: BTreeSet<usize>,
        /// Nodes that refuse pages, with the `errno`.
        pub(crate) refused: BTreeMap<u32, i32>,
        /// The `errno` of all queries, if they fail.
        pub(crate) mute: Option<i32>,
        /// `true` if it does not report which pages have memory.
        pub(crate) hides_residents: bool,
        pub(crate) with_cpus: Option<Vec<u32>>,
        pub(crate) with_memory: Vec<u32>,
        pub(crate) tiers: Vec<(u32, Vec<u32>)>,
        pub(crate) distances: BTreeMap<u32, Vec<(u32, u32)>>,
        /// Number of pages that were queried so far.
        pub(crate) asked: Cell<usize>,
        /// Number of calls so far that moved pages.
        pub(crate) moves: Cell<usize>,
    }

    impl Kernel for Pretended {
        fn query(&self, pages: &[usize], nodes: &mut [i32]) -> Result<(), i32> {
            self.asked.set(self.asked.get() + pages.len());
            for (page, node) in pages.iter().zip(nodes) {
                let homes = self.homes.borrow();
                let home = homes.get(page).filter(|_| !self.discarded.contains(page));
                *node = home.map_or(-libc::ENOENT, |home| *home as i32);
            }
            self.mute.map_or(Ok(()), Err)
        }

        fn move_to(&self, pages: &[usize], nodes: &[i32], outcomes: &mut [i32]) -> Result<(), i32> {
            outcomes.fill(nodes::UNTOUCHED);
            self.moves.set(self.moves.get() + 1);
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
                // Like the kernel, stop after pages that stay, and report no outcome for the pages
                // before them.
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
