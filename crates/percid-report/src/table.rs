//! Tables of text.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::escape;

/// The edge of its column at which a cell is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left edge: for names.
    Left,
    /// The right edge: for numbers.
    Right,
}

/// The content of a row and a column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    is_outside: bool,
}

impl Cell {
    /// Creates a cell with a value outside its bounds. It is marked, not by its colour alone.
    pub fn outside(text: impl Into<String>) -> Self {
        Cell { text: text.into(), is_outside: true }
    }

    /// Returns the number of characters, with its mark if it has one.
    pub(crate) fn characters(&self) -> usize {
        self.text.chars().count() + if self.is_outside { 3 } else { 0 }
    }

    /// Returns `true` if it is a long text, which is broken into lines in any column.
    fn is_broken(&self) -> bool {
        self.characters() > BROKEN
    }

    pub(crate) fn html(&self) -> String {
        let text = escape::html(&self.text);
        // A separate element, so that screen readers announce it.
        if self.is_outside { format!("<mark title=\"out of bounds\">{text}</mark>") } else { text }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell { text: text.into(), is_outside: false }
    }
}

/// Column headings, and rows with one cell per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    title: Option<String>,
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
}

/// Width of a page, and of a character and the edges of a column, in CSS pixels. A wider table is
/// transposed: its rows become columns, as many of them as there is room for.
const PAGE: usize = 1180;
const CHARACTER: usize = 9;
const EDGES: usize = 20;
/// Width of a box on the narrowest phone, steps of widths, and the maximum width of a box, in rem.
const PHONE: usize = 21;
const STEP: usize = 6;
const WIDEST: usize = 74;
/// Size of a rem in CSS pixels, unless readers enlarge their text.
const REM: usize = 16;
/// Maximum length of a text that is not broken into lines, in characters.
const BROKEN: usize = 24;

impl Table {
    /// Creates a table without rows. Its first column names them.
    pub fn new<H: Into<String>>(columns: impl IntoIterator<Item = (H, Align)>) -> Self {
        let columns = columns.into_iter().map(|(heading, align)| (heading.into(), align)).collect();
        Table { title: None, columns, rows: Vec::new() }
    }

    /// Sets the title, if the section's heading does not describe the table.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Table { title: Some(title.into()), ..self }
    }

    /// Adds a row. Missing cells at its end stay empty. There must not be more cells than columns.
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

    /// Returns the table below its title, if it has one: a heading of this level.
    pub(crate) fn titled_html(&self, level: u8, label: &str) -> String {
        let title = self.title.as_ref();
        let heading = title.map(|title| format!("<h{level}>{}</h{level}>\n", escape::html(title)));
        let label = title.map_or(label, String::as_str);
        format!("{}{}", heading.unwrap_or_default(), self.html(label))
    }

    /// Returns the table folded up below its title.
    pub(crate) fn folded_html(&self, label: &str) -> String {
        let title = self.title.as_deref().unwrap_or("Table");
        let (rows, noun) = (self.rows.len(), if self.rows.len() == 1 { "row" } else { "rows" });
        format!(
            "<details class=\"table-of\"><summary>{} ({rows} {noun})</summary>\n{}</details>\n",
            escape::html(title),
            self.html(self.title.as_deref().unwrap_or(label))
        )
    }

    /// Returns the table in a box. In a box that is narrower than it, its rows are cards.
    pub(crate) fn html(&self, label: &str) -> String {
        if self.rows.is_empty() || self.width() <= PAGE {
            return self.upright_html(label);
        }
        let mut rest = &self.rows[..];
        let mut out = String::new();
        while !rest.is_empty() {
            let fits = |rows: &usize| self.turned(&rest[..*rows]).width() <= PAGE;
            let rows = (1..=rest.len()).rev().find(fits).unwrap_or(1);
            let (here, later) = rest.split_at(rows);
            out.push_str(&self.turned(here).upright_html(label));
            rest = later;
        }
        out
    }

    /// Returns the minimum width in CSS pixels: neither values nor words are broken.
    fn width(&self) -> usize {
        let longest_word = |text: &str| {
            let words = text.split([' ', '-', '/']).map(|word| word.chars().count() + 1);
            words.max().unwrap_or(0)
        };
        let column = |at: usize, (heading, align): &(String, Align)| {
            let cells = self.rows.iter().filter_map(|cells| cells.get(at));
            let cells = cells.map(|cell| match align {
                Align::Right if !cell.is_broken() => cell.characters(),
                _ => longest_word(&cell.text).max(cell.text.chars().count().min(BROKEN)),
            });
            cells.max().unwrap_or(0).max(longest_word(heading))
        };
        let columns = self.columns.iter().enumerate().map(|(at, heading)| column(at, heading));
        columns.map(|characters| characters * CHARACTER + EDGES).sum()
    }

    /// Returns the smallest width of a box in which it is shown as a table, in rem; `None` if that
    /// is any.
    fn narrowest(&self) -> Option<usize> {
        let width = self.width().div_ceil(REM);
        (width > PHONE).then(|| width.next_multiple_of(STEP).min(WIDEST))
    }

    /// Returns the number of columns that distinguish the rows, from the first on: 1 if none do.
    fn names(&self) -> usize {
        let text = self.columns.iter().take_while(|(_, align)| *align == Align::Left).count();
        let is_enough = |count: &usize| {
            let names = self.rows.iter().map(|cells| {
                cells.iter().take(*count).map(|cell| cell.text.as_str()).collect::<Vec<&str>>()
            });
            names.collect::<BTreeSet<_>>().len() == self.rows.len()
        };
        (1..=text).find(is_enough).unwrap_or(1)
    }

    /// Returns the table transposed, with these rows as columns.
    fn turned(&self, rows: &[Vec<Cell>]) -> Table {
        let Some(((first, _), further)) = self.columns.split_first() else { return self.clone() };
        let names = self.names();
        let name = |cells: &Vec<Cell>| {
            let names: Vec<&str> =
                cells.iter().take(names).map(|cell| cell.text.as_str()).collect();
            names.join(", ")
        };
        let headings = rows.iter().map(|cells| (name(cells), Align::Right));
        let mut table = Table::new([(first.clone(), Align::Left)].into_iter().chain(headings));
        for (at, (heading, _)) in further.iter().enumerate().skip(names - 1) {
            let cells = rows.iter().filter_map(|cells| cells.get(at + 1).cloned());
            table.row([Cell::from(heading.as_str())].into_iter().chain(cells));
        }
        table
    }

    fn upright_html(&self, label: &str) -> String {
        let cards = match self.narrowest() {
            Some(narrowest) => format!(" class=\"w{narrowest}\""),
            None => String::new(),
        };
        let mut out = format!(
            "<div class=\"table\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table{cards}>\n<thead><tr>",
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
        let has_cards = self.narrowest().is_some();
        for (at, (cell, (heading, align))) in cells.iter().zip(&self.columns).enumerate() {
            let (tag, attribute) = match at {
                0 => ("th", " scope=\"row\"".to_owned()),
                _ if has_cards => ("td", format!(" data-label=\"{}\"", escape::html(heading))),
                _ => ("td", String::new()),
            };
            let class = match align {
                Align::Right if cell.is_broken() => " class=\"right broken\"",
                align => class(*align),
            };
            let _ = write!(out, "<{tag}{attribute}{class}>{}</{tag}>", cell.html());
        }
        out.push_str("</tr>\n");
        out
    }
}

/// Returns the style of the cards of all tables in `body`.
pub(crate) fn cards(body: &str) -> String {
    let widths = (PHONE.next_multiple_of(STEP)..WIDEST).step_by(STEP).chain([WIDEST]);
    let used = widths.filter(|width| body.contains(&format!("<table class=\"w{width}\">")));
    let style = include_str!("cards.css");
    used.map(|width| style.replace("WIDTH", &width.to_string())).collect()
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

    #[test]
    fn rows_of_a_turned_table_are_distinguished() {
        let (left, right) = (Align::Left, Align::Right);
        let names = [("policy".to_owned(), left), ("parameters".to_owned(), left)];
        let columns = names.into_iter().chain((0..30).map(|at| (format!("column {at}"), right)));
        let mut table = Table::new(columns);
        for parameters in ["cpus=1", "cpus=2"] {
            table.row(["one", parameters].map(str::to_owned).into_iter().chain(["7".to_owned()]));
        }
        let html = table.html("");
        assert!(html.contains(">one, cpus=1</th>") && html.contains(">one, cpus=2</th>"), "{html}");
        assert!(!html.contains(">parameters<"), "{html}");
    }

    #[test]
    fn a_table_that_is_too_wide_is_turned() {
        let columns = (0..20).map(|at| (format!("column {at}"), Align::Right));
        let mut table = Table::new(columns);
        assert_eq!(table.html("").matches("<table").count(), 1, "without rows");
        for row in 0..12 {
            table.row((0..20).map(|column| format!("{row}/{column}")));
        }
        let html = table.html("");
        let tables = html.matches("<table").count();
        assert!(tables < 12, "several rows beside each other");
        assert_eq!(html.matches("<tr>").count(), tables * 20);
        assert!(html.contains(
            "<th scope=\"row\">column 1</th><td data-label=\"0/0\" class=\"right\">0/1</td>"
        ));
        assert!(
            cards(&html).contains("54rem") && !cards(&html).contains("60rem"),
            "{}",
            cards(&html)
        );
    }
}
