//! Operations: a loop, its name, its family, and the account of its items.

use std::fmt;

use percid::Source;
use percid::id::SourceError;

use percid_command::exit::complain;

/// A loop over one operation and its data, shared by all workers.
pub(crate) trait Measured: Sync {
    /// Executes the operation `times` times on the calling thread, the `worker`th of its team.
    fn repeat(&self, times: u64, worker: usize);

    /// Returns the account after all threads together executed the operation `done` times, when no
    /// thread executes it any more. `None` if the operation leaves nothing behind.
    fn account(&self, done: u64) -> Option<Account>;
}

/// The amount put into a structure and the amount that it accounts for. They differ if something
/// was lost or counted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) added: i64,
    pub(crate) sum: i64,
}

impl Account {
    /// Creates an account for an operation that adds one each time.
    pub(super) fn of(done: u64, sum: i64) -> Self {
        Account { added: done as i64, sum }
    }
}

/// An operation with the name under which its values are printed.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) family: Family,
    pub(crate) name: &'static str,
    /// The source of percid's IDs, if the operation is percid's.
    pub(crate) source: Option<Source>,
    pub(crate) measured: &'static dyn Measured,
}

/// Operations that serve the same purpose, and are printed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Counters,
    ListsAndPools,
    Locks,
    Histograms,
    Rings,
    Masks,
    Readers,
    References,
    Limits,
    Allocators,
    #[cfg(feature = "metrics-peers")]
    Metrics,
}

impl Operation {
    /// Creates an operation that does not use percid. Its data exists until the program ends, as a
    /// static does.
    pub(super) fn other(
        family: Family,
        name: &'static str,
        measured: impl Measured + 'static,
    ) -> Self {
        Operation { family, name, source: None, measured: &Box::leak(Box::new(Alone(measured))).0 }
    }

    /// Returns the name of the ID source, "none" for operations that are not percid's.
    pub(crate) fn source_name(&self) -> String {
        self.source.map_or("none".to_owned(), |source| source.to_string())
    }

    /// Creates the same operation for each ID source of this machine.
    pub(super) fn per_source<S: Measured + 'static>(
        family: Family,
        name: &'static str,
        measured: impl Fn(Source) -> Result<S, SourceError>,
    ) -> impl Iterator<Item = Operation> {
        let available = Source::ALL.iter().copied().filter(|source| source.prepare().is_ok());
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
            Family::Readers => "readers",
            Family::References => "references",
            Family::Limits => "limits and records",
            Family::Allocators => "allocators",
            #[cfg(feature = "metrics-peers")]
            Family::Metrics => "metrics",
        })
    }
}

/// A value with exclusive use of its cache line, and of the one that the prefetcher loads with it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Alone<T>(pub(super) T);

/// Returns one value for each worker of the largest team, each in separate cache lines.
pub(super) fn one_per_worker<T: Default>(workers: usize) -> Box<[Alone<T>]> {
    (0..workers).map(|_| Alone::default()).collect()
}
