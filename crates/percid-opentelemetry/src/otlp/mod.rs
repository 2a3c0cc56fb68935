//! Export by OTLP over HTTP.

mod backoff;
mod builder;
mod clock;
mod encode;
mod exporter;
mod receiver;
#[cfg(feature = "otlp-tls")]
mod tls;

pub use builder::OtlpBuilder;
#[doc(hidden)]
pub use clock::Clock;
pub use encode::request;
pub use exporter::OtlpExporter;
