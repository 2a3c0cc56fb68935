#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(rustdoc::broken_intra_doc_links)]

mod counter;
mod entries;
mod family;
mod gauge;
pub mod histogram;
mod page;
mod per_id_cache;
#[cfg(feature = "prometheus-client")]
mod prometheus_client;
#[cfg(feature = "recorder")]
mod recorder;
#[cfg(test)]
mod refusals;
pub mod registry;

pub use counter::{Counter, FloatCounter};
pub use family::{Cached, Family, NewMetric};
pub use gauge::Gauge;
pub use histogram::Histogram;
pub use page::Format;
#[cfg(feature = "recorder")]
pub use recorder::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
pub use registry::{Description, Labelled, Registry};
