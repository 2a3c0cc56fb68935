//! Stubs of percid's table and of the kernel's IDs for unsupported platforms. Neither can be
//! prepared, so no object uses them and no thread has an ID.

use std::ops::Range;

use crate::id::source_error::SourceError;
use crate::id::table_stats::TableStats;
use crate::sys::registration::Registration;

/// Returns that threads are not registered for restartable sequences.
pub(crate) fn find() -> Registration {
    Registration::Unsupported
}

pub(crate) fn prepare(_: Registration) -> Result<(), SourceError> {
    Err(SourceError::UnsupportedPlatform)
}

pub(crate) fn current() -> Option<u32> {
    None
}

pub(crate) fn current_admitted() -> Option<u32> {
    None
}

pub(crate) fn ensure_id() -> bool {
    false
}

pub(crate) fn id_count() -> u32 {
    0
}

pub(crate) fn compact_ids() -> u32 {
    0
}

pub(crate) fn table_stats() -> Option<TableStats> {
    None
}

pub(crate) fn memory() -> impl Iterator<Item = Range<usize>> {
    std::iter::empty()
}

/// The hooks of the proofs; they have no effect.
#[cfg(feature = "testing")]
pub(crate) mod hooks {
    pub(crate) fn steal(_cpu: u32) -> Option<u32> {
        None
    }

    pub(crate) fn evict(_cpu: u32) -> Option<u32> {
        None
    }

    pub(crate) fn fence(_cpu: u32) -> bool {
        false
    }

    pub(crate) fn put_back(_id: u32, _cpu: Option<u32>) -> bool {
        true
    }

    pub(crate) fn ids_in_use() -> Option<usize> {
        None
    }

    pub(crate) fn while_locked<T>(_: impl FnOnce() -> T) -> Option<T> {
        None
    }
}
