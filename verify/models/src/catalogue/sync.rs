//! The structures of `percid-sync`.

use super::{Case, Size, System, case};
use crate::explore::DRAINS;
use crate::sync_grace::{self, FREED, SyncGrace};
use crate::sync_lock::{self, SHARED, SyncLock};

/// Returns the cases in which nothing may break.
pub(super) fn sound() -> Vec<Case> {
    [sound_locks(), sound_grace()].concat()
}

/// Returns the flaws that the structures do not survive.
pub(super) fn controls() -> Vec<Case> {
    [lock_controls(), grace_controls()].concat()
}

fn sound_locks() -> Vec<Case> {
    let new = SyncLock::new();
    cases! { SyncLock:
        "sync/lock", Quick, new, None, "2 readers that come twice, 1 writer";
        "sync/lock/two-writes", Standard, SyncLock { writes: 2, ..new }, None,
            "2 readers and a writer that come twice";
        "sync/lock/three-readers", Standard, SyncLock { readers: 3, rounds: 1, ..new }, None,
            "3 readers, 1 writer";
    }
}

fn lock_controls() -> Vec<Case> {
    use sync_lock::Flaw;
    let lock = |flaw| SyncLock { flaw: Some(flaw), ..SyncLock::new() };
    let no_mutex = SyncLock { rounds: 1, ..lock(Flaw::NoMutex) };
    cases! { SyncLock:
        "sync/lock/no-fence", Quick, lock(Flaw::NoFence), Some(SHARED),
            "a fence of the writer's own is not enough";
        "sync/lock/fence-first", Quick, lock(Flaw::FenceFirst), Some(SHARED),
            "nor is membarrier before the lock is closed";
        "sync/lock/test-first", Quick, lock(Flaw::TestFirst), Some(SHARED),
            "the test comes after the entry";
        "sync/lock/one-pass", Quick, lock(Flaw::OnePass), Some(SHARED),
            "one sum may miss an entry and count its exit";
        "sync/lock/wake-first", Quick, lock(Flaw::WakeFirst), Some(DRAINS),
            "a reader tests for a sleeping writer after its exit";
        "sync/lock/no-mutex", Quick, no_mutex, Some(DRAINS),
            "sums and sleeping exclude wake-ups";
    }
}

fn sound_grace() -> Vec<Case> {
    let new = SyncGrace::new();
    let two_readers = SyncGrace { readers: 2, rounds: 1, ..new };
    cases! { SyncGrace:
        "sync/grace", Quick, new, None, "1 reader that comes three times, 2 updates";
        "sync/grace/two-readers", Quick, two_readers, None, "2 readers, 2 updates";
    }
}

fn grace_controls() -> Vec<Case> {
    use sync_grace::Flaw;
    let new = SyncGrace::new();
    let grace = |flaw| SyncGrace { flaw: Some(flaw), ..new };
    let two_readers = SyncGrace { readers: 2, rounds: 2, updates: 1, ..grace(Flaw::OnePass) };
    cases! { SyncGrace:
        "sync/grace/no-fence", Quick, grace(Flaw::NoFence), Some(FREED),
            "a fence of the updater's own is not enough";
        "sync/grace/fence-first", Quick, grace(Flaw::FenceFirst), Some(FREED),
            "nor is membarrier before the new version is published";
        "sync/grace/one-parity", Quick, grace(Flaw::OneParity), Some(FREED),
            "a reader may have read an older phase";
        "sync/grace/load-first", Quick, grace(Flaw::LoadFirst), Some(FREED),
            "readers count themselves first";
        "sync/grace/one-pass", Quick, two_readers, Some(FREED),
            "one sum may miss an entry and count its exit";
    }
}
