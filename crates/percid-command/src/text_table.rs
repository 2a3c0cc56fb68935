//! Text tables: columns padded with spaces, readable in a terminal, a mail and a log.

use std::fmt;

/// The space between two columns.
const GAP: &str = "  ";

/// The edge of its column at which a cell is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left edge, for names.
    Left,
    /// The right edge, for values.
    Right,
}

/// A heading and rows with one cell per column. Adjacent columns can have a common name, and rows a
/// heading.
#[derive(Debug)]
pub struct TextTable {
    columns: Vec<(String, Align)>,
    groups: Vec<Group>,
    lines: Vec<Line>,
}

/// Columns with a common name: all from `first` to the next group's.
#[derive(Debug)]
struct Group {
    name: String,
    first: usize,
}

#[derive(Debug)]
enum Line {
    Heading(String),
    Row(Vec<String>),
}

impl TextTable {
    /// Creates a table with these columns.
    pub fn new<H: Into<String>>(columns: impl IntoIterator<Item = (H, Align)>) -> Self {
        let columns = columns.into_iter().map(|(heading, align)| (heading.into(), align)).collect();
        TextTable { columns, groups: Vec::new(), lines: Vec::new() }
    }

    /// Adds columns with a common name, which is printed in a line above theirs.
    pub fn group<H: Into<String>>(
        &mut self,
        name: String,
        columns: impl IntoIterator<Item = (H, Align)>,
    ) {
        self.groups.push(Group { name, first: self.columns.len() });
        self.columns.extend(columns.into_iter().map(|(heading, align)| (heading.into(), align)));
    }

    /// Adds a line above the following rows, which are indented under it.
    pub fn heading(&mut self, heading: String) {
        self.lines.push(Line::Heading(heading));
    }

    /// Adds a row with one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.lines.push(Line::Row(cells));
    }

    fn rows(&self) -> impl Iterator<Item = &Vec<String>> {
        self.lines.iter().filter_map(|line| match line {
            Line::Row(cells) => Some(cells),
            Line::Heading(_) => None,
        })
    }

    fn widths(&self) -> Vec<usize> {
        let width = |text: &str| text.chars().count();
        let column = |at: usize| {
            let cells = self.rows().map(|cells| width(&cells[at]));
            cells.fold(width(&self.columns[at].0), usize::max)
        };
        let mut widths: Vec<usize> = (0..self.columns.len()).map(column).collect();
        self.make_room_for_groups(&mut widths);
        widths
    }

    /// Widens the first column of each group whose name is longer than its columns together.
    fn make_room_for_groups(&self, widths: &mut [usize]) {
        let ends = self.groups.iter().skip(1).map(|group| group.first).chain([widths.len()]);
        for (group, end) in self.groups.iter().zip(ends.collect::<Vec<_>>()) {
            let Some(columns) = widths.get_mut(group.first..end) else { continue };
            let room = columns.iter().sum::<usize>() + GAP.len() * columns.len().saturating_sub(1);
            if let Some(first) = columns.first_mut() {
                *first += group.name.chars().count().saturating_sub(room);
            }
        }
    }

    /// Returns the indentation of rows, which is larger if there are headings above them.
    fn indent(&self) -> &'static str {
        let has_headings = self.lines.iter().any(|line| matches!(line, Line::Heading(_)));
        if has_headings { "    " } else { "  " }
    }

    fn padded<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let padded =
            cells.zip(&self.columns).zip(widths).map(|((cell, (_, align)), &width)| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
        let line = padded.collect::<Vec<_>>().join(GAP);
        format!("{}{}", self.indent(), line.trim_end())
    }

    /// Returns the names of the groups, each right-aligned with its columns.
    fn group_names(&self, widths: &[usize]) -> String {
        let ends = self.groups.iter().skip(1).map(|group| group.first).chain([widths.len()]);
        let line = self.groups.iter().zip(ends).fold(String::new(), |line, (group, end)| {
            let width: usize = widths[..end].iter().map(|width| width + GAP.len()).sum();
            format!("{line}{:>1$}", group.name, width - GAP.len() - line.chars().count())
        });
        format!("{}{line}", self.indent())
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        if !self.groups.is_empty() {
            writeln!(f, "{}", self.group_names(&widths))?;
        }
        let headings = self.columns.iter().map(|(heading, _)| heading.as_str());
        writeln!(f, "{}", self.padded(headings, &widths))?;
        for line in &self.lines {
            match line {
                Line::Heading(heading) => writeln!(f, "  {heading}")?,
                Line::Row(cells) => {
                    writeln!(f, "{}", self.padded(cells.iter().map(String::as_str), &widths))?
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_above_the_last_column_of_their_group() {
        let mut table = TextTable::new([("op", Align::Left)]);
        for team in ["1 thread", "2 pinned"] {
            table.group(team.to_owned(), [("minimum", Align::Right), ("x", Align::Right)]);
        }
        table.heading("counters".to_owned());
        table.row(["add", "0.4", "1.00", "0.5", "1.25"].map(str::to_owned).into());
        assert_eq!(
            table.to_string(),
            concat!(
                "              1 thread       2 pinned\n",
                "    op   minimum     x  minimum     x\n",
                "  counters\n",
                "    add      0.4  1.00      0.5  1.25\n",
            )
        );
    }

    #[test]
    fn long_names_do_not_run_into_each_other() {
        let mut table = TextTable::new([("node", Align::Right)]);
        table.group("memory".to_owned(), [("a", Align::Right)]);
        table.group("distance to".to_owned(), ["0", "1"].map(|name| (name, Align::Right)));
        table.row(["7", "1", "10", "20"].map(str::to_owned).into());
        assert_eq!(
            table.to_string(),
            concat!(
                "        memory  distance to\n",
                "  node       a        0   1\n",
                "     7       1       10  20\n",
            )
        );
    }
}
