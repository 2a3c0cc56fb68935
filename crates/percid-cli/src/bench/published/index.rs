//! Indices of the areas, with their forecasts and published columns.

use percid_rules::Generation;
use percid_sim::policies::{self, PolicySpec};

use super::column::Column;

/// An index that is measured, forecast and compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublishedIndex {
    /// The value of `--index`.
    pub(super) name: &'static str,
    /// The simulated policy that forecasts it.
    pub(super) policy: &'static PolicySpec,
    /// The corresponding column of the published table; `None` for IDs that were not published.
    pub(super) column: Option<Column>,
}

impl PublishedIndex {
    /// Returns the indices for a kernel whose IDs are of this generation, if it has IDs.
    pub(super) fn all(kernel: Option<Generation>, has_table: bool) -> Vec<PublishedIndex> {
        let cpu = PublishedIndex::new("cpu", "per-cpu", Column::PerCpu);
        let table = PublishedIndex::new("table", "percid-table", Column::CacheLocal);
        let kernel = kernel.map(|generation| PublishedIndex {
            name: "kernel",
            policy: policies::of_generation(generation),
            column: column(generation),
        });
        [Some(cpu), kernel, has_table.then_some(table)].into_iter().flatten().collect()
    }

    fn new(name: &'static str, policy: &str, column: Column) -> PublishedIndex {
        let policy = policies::find(policy).expect("a policy of the simulator");
        PublishedIndex { name, policy, column: Some(column) }
    }
}

/// Returns the column for the generations before and after the published change; later ones are
/// cache-local too.
fn column(generation: Generation) -> Option<Column> {
    match generation {
        Generation::CacheCold => Some(Column::MmCid),
        Generation::NotCompacting | Generation::CacheLocal | Generation::Owned => {
            Some(Column::CacheLocal)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_ids_stand_beside_those_of_their_generation() {
        let column = |generation| {
            let all = PublishedIndex::all(generation, true);
            all.iter().find(|index| index.name == "kernel").map(|index| index.column)
        };
        assert_eq!(column(None), None);
        assert_eq!(column(Some(Generation::FirstFree)), Some(None));
        assert_eq!(column(Some(Generation::CacheCold)), Some(Some(Column::MmCid)));
        assert_eq!(column(Some(Generation::Owned)), Some(Some(Column::CacheLocal)));
    }
}
