#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(rustdoc::broken_intra_doc_links)]

mod callsites;
mod chrome;
mod clock;
mod decode;
#[cfg(test)]
mod decode_tests;
mod destination;
mod dump;
mod encode;
mod format;
#[cfg(test)]
mod format_tests;
mod held;
mod json;
mod json_lines;
mod layer;
mod layout;
mod on_panic;
#[cfg(unix)]
mod on_signal;
mod processor;
mod recorder;
mod recording;
mod snapshot;
#[cfg(test)]
mod snapshot_tests;
mod text;
mod thread;

pub use format::Format;
pub use layer::FlightLayer;
pub use recorder::{Builder, FlightRecorder};
pub use snapshot::Dumped;
