//! The locations of all pages.

use percid::Pool;
use serde::Serialize;

use crate::cache::Cache;
use crate::page::{self, Page};

/// The pages of a cache when no thread uses it any more.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Accounts {
    /// Made since the program started.
    pub(crate) made: i64,
    /// In the cache.
    pub(crate) cached: usize,
    /// Evicted and not wiped yet.
    pub(crate) pending: usize,
    /// In the pool.
    pub(crate) idle: usize,
    /// Made and not freed when everything was shut down.
    pub(crate) leaked: i64,
}

impl Accounts {
    /// Shuts a cache and its pool down, and counts the pages on the way.
    ///
    /// There must be no other cache, and no page of any pool in use: pages are counted for all.
    pub(crate) fn close(cache: Cache<'_>, pages: &Pool<Page>) -> Accounts {
        let made = page::made();
        let (cached, pending) = (cache.len(), cache.retired.len());
        let idle = pages.drain();
        // The pages go back to the pool.
        drop(cache);
        pages.drain();
        Accounts { made, cached, pending, idle, leaked: page::made() - page::freed() }
    }

    /// Returns `true` if every page is accounted for, and none is leaked.
    pub(crate) fn balance(&self) -> bool {
        let found = self.cached + self.pending + self.idle;
        self.made == found as i64 && self.leaked == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_balance_unless_a_page_is_lost() {
        let accounts = Accounts { made: 12, cached: 5, pending: 3, idle: 4, leaked: 0 };
        assert!(accounts.balance());
        assert!(!Accounts { idle: 3, ..accounts.clone() }.balance());
        assert!(!Accounts { idle: 5, ..accounts.clone() }.balance());
        assert!(!Accounts { leaked: 1, ..accounts }.balance());
    }
}
