//! The memory of percid itself, for code that changes the access rights of memory, or observes
//! accesses.

use std::ops::Range;

use crate::{arena, id, pool};

/// Returns the first address in a range that belongs to percid's permanent memory: the arena,
/// slabs, and the table of IDs. percid stores its structures, or the objects of a pool, in that
/// memory and never unmaps it. Its static variables, and memory owned by the values of a
/// [`Local`](crate::Local), do not count. Async-signal-safe; some nanoseconds per slab.
///
/// ```
/// use percid::pool::RawPool;
/// use std::alloc::Layout;
///
/// let pool = RawPool::new(Layout::new::<u64>(), 64);
/// let object = pool.get().expect("memory").addr().get();
/// assert_eq!(percid::own_memory_in(&(object..object + 1)), Some(object));
/// let elsewhere = 0u8;
/// let place = (&raw const elsewhere).addr();
/// assert_eq!(percid::own_memory_in(&(place..place + 1)), None);
/// ```
pub fn own_memory_in(range: &Range<usize>) -> Option<usize> {
    let all = arena::reserved().chain(id::table_memory()).chain(pool::all_slabs());
    let overlap = |part: Range<usize>| {
        let place = part.start.max(range.start);
        (place < part.end.min(range.end)).then_some(place)
    };
    all.filter_map(overlap).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, Source};

    #[test]
    fn the_arena_and_the_table_are_percids() {
        for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
            Counter::with_source(source).expect("available").add(1);
        }
        let arena: Vec<_> = arena::reserved().collect();
        let of_id = crate::id::memory_of(0);
        for part in of_id.chain(id::table_memory()) {
            assert_eq!(own_memory_in(&part), Some(part.start));
            assert_eq!(own_memory_in(&(part.end - 1..usize::MAX)), Some(part.end - 1));
        }
        assert!(!arena.is_empty());
        let lowest = arena[0].start;
        assert_eq!(own_memory_in(&(lowest..lowest)), None, "nothing");
    }
}
