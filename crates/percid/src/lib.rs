#![doc = include_str!("../README.md")]
#![deny(rustdoc::broken_intra_doc_links)]

#[cfg(not(target_os = "linux"))]
compile_error!("percid uses Linux system calls: there is no other system it works on");
#[cfg(not(target_pointer_width = "64"))]
compile_error!("percid reserves address space for every CPU: it needs a 64-bit target");

mod arena;
mod counter;
mod critical;
pub mod id;
pub mod machine;
mod shared_slot;
mod sys;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;

pub use counter::Counter;
pub use id::{Choice, Source, compact, init};
