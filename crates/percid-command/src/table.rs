//! One table that can be shown as text and in a report.

use std::fmt;

use percid_report as html;

use crate::text_table;

/// The mark, in text, of a value outside its bounds.
const MARK: &str = "!";

/// Column headings, and rows of names and values.
#[derive(Debug)]
pub struct Table {
    columns: Vec<String>,
    /// Number of columns that contain names; the others contain values.
    names: usize,
    /// Number of the last columns that contain texts.
    texts: usize,
    rows: Vec<Vec<Cell>>,
}

/// The content of a row in one column.
#[derive(Debug)]
pub struct Cell {
    text: String,
    is_outside: bool,
}

impl Cell {
    /// Creates a cell with a value and a flag for values outside their bounds.
    pub fn judged(text: impl Into<String>, is_outside: bool) -> Cell {
        Cell { text: text.into(), is_outside }
    }

    /// Returns the text, with a mark if the value is outside its bounds.
    pub fn marked(&self) -> String {
        let mark = if self.is_outside { MARK } else { "" };
        format!("{}{mark}", self.text)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::judged(text, false)
    }
}

impl Table {
    /// Creates a table without rows whose first `names` columns contain names.
    pub fn new<C: Into<String>>(columns: impl IntoIterator<Item = C>, names: usize) -> Table {
        let columns = columns.into_iter().map(Into::into).collect();
        Table { columns, names, texts: 0, rows: Vec::new() }
    }

    /// Sets that the last `texts` columns contain texts, which a report may break into lines.
    #[must_use]
    pub fn ending_in_texts(self, texts: usize) -> Table {
        Table { texts, ..self }
    }

    fn is_figure(&self, at: usize) -> bool {
        (self.names..self.columns.len() - self.texts).contains(&at)
    }

    /// Adds a row with one cell per column.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Adds the table to a report, under the heading of its section.
    pub fn show_on(&self, page: &mut html::Page) {
        page.table(self.html());
    }

    /// Adds the table to a report, under its own title.
    pub fn show_as(&self, title: &str, page: &mut html::Page) {
        page.table(self.html().titled(title));
    }

    fn html(&self) -> html::Table {
        let align = |at| if self.is_figure(at) { html::Align::Right } else { html::Align::Left };
        let columns = self.columns.iter().enumerate().map(|(at, name)| (name.as_str(), align(at)));
        let mut table = html::Table::new(columns);
        for cells in &self.rows {
            table.row(cells.iter().map(|cell| match cell.is_outside {
                true => html::Cell::outside(&cell.text),
                false => html::Cell::from(&cell.text),
            }));
        }
        table
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let align = |at| match self.is_figure(at) {
            true => text_table::Align::Right,
            false => text_table::Align::Left,
        };
        let columns = self.columns.iter().enumerate().map(|(at, name)| (name.as_str(), align(at)));
        let mut table = text_table::TextTable::new(columns);
        for cells in &self.rows {
            table.row(cells.iter().map(Cell::marked).collect());
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_bounds_is_marked_in_text_and_on_pages() {
        let mut table = Table::new(["figure", "error"], 1);
        table.row([Cell::from("one"), Cell::judged("+1 %", false)]);
        table.row([Cell::from("two"), Cell::judged("+99 %", true)]);
        assert_eq!(table.to_string(), "  figure   error\n  one       +1 %\n  two     +99 %!\n");
        let mut page = html::Page::new("", "");
        table.show_on(&mut page);
        let mut marked = html::Table::new([("", html::Align::Right)]);
        marked.row([html::Cell::outside("+99 %")]);
        let mut other = html::Page::new("", "");
        other.table(marked);
        let cell = |html: &str| {
            let row = html.lines().find(|line| line.contains("+99")).expect("the cell");
            row[row.rfind("<t").expect("a cell")..].to_owned()
        };
        assert!(cell(&other.render()).len() > "<td>+99 %</td>".len(), "the page marks it");
        let ours = page.render();
        assert!(ours.contains("+99 %") && ours.contains("+1 %"));
    }
}
