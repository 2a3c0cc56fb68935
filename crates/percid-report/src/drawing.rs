//! What every plot hands to the page: marks, axes, words and numbers.

use plotly::{Layout, Trace};

use crate::escape;
use crate::table::Table;

/// A plot as the page needs it.
pub(crate) struct Drawing {
    pub(crate) traces: Vec<Box<dyn Trace>>,
    pub(crate) layout: Layout,
    /// Of the drawing area and all around it, in CSS pixels.
    pub(crate) height: usize,
    /// What is drawn, for readers who cannot see it.
    pub(crate) description: String,
    /// What is not drawn, or not as expected.
    pub(crate) remarks: Vec<String>,
    pub(crate) numbers: Numbers,
}

/// The numbers behind a plot.
#[derive(Debug)]
pub(crate) enum Numbers {
    Table(Table),
    /// For those too many for a table: a heading, and one line for each of `rows`.
    Text {
        text: String,
        rows: usize,
    },
}

impl Numbers {
    pub(crate) fn rows(&self) -> usize {
        match self {
            Numbers::Table(table) => table.rows(),
            Numbers::Text { rows, .. } => *rows,
        }
    }

    pub(crate) fn html(&self, title: &str) -> String {
        let label = format!("Numbers of {title}");
        match self {
            Numbers::Table(table) => table.html(&label),
            Numbers::Text { text, .. } => format!(
                "<pre tabindex=\"0\" aria-label=\"{}\">{}</pre>\n",
                escape::html(&label),
                escape::html(text)
            ),
        }
    }
}
