//! Titles of operations in words, by the names in the documents.

/// Names and titles. "Its own" in a title means one per thread; "all share" means one for all
/// threads.
const TITLES: [(&str, &str); 59] = [
    ("plain_add", "plain addition"),
    ("atomic_private", "an atomic of its own"),
    ("atomic_shared", "an atomic that all share"),
    ("thread_local", "thread-local cell"),
    ("contatori", "contatori, add"),
    ("fast_counter", "fast-counter, add"),
    ("prometheus", "prometheus IntCounter, inc"),
    ("counter_add", "percid Counter, add"),
    ("thread_local_vec", "thread-local Vec"),
    ("mutex_vec", "Vec in a Mutex that all share"),
    ("array_queue", "ArrayQueue that all share"),
    ("stack_push_pop", "percid Stack, push and pop"),
    ("malloc_free", "malloc and free"),
    ("mimalloc", "mimalloc"),
    ("pool_get_put", "percid Pool, get and put"),
    ("std_mutex_private", "a Mutex of its own"),
    ("std_mutex_shared", "a Mutex that all share"),
    ("parking_lot_mutex_private", "parking_lot, its own"),
    ("parking_lot_mutex_shared", "parking_lot, shared by all"),
    ("local_with", "percid Local, with"),
    ("hdrhistogram", "hdrhistogram in a Mutex"),
    ("histogram_record", "percid Histogram, record"),
    ("array_queue_overwrite", "ArrayQueue that all share"),
    ("ring_append", "percid Ring, append"),
    ("ring_append_full", "percid Ring, full"),
    ("mask_fetch_or", "always an atomic or"),
    ("mask_test_set", "test, then set"),
    ("mask_mark", "percid ActiveMask, mark"),
    ("std_rwlock_read", "std RwLock, read"),
    ("parking_lot_rwlock_read", "parking_lot RwLock, read"),
    ("sharded_lock_read", "crossbeam ShardedLock, read"),
    ("rw_lock_read", "percid RwLock, read"),
    ("epoch_pin", "crossbeam-epoch, pin"),
    ("arc_swap_load", "ArcSwap, load"),
    ("domain_read", "percid Domain, read"),
    ("rcu_cell_load", "percid RcuCell, load"),
    ("std_arc", "std Arc, clone and drop"),
    ("arc", "percid Arc, clone and drop"),
    ("atomic_budget", "an atomic that all share"),
    ("budget_charge", "percid Budget, charge and release"),
    ("budget_load", "percid Budget, approximate"),
    ("read_buffer", "percid ReadBuffer, record"),
    ("system_mixed", "the system's, objects of its own"),
    ("system_shared", "the system's, shared objects"),
    ("mimalloc_mixed", "mimalloc, objects of its own"),
    ("mimalloc_shared", "mimalloc, shared objects"),
    ("per_cpu_mixed", "percid PerCpu, objects of its own"),
    ("per_cpu_shared", "percid PerCpu, shared objects"),
    ("per_cpu_mimalloc_mixed", "percid PerCpu of mimalloc"),
    ("forced", "sent from CPU to CPU"),
    ("pipe", "woken through a pipe"),
    ("none", "no counter"),
    ("kernel", "the kernel's IDs"),
    ("table", "percid's table"),
    ("table-strict", "percid's table, strict"),
    ("atomic", "no IDs, atomics only"),
    ("cpu", "CPU number"),
    ("thread", "thread number"),
    ("forced-remote", "another CPU's area"),
];

/// Returns the title of an operation, or its name if it has none.
pub(crate) fn title(name: &str) -> &str {
    TITLES.iter().find(|(known, _)| *known == name).map_or(name, |(_, title)| title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::loops;

    #[test]
    fn every_operation_has_a_title_without_underscores() {
        let operations = loops::operations(1).into_iter();
        let operations = operations.chain(loops::mask_operations());
        let operations = operations.chain(loops::sync_operations(1));
        let operations = operations.chain(loops::alloc_operations(1));
        for operation in operations.chain([loops::plain_add(1)]) {
            let title = title(operation.name);
            let known = title == "mimalloc";
            assert!(title != operation.name || known, "{title}");
            assert!(!title.replace("parking_lot", "").contains('_'), "{title}");
        }
    }

    #[test]
    fn no_name_has_two_titles() {
        let mut names = TITLES.map(|(name, _)| name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
