//! The structures of `percid-sync`.

use super::{Case, Size, System, case};
use crate::explore::DRAINS;
use crate::sync_budget::{self, EXCEEDED, SyncBudget};
use crate::sync_count::{self, EARLY, FORGOTTEN, SyncCount};
use crate::sync_grace::{self, FREED, SyncGrace};
use crate::sync_lock::{self, SHARED, SyncLock};

/// Returns the cases in which nothing may break.
pub(super) fn sound() -> Vec<Case> {
    [sound_locks(), sound_grace(), sound_counts()].concat()
}

/// Returns the flaws that the structures do not survive.
pub(super) fn controls() -> Vec<Case> {
    [lock_controls(), grace_controls(), count_controls(), budget_controls()].concat()
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

fn sound_counts() -> Vec<Case> {
    let count = cases! { SyncCount:
        "sync/count", Quick, SyncCount::new(), None, "2 threads that take 2 references, 1 killer";
    };
    let new = SyncBudget::new();
    let budget = cases! { SyncBudget:
        "sync/budget", Quick, new, None, "2 threads that charge 3 times, a limit of 3";
        "sync/budget/three-threads", Quick, SyncBudget { threads: 3, charges: 2, ..new }, None,
            "3 threads that charge twice";
    };
    [count, budget].concat()
}

fn count_controls() -> Vec<Case> {
    use sync_count::Flaw;
    let count = |flaw| SyncCount { flaw: Some(flaw), ..SyncCount::new() };
    cases! { SyncCount:
        "sync/count/no-bias", Quick, count(Flaw::NoBias), Some(EARLY),
            "the shared number alone may be zero early";
        "sync/count/bias-first", Quick, count(Flaw::BiasFirst), Some(EARLY),
            "so it may before the words are collected";
        "sync/count/open-unlocked", Quick, count(Flaw::OpenUnlocked), Some(FORGOTTEN),
            "a word that is opened after its collection is forgotten";
        "sync/count/torn-close", Quick, count(Flaw::TornClose), Some(FORGOTTEN),
            "a change between reading and closing is lost";
        "sync/count/test-last", Quick, count(Flaw::TestLast), Some(EARLY),
            "the section that gives back is the last access";
    }
}

fn budget_controls() -> Vec<Case> {
    use sync_budget::Flaw;
    let budget = |flaw| SyncBudget { flaw: Some(flaw), ..SyncBudget::new() };
    cases! { SyncBudget:
        "sync/budget/undo", Quick, budget(Flaw::Undo), Some(EXCEEDED),
            "units may be given back to another ID, where others charge them";
        "sync/budget/give-first", Quick, budget(Flaw::GiveFirst), Some(EXCEEDED),
            "a batch is taken before it is given";
        "sync/budget/torn-collect", Quick, budget(Flaw::TornCollect), Some(EXCEEDED),
            "a credit is taken before its units are left for others";
    }
}
