//! Strips: a cell for each position of a row, and in it a small count, such as 0 or 1.

use std::fmt::Write;

use crate::axis::Axis;
use crate::drawing::{Drawing, Numbers};
use crate::escape;
use crate::legend::{self, Sign};
use crate::number::percent;
use crate::rows::{Drawn, Line, Rows};
use crate::scale::{Ends, Scale};
use crate::table::{Align, Table};

/// Rows of cells that are empty, or have the colour of their count. For series that are 0 or 1, or
/// hardly more, over the same positions: a line would jump, and hide the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Strips {
    rows: Axis,
    positions: Axis,
    count: String,
    lines: Vec<StripEntry>,
}

#[derive(Clone, Debug, PartialEq)]
enum StripEntry {
    Group(String),
    Row(String, Vec<u32>),
}

/// Height of a row, and the space around its cells, in CSS pixels.
const HEIGHT: usize = 22;
const AROUND: usize = 3;
/// Counts that have their own colour, and that of each; the last one stands for all larger ones.
const COLOURS: [usize; 4] = [3, 5, 6, 7];

impl Strips {
    /// Creates strips without rows. `rows` is the axis of their names, `positions` that of the
    /// cells, which begin at 0, and `count` the name of the counts.
    pub fn new(rows: Axis, positions: Axis, count: impl Into<String>) -> Strips {
        Strips { rows, positions, count: count.into(), lines: Vec::new() }
    }

    /// Adds a heading of the following rows.
    pub fn group(&mut self, heading: impl Into<String>) -> &mut Strips {
        self.lines.push(StripEntry::Group(heading.into()));
        self
    }

    /// Adds a row with its counts, from position 0 on.
    pub fn row(
        &mut self,
        name: impl Into<String>,
        counts: impl IntoIterator<Item = u32>,
    ) -> &mut Strips {
        self.lines.push(StripEntry::Row(name.into(), counts.into_iter().collect()));
        self
    }

    pub(crate) fn drawing(&self) -> Drawing {
        let cells = self.counts().map(|(_, counts)| counts.len()).max().unwrap_or(0).max(1);
        let ends = [-0.5, cells as f64 - 0.5];
        let scale = Scale::new(&self.positions, ends.into_iter(), Ends::Exact).whole();
        let line = |entry: &StripEntry| match entry {
            StripEntry::Group(heading) => Line::Group(heading.clone()),
            StripEntry::Row(name, counts) => {
                let (svg, notes) = (self.svg(name, counts, &scale), Vec::new());
                Line::Row { name: name.clone(), cells: vec![Drawn { svg, notes }] }
            }
        };
        let rows = Rows {
            heading: self.rows.title(),
            panels: vec![String::new()],
            notes: Vec::new(),
            caption: self.positions.caption(),
            height: HEIGHT,
            lines: self.lines.iter().map(line).collect(),
            scale: scale.clone(),
        };
        Drawing {
            html: format!("{}{}", self.legend(), rows.html()),
            description: self.description(cells),
            remarks: Vec::new(),
            numbers: Numbers::Table(self.table()),
        }
    }

    fn counts(&self) -> impl Iterator<Item = (&str, &[u32])> {
        self.lines.iter().filter_map(|entry| match entry {
            StripEntry::Group(_) => None,
            StripEntry::Row(name, counts) => Some((name.as_str(), counts.as_slice())),
        })
    }

    /// Returns a rectangle for each run of cells with the same count.
    fn svg(&self, row: &str, counts: &[u32], scale: &Scale) -> String {
        let mut out = String::new();
        for Run { from, to, count } in runs(counts) {
            let edge = |position: usize| scale.place(position as f64 - 0.5);
            let title = format!("{row}\n{} {}: {count}", self.positions.title(), named(from, to));
            let class = match count {
                0 => "empty".to_owned(),
                _ => format!("mark o{}", colour(count)),
            };
            let _ = write!(
                out,
                "<rect class=\"cell-of {class}\" x=\"{}\" y=\"{AROUND}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                percent(edge(from)),
                percent(edge(to) - edge(from)),
                HEIGHT - 2 * AROUND,
                escape::html(&title)
            );
        }
        out
    }

    fn legend(&self) -> String {
        let most = self.counts().flat_map(|(_, counts)| counts).max().copied().unwrap_or(0);
        if most == 1 {
            return legend::all([(Sign::Part(colour(1)), self.count.as_str())]);
        }
        let own = COLOURS.len() as u32;
        let names = (1..=most.min(own)).map(|count| {
            let more = if count == own && most > own { " and more" } else { "" };
            (Sign::Part(colour(count)), format!("{}: {count}{more}", self.count))
        });
        let names: Vec<(Sign, String)> = names.collect();
        legend::all(names.iter().map(|(sign, name)| (*sign, name.as_str())))
    }

    fn description(&self, cells: usize) -> String {
        let rows: Vec<&str> = self.counts().map(|(name, _)| name).collect();
        format!(
            "Strips: {} over {cells} positions of {}, for each {}: {}. The numbers are below.",
            self.count,
            self.positions.title(),
            self.rows.title(),
            rows.join(", ")
        )
    }

    fn table(&self) -> Table {
        let columns = [self.rows.title(), self.positions.title(), self.count.clone()];
        let mut table =
            Table::new(columns.into_iter().zip([Align::Left, Align::Left, Align::Right]));
        let mut group = String::new();
        for entry in &self.lines {
            match entry {
                StripEntry::Group(heading) => group = format!("{heading}: "),
                StripEntry::Row(name, counts) => {
                    for Run { from, to, count } in runs(counts) {
                        let name = format!("{group}{name}");
                        table.row([name, named(from, to), count.to_string()]);
                    }
                }
            }
        }
        table
    }
}

/// Adjacent positions with the same count, the end excluded.
struct Run {
    from: usize,
    to: usize,
    count: u32,
}

fn runs(counts: &[u32]) -> impl Iterator<Item = Run> {
    let mut from = 0;
    counts.chunk_by(|one, other| one == other).map(move |run| {
        let start = from;
        from += run.len();
        Run { from: start, to: from, count: run[0] }
    })
}

fn named(from: usize, to: usize) -> String {
    if to == from + 1 { from.to_string() } else { format!("{from}-{}", to - 1) }
}

/// Returns the colour of a count above 0.
fn colour(count: u32) -> usize {
    COLOURS[(count as usize - 1).min(COLOURS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_equal_counts_are_one_mark_and_one_row() {
        let mut strips = Strips::new(Axis::new("run"), Axis::new("bit"), "threads");
        strips.group("g").row("a", [1, 1, 0, 2, 9]).row("b", [0; 5]);
        let drawing = strips.drawing();
        assert_eq!(drawing.html.matches("class=\"cell-of mark").count(), 3, "{}", drawing.html);
        assert!(drawing.html.contains("x=\"0%\" y=\"3\" width=\"40%\""), "{}", drawing.html);
        assert!(drawing.html.contains("threads: 4 and more"));
        let Numbers::Table(table) = drawing.numbers else { unreachable!("strips have a table") };
        assert_eq!(table.rows(), 4 + 1);
        assert!(table.html("").contains(">0-1</td>"), "{}", table.html(""));
    }
}
