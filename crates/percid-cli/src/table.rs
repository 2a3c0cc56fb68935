//! Plain text tables: columns padded with spaces, readable in a terminal, a mail and a log alike.

use std::fmt;

/// Which edge of its column a cell touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A heading and rows of as many cells.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<H: Into<String>>(columns: impl IntoIterator<Item = (H, Align)>) -> Self {
        let columns = columns.into_iter().map(|(heading, align)| (heading.into(), align)).collect();
        Table { columns, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    fn widths(&self) -> Vec<usize> {
        let width = |text: &str| text.chars().count();
        (0..self.columns.len())
            .map(|at| {
                let cells = self.rows.iter().map(|row| width(&row[at]));
                cells.fold(width(&self.columns[at].0), usize::max)
            })
            .collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let padded = cells.zip(&self.columns).zip(&widths).map(
                |((cell, (_, align)), &width)| match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                },
            );
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        writeln!(f, "  {}", line(&mut self.columns.iter().map(|(heading, _)| heading.as_str())))?;
        for row in &self.rows {
            writeln!(f, "  {}", line(&mut row.iter().map(String::as_str)))?;
        }
        Ok(())
    }
}
