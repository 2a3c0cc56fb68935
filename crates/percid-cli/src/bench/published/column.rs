//! The columns of the published table.

use percid_sim::published::{self, Intermittent};

/// A column of the published table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    PerCpu,
    MmCid,
    CacheLocal,
}

impl Column {
    /// Returns its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Column::PerCpu => "per_cpu_ns",
            Column::MmCid => "mm_cid_ns",
            Column::CacheLocal => "cache_local_ns",
        }
    }

    /// Returns the value of a part of the published machine; `None` if that delay was not
    /// published.
    pub(super) fn of(self, part: &str, delay_ms: u64) -> Option<f64> {
        let rows = published::intermittent();
        let row: &Intermittent =
            rows.iter().find(|row| row.config == part && row.delay_ms == delay_ms)?;
        Some(match self {
            Column::PerCpu => row.per_cpu_ns,
            Column::MmCid => row.mm_cid_ns,
            Column::CacheLocal => row.cache_local_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_and_delay_of_the_published_table_is_found() {
        let cells = published::intermittent().into_iter().map(|row| {
            let of = |column: Column| column.of(&row.config, row.delay_ms);
            assert_eq!(of(Column::PerCpu), Some(row.per_cpu_ns));
            assert_eq!(of(Column::MmCid), Some(row.mm_cid_ns));
            assert_eq!(of(Column::CacheLocal), Some(row.cache_local_ns));
            row.config
        });
        assert_eq!(cells.count(), 8);
        assert_eq!(Column::PerCpu.of("8-core/1-L3", 11), None);
    }
}
