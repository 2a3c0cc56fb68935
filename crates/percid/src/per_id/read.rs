//! Readings of all values: those that are in use are held only if that is necessary.

use super::PerId;
use super::shard::{Hold, Shard, shard_at};
use super::visit::{BATCH, hold};
use crate::handle::State;
use crate::id::{Source, fence};

/// A reader of values.
pub(crate) trait ReadValue<T> {
    /// Reads a value, if it is at rest meanwhile. Returns `true` if it was.
    fn at_rest(&mut self, value: &T) -> bool;

    /// Reads a value that the calling thread holds, or that cannot be held.
    fn any(&mut self, value: &T);
}

impl<T: Send + Sync, F> PerId<T, F> {
    /// Reads every value once. Those that are not at rest are held meanwhile: threads work on others
    /// then, which are read last.
    pub(crate) fn read_all(&self, reader: &mut impl ReadValue<T>) {
        if let State::Claimed(block, Some(source)) = self.handle.state() {
            // SAFETY: the block of this object, whose memory is open for all IDs that were used.
            let shards = (0..source.id_count()).map(|id| unsafe { shard_at(block.of_id(id)) });
            self.read_shards(shards, source != Source::Atomic, reader);
        }
        self.read_shards(self.extras(), false, reader);
    }

    fn read_shards<'p>(
        &'p self,
        mut shards: impl Iterator<Item = &'p Shard<T>>,
        sections: bool,
        reader: &mut impl ReadValue<T>,
    ) where
        T: 'p,
    {
        loop {
            let mut in_use = shards
                .by_ref()
                .filter(|shard| shard.value().is_some_and(|value| !reader.at_rest(value)));
            let Some(first) = in_use.next() else { return };
            let mut busy = [None; BATCH];
            busy[0] = Some(first);
            busy[1..].fill_with(|| in_use.next());
            self.read_held(busy, sections, reader);
        }
    }

    fn read_held<'p>(
        &'p self,
        busy: [Option<&'p Shard<T>>; BATCH],
        sections: bool,
        reader: &mut impl ReadValue<T>,
    ) {
        let visiting = self.lock_visits();
        let holds: [Option<Hold<'p, T>>; BATCH] = busy.map(|shard| {
            shard.filter(|_| visiting.is_some()).and_then(|shard| hold(shard, &mut 0))
        });
        if sections && holds.iter().any(Option::is_some) {
            // Without the fence a section that found the shard ready may still commit.
            _ = fence::all();
        }
        for value in busy.into_iter().flatten().filter_map(Shard::value) {
            reader.any(value);
        }
    }
}
