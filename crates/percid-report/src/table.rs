//! Tables of text.

use std::fmt::Write;

use crate::escape;

/// Which edge of its column a cell touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left one: for names.
    Left,
    /// The right one: for numbers.
    Right,
}

/// What stands in one place of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    is_outside: bool,
}

impl Cell {
    /// A figure that is not within its bounds. It is marked, not by its colour alone.
    pub fn outside(text: impl Into<String>) -> Self {
        Cell { text: text.into(), is_outside: true }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell { text: text.into(), is_outside: false }
    }
}

/// Column headings and rows of as many cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows. Its first column names them.
    pub fn new<H: Into<String>>(columns: impl IntoIterator<Item = (H, Align)>) -> Self {
        let columns = columns.into_iter().map(|(heading, align)| (heading.into(), align)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row. Cells that are missing at its end stay empty; there must not be more than
    /// columns.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Self {
        let mut cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        debug_assert!(cells.len() <= self.columns.len(), "{cells:?}: more than columns");
        cells.resize(self.columns.len(), Cell::from(""));
        self.rows.push(cells);
        self
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// In a box of its own, which scrolls sideways where the page is too narrow.
    pub(crate) fn html(&self, label: &str) -> String {
        let mut out = format!(
            "<div class=\"table\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead><tr>",
            escape::html(label)
        );
        for (heading, align) in &self.columns {
            let _ =
                write!(out, "<th scope=\"col\"{}>{}</th>", class(*align), escape::html(heading));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for cells in &self.rows {
            out.push_str(&self.row_html(cells));
        }
        out.push_str("</tbody></table></div>\n");
        out
    }

    fn row_html(&self, cells: &[Cell]) -> String {
        let mut out = String::from("<tr>");
        for (at, (cell, (_, align))) in cells.iter().zip(&self.columns).enumerate() {
            let (tag, scope) = if at == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
            let text = escape::html(&cell.text);
            // An element of its own, so that a program that reads the page aloud says it.
            let text = if cell.is_outside {
                format!("<mark title=\"out of bounds\">{text}</mark>")
            } else {
                text
            };
            let _ = write!(out, "<{tag}{scope}{}>{text}</{tag}>", class(*align));
        }
        out.push_str("</tr>\n");
        out
    }
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"right\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_under_their_headings_and_are_escaped() {
        let mut table = Table::new([("a<b", Align::Left), ("ns", Align::Right)]);
        table.row([Cell::from("R&D"), Cell::outside("7")]).row(["x"]);
        let html = table.html("\"times\"");
        assert!(html.contains("aria-label=\"&quot;times&quot;\""));
        assert!(
            html.contains("<th scope=\"col\">a&lt;b</th><th scope=\"col\" class=\"right\">ns</th>")
        );
        assert!(html.contains(concat!(
            "<tr><th scope=\"row\">R&amp;D</th>",
            "<td class=\"right\"><mark title=\"out of bounds\">7</mark></td></tr>\n",
            "<tr><th scope=\"row\">x</th><td class=\"right\"></td></tr>\n",
        )));
    }
}
