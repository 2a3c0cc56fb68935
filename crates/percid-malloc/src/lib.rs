#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod interface;
mod next;
mod settings;
mod spare;

pub use interface::*;

use next::Next;
use percid_alloc::PerCpu;

/// The caches of the process.
static CACHES: PerCpu<Next> = PerCpu::new(Next);

/// This library's own memory comes from the allocator behind.
#[global_allocator]
static OWN: Next = Next;
