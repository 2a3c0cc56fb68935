//! Scheduler traces: recording from a running kernel, reading traces of other recorders, storage,
//! analysis, and replay under policies for concurrency IDs.
//!
//! A [`Trace`] is a list of [`event::Event`]s, which do not depend on the format of the file.
//!
//! Without the feature `files`, which is on by default, traces are neither read nor written, and
//! the crate builds fast.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod collector;
pub mod counters;
pub mod error;
pub mod event;
mod filtered;
pub mod formats;
pub mod gaps;
pub mod interner;
pub mod kernel_ids;
mod kernel_states;
#[cfg(feature = "files")]
mod late;
#[cfg(feature = "files")]
mod limits;
pub mod numa;
mod numa_events;
#[cfg(feature = "files")]
mod origin_pairs;
pub mod overview;
#[cfg(feature = "files")]
pub mod parquet;
#[cfg(feature = "files")]
pub mod perfetto;
pub mod quality;
pub mod questions;
#[cfg(feature = "files")]
pub mod read;
pub mod record;
pub mod replay;
pub mod scan_walk;
#[cfg(feature = "files")]
pub mod spool;
#[cfg(any(feature = "files", target_os = "linux"))]
mod sub_buffers;
pub mod subject;
pub mod task_state;
pub mod threads;
pub mod trace;
pub mod window;

pub use error::Error;
pub use trace::{Coverage, Origin, Trace};
