#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg), doc(auto_cfg(hide(percid_elsewhere, percid_portable))))]
#![deny(rustdoc::broken_intra_doc_links)]

#[macro_use]
mod architectures;

mod arena;
mod backoff;
mod baseline;
mod buckets;
#[cfg(all(
    feature = "capi",
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere)
))]
#[doc(hidden)]
pub mod capi;
mod cell;
#[cfg(all(
    test,
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, percid_elsewhere, percid_portable))
))]
mod contract;
mod counter;
mod critical;
pub mod fence;
mod float_counter;
mod float_word;
mod handle;
pub mod histogram;
pub mod id;
mod local;
pub mod machine;
mod mask;
mod membership;
#[cfg(all(
    test,
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, percid_elsewhere))
))]
mod membership_tests;
#[cfg(all(
    test,
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, percid_elsewhere))
))]
mod object_sizes;
mod own_memory;
pub mod per_id;
pub mod pool;
mod push_list;
mod retry;
pub mod ring;
mod seizure;
#[cfg(test)]
mod seizure_tests;
mod shared_slot;
mod stack;
mod sys;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod texts;
mod update;
mod visit_lock;
#[cfg(test)]
mod visit_lock_tests;

pub use buckets::Buckets;
pub use counter::Counter;
pub use float_counter::FloatCounter;
pub use histogram::Histogram;
pub use id::{IdLimit, Source, SourceSelection, compact_ids, init, set_id_limit};
pub use local::Local;
pub use mask::ActiveMask;
#[doc(hidden)]
pub use own_memory::own_memory_in;
pub use per_id::PerId;
pub use pool::Pool;
pub use ring::{Overflow, Ring};
pub use stack::Stack;
