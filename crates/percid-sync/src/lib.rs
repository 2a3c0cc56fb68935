#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(rustdoc::broken_intra_doc_links)]

mod budget;
mod detector;
mod fence;
mod guess;
mod rcu;
mod read_buffer;
mod readers;
mod ref_count;
mod rw_lock;
#[cfg(all(
    test,
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, percid_elsewhere))
))]
mod stress;

pub use budget::{Budget, Exceeded};
pub use rcu::{Domain, Full, NotFenced, RcuCell, ReadGuard};
pub use read_buffer::{ReadBuffer, Record};
pub use ref_count::{Arc, KillError, Owner, RefCount};
pub use rw_lock::{RawRwLock, RwLock, RwLockReadGuard, RwLockWriteGuard, WriteError};
