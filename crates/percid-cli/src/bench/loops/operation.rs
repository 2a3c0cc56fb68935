//! What an operation is: a loop over it, its name, its family, and what became of all that went in.

use std::fmt;

use percid::Source;
use percid::id::Unavailable;

use percid_command::exit::complain;

/// A loop over one operation and what it works on, shared by all workers.
pub(crate) trait Measured: Sync {
    /// Does the operation `times` times on the calling thread, the `worker`th of its team.
    fn repeat(&self, times: u64, worker: usize);

    /// What became of all that went in, once all threads together did the operation `done` times
    /// and no thread does it any more. `None` where the operation leaves nothing behind.
    fn account(&self, done: u64) -> Option<Account>;
}

/// What was put into a structure and what it accounts for. The two differ if something was lost or
/// doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) added: i64,
    pub(crate) sum: i64,
}

impl Account {
    /// For an operation that puts in one each time.
    pub(super) fn of(done: u64, sum: i64) -> Self {
        Account { added: done as i64, sum }
    }
}

/// An operation by the name under which its figures are printed.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) family: Family,
    pub(crate) name: &'static str,
    /// Where percid's IDs come from, for what is percid's.
    pub(crate) source: Option<Source>,
    pub(crate) measured: &'static dyn Measured,
}

/// Operations that answer the same need, and are printed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Counters,
    ListsAndPools,
    Locks,
    Histograms,
    Rings,
    Masks,
    #[cfg(feature = "metrics-peers")]
    Metrics,
}

impl Operation {
    /// An operation that needs no percid. What it works on stays until the program ends, as a
    /// static does.
    pub(super) fn other(
        family: Family,
        name: &'static str,
        measured: impl Measured + 'static,
    ) -> Self {
        Operation { family, name, source: None, measured: &Box::leak(Box::new(Alone(measured))).0 }
    }

    /// The source of IDs by name, "none" for what is not percid's.
    pub(crate) fn source_name(&self) -> String {
        self.source.map_or("none".to_owned(), |source| source.to_string())
    }

    /// The same operation for each source of IDs that this machine has.
    pub(super) fn per_source<S: Measured + 'static>(
        family: Family,
        name: &'static str,
        measured: impl Fn(Source) -> Result<S, Unavailable>,
    ) -> impl Iterator<Item = Operation> {
        let available = Source::ALL.into_iter().filter(|source| source.prepare().is_ok());
        available.filter_map(move |source| match measured(source) {
            Ok(measured) => {
                Some(Operation { source: Some(source), ..Operation::other(family, name, measured) })
            }
            Err(why) => {
                complain(format_args!("no row for {name} of source {source}: {why}"));
                None
            }
        })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Family::Counters => "counters",
            Family::ListsAndPools => "lists and pools",
            Family::Locks => "locks",
            Family::Histograms => "histograms",
            Family::Rings => "rings",
            Family::Masks => "masks",
            #[cfg(feature = "metrics-peers")]
            Family::Metrics => "metrics",
        })
    }
}

/// Something with its cache line, and the one that the prefetcher fetches with it, to itself.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Alone<T>(pub(super) T);

/// One for each worker of the largest team, each alone.
pub(super) fn one_per_worker<T: Default>(workers: usize) -> Box<[Alone<T>]> {
    (0..workers).map(|_| Alone::default()).collect()
}
