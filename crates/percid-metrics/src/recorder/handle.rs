//! Reading what was recorded.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use super::render;
use super::store::Store;
use crate::page::Format;

/// Reads the metrics of a recorder. Clones read the same.
///
/// Nothing stops meanwhile: who records goes on, and who comes with a new label set waits while a part of
/// the others is copied or forgotten, which does not grow with their number. Pages and upkeep wait for each
/// other.
///
/// A page is not what there was at one instant. Each value is read at a moment of its own while the page is
/// made. A metric that is there throughout is on it once; one that comes or is forgotten meanwhile, once
/// or not at all.
#[derive(Clone)]
pub struct PrometheusHandle {
    pub(super) store: Arc<Store>,
}

impl PrometheusHandle {
    pub(super) fn new(store: Arc<Store>) -> PrometheusHandle {
        PrometheusHandle { store }
    }

    /// The page in Prometheus' text format.
    pub fn render(&self) -> String {
        let mut page = Vec::new();
        // A vector takes everything.
        let _ = self.render_to_write(&mut page);
        String::from_utf8_lossy(&page).into_owned()
    }

    /// Writes the page in Prometheus' text format, as it is made.
    ///
    /// # Errors
    ///
    /// What the writer says.
    pub fn render_to_write(&self, out: &mut impl Write) -> io::Result<()> {
        self.render_as(Format::Text, out)
    }

    /// Writes the page in a format, as it is made.
    ///
    /// # Errors
    ///
    /// What the writer says.
    pub fn render_as(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        self.store.upkeep();
        render::render(&self.store, format, out)
    }

    /// Forgets what has been idle for too long, as reading the page does.
    pub fn run_upkeep(&self) {
        self.store.upkeep();
    }
}

impl fmt::Debug for PrometheusHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrometheusHandle").finish_non_exhaustive()
    }
}
