//! The tests of this crate, in one program: linked once.

mod allocation;
mod collected;
mod exact;
mod instruments;
#[cfg(feature = "otlp")]
mod otlp;
mod sdk;
#[cfg(feature = "otlp")]
mod server;
