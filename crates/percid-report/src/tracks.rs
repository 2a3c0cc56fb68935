//! Tracks: the content of rows over a long time, as an overview that can be zoomed into.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::axis::Axis;
use crate::colours::{COLOURS, Colours, Look};
use crate::drawing::{Drawing, Numbers};
use crate::escape;
use crate::legend::{self, Sign};
use crate::patterns;
use crate::plane::Plane;
use crate::scale::{Ends, Scale, Tick};
use crate::table::Table;

/// Rows, such as CPUs, and on them over time their content: in the colour of its kind, such as a
/// process, and with the pattern of its number, such as a concurrency ID.
///
/// The picture is an overview of all the time. All tracks of a page are zoomed into together, by
/// the page's own script: in any of them with the wheel, by dragging, with buttons and keys.
/// Without scripts the overview remains. The resolution is limited by the data passed in, and by
/// [`Tracks::bytes`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tracks {
    row: String,
    number: Option<String>,
    rows: Vec<String>,
    kinds: Vec<String>,
    things: Vec<Thing>,
    spans: Vec<TrackSpan>,
    from: u64,
    to: u64,
    table: Table,
    finest: u64,
    bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Thing {
    name: String,
    kind: usize,
}

/// A time for which a row contained a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackSpan {
    /// The index of the row.
    pub row: usize,
    /// The thing, by the number that [`Tracks::thing`] returned.
    pub thing: usize,
    /// The number that has a pattern, if things have any.
    pub number: u32,
    /// The start, in nanoseconds.
    pub from: u64,
    /// The end, in nanoseconds.
    pub to: u64,
}

/// Height of each row, and the minimum and maximum height of the drawing area, in CSS pixels.
const ROW: usize = 22;
const LOWEST: usize = 60;
const HIGHEST: usize = 500;
/// Height of a row's name, in CSS pixels.
const NAME: usize = 18;
/// Number of parts of the time in the drawing, a constant of `tracks.js` too.
const PARTS: u64 = 10_000;
/// Approximate number of parts of the time for zooming in.
const FINEST: u64 = 1 << 20;
/// Number of columns of the overview, and the minimum if there are many rows.
const COLUMNS: u64 = 1000;
const MIN_COLUMNS: u64 = 30;
/// Nanoseconds in a millisecond, the unit of the axis.
const MS: f64 = 1e6;

impl Tracks {
    /// Creates empty tracks of a time in nanoseconds. `row` is the name of the rows (`CPU`). The
    /// table has the numbers of the picture.
    pub fn new(row: impl Into<String>, from: u64, to: u64, table: Table) -> Tracks {
        Tracks {
            row: row.into(),
            number: None,
            rows: Vec::new(),
            kinds: Vec::new(),
            things: Vec::new(),
            spans: Vec::new(),
            from,
            to: to.max(from + 1),
            table,
            finest: 1,
            bytes: 200_000,
        }
    }

    /// Sets the name of the spans' numbers, such as `ID`: they have patterns.
    #[must_use]
    pub fn numbered(self, number: impl Into<String>) -> Tracks {
        Tracks { number: Some(number.into()), ..self }
    }

    /// Sets the width in nanoseconds of the columns in which the spans were gathered. Each column
    /// shows the thing that lasted longest in it. The page reports the width if it is visible.
    #[must_use]
    pub fn gathered(self, column_ns: u64) -> Tracks {
        Tracks { finest: column_ns, ..self }
    }

    /// Sets the maximum size of the tracks on the page, in bytes: a third of it is for the
    /// overview, the rest for zooming in. Spans that do not fit are left out when zooming, and the
    /// page reports that.
    #[must_use]
    pub fn bytes(self, bytes: usize) -> Tracks {
        Tracks { bytes, ..self }
    }

    /// Adds a row below the previous ones.
    pub fn row(&mut self, name: impl Into<String>) -> &mut Tracks {
        self.rows.push(name.into());
        self
    }

    /// Adds a kind, which has a colour; the legend has its name. Kinds beyond the sixth have the
    /// colour of the sixth, so the sixth should stand for all others.
    pub fn kind(&mut self, name: impl Into<String>) -> usize {
        self.kinds.push(name.into());
        self.kinds.len() - 1
    }

    /// Adds a thing of a kind, whose name appears when the pointer is on it.
    pub fn thing(&mut self, name: impl Into<String>, kind: usize) -> usize {
        self.things.push(Thing { name: name.into(), kind });
        self.things.len() - 1
    }

    /// Adds a span. Spans of one row must not overlap, and must be added in the order of time.
    pub fn span(&mut self, span: TrackSpan) -> &mut Tracks {
        debug_assert!(span.row < self.rows.len() && span.thing < self.things.len(), "{span:?}");
        self.spans.push(span);
        self
    }

    pub(crate) fn drawing(&self, colours: &mut Colours) -> Drawing {
        let (from, to) = (self.from as f64 / MS, self.to as f64 / MS);
        let axis = Axis::new("time").unit("ms");
        let scale = Scale::new(&axis, [from, to].into_iter(), Ends::Exact);
        let height = (self.rows.len() * ROW).clamp(LOWEST, HIGHEST);
        let (columns, paths) = self.overview();
        let (data, left_out) = self.data(self.bytes * 2 / 3);
        let plane = Plane {
            x_caption: axis.caption(),
            y_caption: self.row.clone(),
            height,
            y_ticks: self.names(height),
            content: self.svg(&paths, &data, colours),
            x: scale,
        };
        Drawing {
            html: format!("{}{}", self.legend(), plane.html()),
            description: self.description(),
            remarks: self.remarks(columns, left_out),
            numbers: Numbers::Table(self.table.clone()),
        }
    }

    fn svg(&self, paths: &str, data: &str, colours: &mut Colours) -> String {
        let things: Vec<String> = self
            .things
            .iter()
            .map(|thing| {
                format!("{} {}", thing.kind.min(COLOURS - 1), thing.name.replace('\n', " "))
            })
            .collect();
        let things = things.join("\n");
        // Tracks of the same things need their names once on a page.
        let things = match colours.are_new(&things) {
            true => format!(" data-things=\"{}\"", escape::html(&things)),
            false => String::new(),
        };
        let rows = self.rows.len().max(1);
        format!(
            "<svg class=\"tracks\" viewBox=\"0 -0.5 {PARTS} {rows}\" preserveAspectRatio=\"none\" \
             data-from=\"{}\" data-to=\"{}\" data-step=\"{}\" data-row=\"{}\" data-rows=\"{}\" data-number=\"{}\"{things} \
             data-spans=\"{data}\">{paths}</svg>",
            self.from,
            self.to,
            self.step(),
            escape::html(&self.row),
            escape::html(&self.rows.join("\n")),
            escape::html(self.number.as_deref().unwrap_or_default()),
        )
    }

    /// Returns the number of columns that there is room for, and the paths of the overview in them.
    fn overview(&self) -> (u64, String) {
        let mut columns = COLUMNS;
        loop {
            let paths = self.paths(columns);
            if paths.len() <= self.bytes / 3 || columns <= MIN_COLUMNS {
                return (columns, paths);
            }
            columns /= 2;
        }
    }

    /// Returns a path for each thing and number.
    fn paths(&self, columns: u64) -> String {
        let mut paths: BTreeMap<(usize, u32), String> = BTreeMap::new();
        let part = |column: u64| column * PARTS / columns;
        for (row, column, until, thing, number) in self.columns(columns) {
            let (from, to) = (part(column), part(until));
            let path = paths.entry((thing, number)).or_default();
            let _ = write!(path, "M{from} {row}h{}", to - from);
        }
        let mut out = String::new();
        for ((thing, number), path) in paths {
            let Thing { name, kind } = &self.things[thing];
            let kind = (*kind).min(COLOURS - 1);
            let numbered = match &self.number {
                Some(what) => format!("\n{what} {number}"),
                None => String::new(),
            };
            let _ = write!(
                out,
                "<path class=\"mark c{kind}\" stroke=\"{}\" d=\"{path}\"><title>{}</title></path>",
                patterns::stroke(kind, number),
                escape::html(&format!("{name}{numbered}"))
            );
        }
        out
    }

    /// Returns the thing that lasted longest in each column of each row: the row, the first column
    /// and the end column, the thing and its number.
    fn columns(&self, columns: u64) -> Vec<(usize, u64, u64, usize, u32)> {
        let length = u128::from(self.to - self.from);
        let column_of = |time: u64| {
            let since = u128::from(time.clamp(self.from, self.to) - self.from);
            (since * u128::from(columns)) as f64 / length as f64
        };
        let mut cells: BTreeMap<(usize, u64), (f64, usize, u32)> = BTreeMap::new();
        for span in &self.spans {
            let (from, to) = (column_of(span.from), column_of(span.to));
            let last = (to.ceil() as u64).clamp(1, columns);
            for column in (from.floor() as u64).min(columns - 1)..last {
                let length = to.min(column as f64 + 1.0) - from.max(column as f64);
                let cell = cells.entry((span.row, column)).or_insert((0.0, 0, 0));
                if length > cell.0 {
                    *cell = (length, span.thing, span.number);
                }
            }
        }
        let mut joined: Vec<(usize, u64, u64, usize, u32)> = Vec::new();
        for ((row, column), (_, thing, number)) in cells {
            match joined.last_mut() {
                Some(last) if (last.0, last.2, last.3, last.4) == (row, column, thing, number) => {
                    last.2 += 1;
                }
                _ => joined.push((row, column, column + 1, thing, number)),
            }
        }
        joined
    }

    /// Returns the time unit for zooming in, in nanoseconds.
    fn step(&self) -> u64 {
        ((self.to - self.from) / FINEST).max(1)
    }

    /// Returns all spans for `tracks.js`, row by row, and the number of spans that there was no
    /// room for. A span is its distance from the previous one, its length, its thing and its
    /// number.
    fn data(&self, room: usize) -> (String, usize) {
        let mut out = String::new();
        let (mut left_out, step) = (0, self.step());
        for row in 0..self.rows.len() {
            let mut at = 0;
            for span in self.spans.iter().filter(|span| span.row == row) {
                let place = |time: u64| (time.clamp(self.from, self.to) - self.from) / step;
                let from = place(span.from).max(at);
                let to = place(span.to).max(from + 1);
                if out.len() + 24 > room * (row + 1) / self.rows.len() {
                    left_out += 1;
                    continue;
                }
                number(&mut out, from - at);
                number(&mut out, to - from);
                number(&mut out, span.thing as u64);
                if self.number.is_some() {
                    number(&mut out, span.number.into());
                }
                at = to;
            }
            out.push(' ');
        }
        (out, left_out)
    }

    /// Returns the names of as many rows as there is room for.
    fn names(&self, height: usize) -> Vec<Tick> {
        let rows = self.rows.len().max(1);
        let step = (NAME * rows).div_ceil(height).next_power_of_two();
        let tick = |(at, name): (usize, &String)| Tick {
            place: 100.0 - 100.0 * (at as f64 + 0.5) / rows as f64,
            text: name.clone(),
        };
        self.rows.iter().enumerate().step_by(step).map(tick).collect()
    }

    fn legend(&self) -> String {
        let kinds = self.kinds.iter().take(COLOURS).enumerate();
        let kinds = kinds.map(|(at, name)| (Sign::Patch(Look::numbered(at)), name.as_str()));
        let patterns: Vec<(Sign, String)> = match &self.number {
            Some(what) => (0..patterns::PATTERNS)
                .map(|at| (Sign::Pattern(at), patterns::name(what, at)))
                .collect(),
            None => Vec::new(),
        };
        let patterns = patterns.iter().map(|(sign, name)| (*sign, name.as_str()));
        legend::all(kinds.chain(patterns))
    }

    fn description(&self) -> String {
        format!(
            "Tracks: what was on {} rows, one per {}, from {} to {} ms: {}. The numbers are below.",
            self.rows.len(),
            self.row,
            self.from as f64 / MS,
            self.to as f64 / MS,
            self.kinds.join(", ")
        )
    }

    fn remarks(&self, columns: u64, left_out: usize) -> Vec<String> {
        let column = (self.to - self.from) as f64 / columns as f64 / MS;
        let mut remarks = vec![format!(
            "Each of {columns} columns, {} ms wide, shows what was there longest.",
            crate::number::significant(column, 3)
        )];
        if self.finest > self.step() {
            let finest = crate::number::significant(self.finest as f64 / MS, 3);
            remarks.push(format!("When zoomed in, columns are {finest} ms wide at least."));
        }
        if let Some(number) = &self.number {
            remarks.push(format!(
                "{number} numbers that differ by {} have the same pattern.",
                patterns::PATTERNS
            ));
        }
        if left_out > 0 {
            remarks.push(format!("For {left_out} spans there was no room on the page: they are missing where one zooms in."));
        }
        remarks
    }
}

/// Letters of numbers: five bits each, the lowest first; those from the 33rd on mean that more
/// follow.
const LETTERS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

fn number(out: &mut String, mut number: u64) {
    loop {
        let (low, rest) = (number & 31, number >> 5);
        let more = if rest > 0 { 32 } else { 0 };
        out.push(LETTERS[(low | more) as usize] as char);
        if rest == 0 {
            return;
        }
        number = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Align;

    fn tracks(turns: u64) -> Tracks {
        let mut tracks =
            Tracks::new("CPU", 0, 1000 * turns, Table::new([("process", Align::Left)]));
        tracks = tracks.numbered("ID");
        tracks.row("0").row("1");
        let kind = tracks.kind("a");
        for name in ["one", "two"] {
            tracks.thing(name, kind);
        }
        for row in 0..2 {
            for turn in 0..turns {
                let (from, to) = (1000 * turn, 1000 * turn + 900);
                tracks.span(TrackSpan { row, thing: (turn % 2) as usize, number: 3, from, to });
            }
        }
        tracks
    }

    #[test]
    fn a_picture_is_bounded_however_many_spans_there_are() {
        for turns in [10, 100_000] {
            let drawing = tracks(turns).bytes(60_000).drawing(&mut Colours::default());
            assert!(drawing.html.len() < 75_000, "{turns}: {}", drawing.html.len());
            let says = drawing.remarks.iter().any(|remark| remark.contains("no room"));
            assert_eq!(says, turns > 10, "{:?}", drawing.remarks);
        }
    }

    #[test]
    fn an_overview_shows_what_was_longest_and_names_it() {
        let html = tracks(10).drawing(&mut Colours::default()).html;
        assert!(
            html.contains("<title>one\nID 3</title>") && html.contains("<title>two\nID 3</title>")
        );
        // Ten run intervals on 1000 columns, 0.9 of each.
        assert!(html.contains("d=\"M0 0h900M2000 0h900"), "{html}");
    }

    #[test]
    fn things_stand_once_on_a_page() {
        let mut colours = Colours::default();
        let first = tracks(10).drawing(&mut colours).html;
        let second = tracks(10).drawing(&mut colours).html;
        assert!(first.contains("data-things") && !second.contains("data-things"));
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let written = |value| {
            let mut out = String::new();
            number(&mut out, value);
            out
        };
        assert_eq!([0, 31, 32, 1023].map(written), ["0", "V", "W1", "_V"]);
    }
}
