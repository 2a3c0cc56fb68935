//! The handle that reads a recorder's metrics.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use super::render;
use super::store::Store;
use crate::page::Format;

/// Reads the metrics of a recorder. Clones read the same.
///
/// Reading a page does not stop updates. A thread with a new label set waits while a part of the
/// label sets is copied or removed. The size of that part does not grow with their number. Pages
/// and upkeep wait for each other.
///
/// A page is not a snapshot at one instant. Each value is read at its own time while the page is
/// made. A metric that exists during the whole time is on the page once. A metric that is added or
/// removed during that time is on it once or not at all.
#[derive(Clone)]
pub struct PrometheusHandle {
    pub(super) store: Arc<Store>,
}

impl PrometheusHandle {
    pub(super) fn new(store: Arc<Store>) -> PrometheusHandle {
        PrometheusHandle { store }
    }

    /// Returns the page in Prometheus' text format.
    pub fn render(&self) -> String {
        let mut page = Vec::new();
        // A write to a vector does not fail.
        let _ = self.render_to_write(&mut page);
        String::from_utf8_lossy(&page).into_owned()
    }

    /// Writes the page in Prometheus' text format while it is made.
    ///
    /// # Errors
    ///
    /// The error of the writer.
    pub fn render_to_write(&self, out: &mut impl Write) -> io::Result<()> {
        self.render_as(Format::Text, out)
    }

    /// Writes the page in a format while it is made.
    ///
    /// # Errors
    ///
    /// The error of the writer.
    pub fn render_as(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        self.store.upkeep();
        render::render(&self.store, format, out)
    }

    /// Removes the metrics that have been idle for too long, as reading the page does.
    pub fn run_upkeep(&self) {
        self.store.upkeep();
    }
}

impl fmt::Debug for PrometheusHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrometheusHandle").finish_non_exhaustive()
    }
}
