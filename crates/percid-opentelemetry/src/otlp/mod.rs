//! Export by OTLP over HTTP.

mod backoff;
mod builder;
mod encode;
mod exporter;
mod receiver;
#[cfg(feature = "otlp-tls")]
mod tls;

pub use builder::OtlpBuilder;
pub use encode::request;
pub use exporter::OtlpExporter;
