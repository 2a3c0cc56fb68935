//! Pages in a real browser: the drawing, the readable contents, the errors.
//!
//! The browser is Chromium without a window. `PERCID_BROWSER=require` fails if it is missing;
//! otherwise tests report that nothing was checked. Pages are those of `percid-report`: charts are
//! `figure.chart`, and their drawn elements are of the class `mark`.

mod chromium;
mod findings;
mod posted;

pub use chromium::{Browser, Frame, Scheme};
pub use findings::{Chart, Findings, Zoom};
