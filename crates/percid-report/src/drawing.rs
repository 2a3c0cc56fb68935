//! The interface between plots and the page: marks, words and numbers.

use crate::escape;
use crate::table::Table;

/// A plot in the form that the page needs.
#[derive(Debug)]
pub(crate) struct Drawing {
    /// The drawing itself, as HTML with SVG in it.
    pub(crate) html: String,
    /// A description of the drawing, for readers who cannot see it.
    pub(crate) description: String,
    /// Notes on values that are not drawn, or not as expected.
    pub(crate) remarks: Vec<String>,
    pub(crate) numbers: Numbers,
}

/// The numbers of a plot.
#[derive(Debug)]
pub(crate) enum Numbers {
    Table(Table),
    /// Numbers that are too many for a table: a heading, and one line for each of `rows`.
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
