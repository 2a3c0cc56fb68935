//! A recorder for the facade `metrics`, with percid's counters, gauges and histograms.

mod builder;
mod descriptions;
mod facade;
mod handle;
#[cfg(feature = "http-listener")]
mod http;
mod idle;
mod kinds;
mod render;
mod shapes;
mod store;
#[cfg(feature = "http-listener")]
mod timed_stream;

pub use builder::{BuildError, PrometheusBuilder};
pub use facade::PrometheusRecorder;
pub use handle::PrometheusHandle;
pub use shapes::Matcher;
