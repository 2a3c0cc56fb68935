#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(rustdoc::broken_intra_doc_links)]
#![forbid(unsafe_code)]

mod attribute_map;
mod attributes;
mod cell;
mod collected;
pub mod data;
mod error;
mod exponential;
mod found_before;
mod identity;
mod instrument;
mod meaning;
mod meter;
mod numeric;
mod observable;
#[cfg(feature = "otlp")]
#[cfg_attr(docsrs, doc(cfg(feature = "otlp")))]
pub mod otlp;
mod provider;
mod report;
mod resource;
mod series;

pub use error::Error;
pub use provider::{Builder, PercidMeterProvider};
pub use report::{Reading, report, report_family};
