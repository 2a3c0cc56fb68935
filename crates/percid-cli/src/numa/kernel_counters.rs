//! The kernel's counters of its own NUMA balancing, for the whole machine (`/proc/vmstat`).

use std::fs;

use serde::Serialize;

/// The counters, in the kernel's order: their names and meanings.
const COUNTERS: [(&str, &str); 7] = [
    ("numa_pte_updates", "pages armed"),
    ("numa_huge_pte_updates", "huge pages armed"),
    ("numa_hint_faults", "accesses seen"),
    ("numa_hint_faults_local", "accesses seen that were local"),
    ("numa_pages_migrated", "pages moved by balancing"),
    ("pgmigrate_success", "pages moved for any reason"),
    ("pgmigrate_fail", "pages that could not be moved"),
];

/// Counts since the machine was started. `None` is a counter that this kernel does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct KernelCounters {
    pub(crate) numa_pte_updates: Option<u64>,
    pub(crate) numa_huge_pte_updates: Option<u64>,
    pub(crate) numa_hint_faults: Option<u64>,
    pub(crate) numa_hint_faults_local: Option<u64>,
    pub(crate) numa_pages_migrated: Option<u64>,
    pub(crate) pgmigrate_success: Option<u64>,
    pub(crate) pgmigrate_fail: Option<u64>,
}

impl KernelCounters {
    pub(crate) fn read() -> KernelCounters {
        KernelCounters::parse(&fs::read_to_string("/proc/vmstat").unwrap_or_default())
    }

    /// Parses the counters; a line is `numa_pte_updates 1234`.
    fn parse(vmstat: &str) -> KernelCounters {
        let count = |(name, _): (&str, &str)| {
            let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
            vmstat.lines().find_map(value)
        };
        KernelCounters::from_counts(COUNTERS.map(count))
    }

    fn from_counts(counts: [Option<u64>; 7]) -> KernelCounters {
        let [updates, huge, faults, local, migrated, success, fail] = counts;
        KernelCounters {
            numa_pte_updates: updates,
            numa_huge_pte_updates: huge,
            numa_hint_faults: faults,
            numa_hint_faults_local: local,
            numa_pages_migrated: migrated,
            pgmigrate_success: success,
            pgmigrate_fail: fail,
        }
    }

    fn counts(&self) -> [Option<u64>; 7] {
        [
            self.numa_pte_updates,
            self.numa_huge_pte_updates,
            self.numa_hint_faults,
            self.numa_hint_faults_local,
            self.numa_pages_migrated,
            self.pgmigrate_success,
            self.pgmigrate_fail,
        ]
    }

    /// Returns each counter with its name, its meaning, and its count.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&'static str, &'static str, Option<u64>)> {
        let named = COUNTERS.into_iter().zip(self.counts());
        named.map(|((name, meaning), count)| (name, meaning, count))
    }

    /// Returns the increase of each counter since `before`.
    pub(crate) fn since(&self, before: &KernelCounters) -> KernelCounters {
        let mut now = self.counts();
        for (count, before) in now.iter_mut().zip(before.counts()) {
            *count = count.zip(before).map(|(now, before)| now.saturating_sub(before));
        }
        KernelCounters::from_counts(now)
    }
}

/// Formats a count.
pub(crate) fn told(count: Option<u64>) -> String {
    count.map_or_else(|| "absent".to_owned(), |count| count.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VMSTAT: &str = "numa_other 5\nnuma_pte_updates 812\nnuma_hint_faults 553\n\
                          numa_hint_faults_local 263\npgmigrate_success 290\npgmigrate_fail x\n";

    #[test]
    fn what_the_kernel_does_not_count_is_absent() {
        let counters = KernelCounters::parse(VMSTAT);
        assert_eq!(counters.numa_pte_updates, Some(812));
        assert_eq!(
            (counters.numa_hint_faults, counters.numa_hint_faults_local),
            (Some(553), Some(263))
        );
        assert_eq!((counters.pgmigrate_success, counters.pgmigrate_fail), (Some(290), None));
        assert_eq!(counters.numa_pages_migrated, None);
        let names: Vec<&str> = counters.each().map(|(name, ..)| name).collect();
        assert_eq!(names[..3], ["numa_pte_updates", "numa_huge_pte_updates", "numa_hint_faults"]);
        assert_eq!(told(counters.pgmigrate_fail), "absent");
    }

    #[test]
    fn an_interval_is_the_difference_of_what_both_have() {
        let before = KernelCounters { numa_hint_faults: Some(500), ..KernelCounters::default() };
        let since = KernelCounters::parse(VMSTAT).since(&before);
        assert_eq!(
            since,
            KernelCounters { numa_hint_faults: Some(53), ..KernelCounters::default() }
        );
    }
}
