//! Operations on the table that only the proofs use.

use percid_rules::assign::{self, Table as _};
#[cfg(all(test, not(percid_portable)))]
use percid_rules::space::Space;

use super::installed;
use super::layout::Table;
use crate::sys::{clock, membarrier, thread};

/// Takes the ID of `cpu` like a steal, and leaves it in transit.
pub(crate) fn steal(cpu: u32) -> Option<u32> {
    let table = installed()?;
    // Checked first without the lock, which a stealing thread would otherwise hold most of the
    // time.
    table.entry(cpu)?.id()?;
    let mut locked = table.try_lock()?;
    locked.space().held(cpu)?;
    if locked.ready_to_fence() { assign::steal(&mut locked, cpu) } else { None }
}

/// Evicts the ID of `cpu` like compaction, and keeps it from being reused at once.
pub(crate) fn evict(cpu: u32) -> Option<u32> {
    let table = installed()?;
    table.entry(cpu)?.id()?;
    let mut locked = table.try_lock()?;
    let id = locked.space().held(cpu)?;
    let evicted =
        locked.ready_to_fence() && assign::evict(&mut locked, |_, other| other == cpu) == 1;
    evicted.then(|| locked.space().reserve(id))?;
    Some(id)
}

/// Frees the ID of `cpu` and gives it another one, which no CPU holds.
#[cfg(test)]
pub(crate) fn give(cpu: u32, id: u32) -> bool {
    let Some(mut locked) = installed().and_then(Table::try_lock) else { return false };
    if let Some(held) = assign::steal(&mut locked, cpu) {
        locked.space().free(held);
    }
    locked.install(cpu, id, thread::token() as u64, clock::now_ms())
}

/// Fences one CPU, registering for that first.
pub(crate) fn fence(cpu: u32) -> bool {
    membarrier::register().and_then(|()| membarrier::fence_cpu(cpu)).is_ok()
}

/// Ends the transit of a stolen ID: frees it, or gives it to `cpu` if that has none. Returns
/// `false` if the lock was taken: try again.
pub(crate) fn put_back(id: u32, cpu: Option<u32>) -> bool {
    let Some(mut locked) = installed().and_then(Table::try_lock) else {
        return false;
    };
    match cpu.filter(|&cpu| locked.space().held(cpu).is_none()) {
        Some(cpu) => {
            locked.install(cpu, id, thread::token() as u64, clock::now_ms());
        }
        None => locked.space().free(id),
    }
    true
}

/// Returns the number of IDs held or in transit; `None` if the lock was taken.
pub(crate) fn ids_in_use() -> Option<usize> {
    Some(installed()?.try_lock()?.space().in_use())
}

/// Holds the lock while `body` runs; `None` if it was taken.
pub(crate) fn while_locked<T>(body: impl FnOnce() -> T) -> Option<T> {
    let _locked = installed()?.try_lock()?;
    Some(body())
}

/// Evicts the IDs of all CPUs, for tests. Returns `false` if another thread holds the lock.
#[cfg(all(test, not(percid_portable)))]
pub(crate) fn forget_all() -> bool {
    let all = |space: &Space<'_>, cpu| space.held(cpu).is_some();
    installed()
        .and_then(Table::try_lock)
        .map(|mut locked| assign::evict(&mut locked, all))
        .is_some()
}
