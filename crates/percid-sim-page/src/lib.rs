//! The simulator in a browser, as one HTML file: choose a machine, a workload and policies, and run
//! them in a worker of the browser.
//!
//! Compiled to WebAssembly the crate is the module that the page runs; elsewhere [`html`] makes the
//! page of a module. The results are those of `percid sim run --json`, byte for byte.

mod catalogue;
#[cfg(target_family = "wasm")]
mod exports;
mod html;
mod session;

pub use html::{NotAModule, html};
pub use session::Session;
