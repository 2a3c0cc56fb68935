//! Pages in a real browser: what is drawn, what can be read, what goes wrong.
//!
//! The browser is Chromium without a window. `PERCID_BROWSER=require` fails where it is missing;
//! otherwise tests say that nothing was checked. Pages are those of `percid-report`: charts are
//! `figure.chart`, and what is drawn in them is of the class `mark`.

mod chromium;
mod findings;

pub use chromium::{Browser, Frame, Scheme};
pub use findings::{Chart, Findings, Zoom};
