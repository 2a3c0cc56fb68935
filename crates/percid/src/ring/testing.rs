//! The shard of one ID, for percid's own proofs.

use super::object::Ring;
use super::shard::Shard;
use crate::critical::ring::Append;
use crate::handle::State;

impl Ring {
    /// Appends to the shard of an ID, which belongs to the caller alone.
    pub(crate) fn append_to_id(&self, id: u32, record: &[u8]) -> bool {
        let request = Append::new(record, self.capacity);
        let appended = self.shard_of_id(id).zip(request);
        appended.and_then(|(shard, request)| self.append_locked(shard, &request)) == Some(Ok(()))
    }

    /// Returns the position of an ID's oldest record, and the position behind its newest.
    pub(crate) fn ends_of_id(&self, id: u32) -> Option<(u64, u64)> {
        self.shard_of_id(id).map(|shard| shard.ends())
    }

    fn shard_of_id(&self, id: u32) -> Option<Shard> {
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                Some(self.shard_at(block.of_id(id)))
            }
            _ => None,
        }
    }
}
