//! Dots: values of the same quantity from several sources, joined by a line.

use std::fmt::Write;

use crate::axis::Axis;
use crate::colours::{Colours, Look};
use crate::drawing::{Drawing, Numbers};
use crate::escape;
use crate::legend::{self, Sign};
use crate::number::{percent, significant};
use crate::rows::{Drawn, Line, Rows};
use crate::scale::{Ends, Scale};
use crate::table::{Align, Cell, Table};

/// Rows with a dot for each series, joined by a line from the smallest to the largest, on one scale
/// for all rows and panels. The positions are compared, so the axis may be logarithmic.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    rows: Axis,
    values: Axis,
    series: Vec<String>,
    has_reference: bool,
    panels: Vec<String>,
    notes: Vec<String>,
    lines: Vec<DotEntry>,
}

#[derive(Clone, Debug, PartialEq)]
enum DotEntry {
    Group(String),
    Row { name: String, dots: Vec<Dot> },
}

/// The content of a row in one panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dot {
    values: Vec<Option<f64>>,
    range: Option<(f64, f64)>,
    notes: Vec<Cell>,
}

/// Height of a row with all dots on one line, and of each line if every dot has its own, in CSS
/// pixels.
const HEIGHT: usize = 22;
const LANE: usize = 11;
/// Maximum number of series on one line: more would hide each other.
const ON_ONE_LINE: usize = 3;

impl Dot {
    /// Creates dots with one value for each series, in their order; missing values have no dot.
    pub fn new<V: Into<Option<f64>>>(values: impl IntoIterator<Item = V>) -> Dot {
        Dot { values: values.into_iter().map(Into::into).collect(), ..Dot::default() }
    }

    /// Sets a range from `low` to `high` in place of a single value of the first series.
    pub fn range(self, low: f64, high: f64) -> Dot {
        Dot { range: Some((low, high)), ..self }
    }

    /// Adds a value beside the dots, in the order of [`Dots::notes`].
    pub fn note(mut self, note: impl Into<Cell>) -> Dot {
        self.notes.push(note.into());
        self
    }
}

impl Dots {
    /// Creates a plot without rows. `rows` is the axis of their names, `values` that of the dots.
    pub fn new<S: Into<String>>(
        rows: Axis,
        values: Axis,
        series: impl IntoIterator<Item = S>,
    ) -> Dots {
        let series = series.into_iter().map(Into::into).collect();
        let (panels, notes, lines) = (vec![String::new()], Vec::new(), Vec::new());
        Dots { rows, values, series, has_reference: false, panels, notes, lines }
    }

    /// Makes the first series the reference of the others: it is drawn as a ring without a colour.
    #[must_use]
    pub fn reference(self) -> Dots {
        Dots { has_reference: true, ..self }
    }

    /// Sets small multiples: every row has the dots of each panel side by side, in the panel's
    /// colour. There must be at least one.
    #[must_use]
    pub fn panels<S: Into<String>>(self, panels: impl IntoIterator<Item = S>) -> Dots {
        Dots { panels: panels.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the headings of the values beside the dots.
    #[must_use]
    pub fn notes<S: Into<String>>(self, notes: impl IntoIterator<Item = S>) -> Dots {
        Dots { notes: notes.into_iter().map(Into::into).collect(), ..self }
    }

    /// Adds a heading of the following rows.
    pub fn group(&mut self, heading: impl Into<String>) -> &mut Dots {
        self.lines.push(DotEntry::Group(heading.into()));
        self
    }

    /// Adds a row with its content in each panel.
    pub fn row(
        &mut self,
        name: impl Into<String>,
        dots: impl IntoIterator<Item = Dot>,
    ) -> &mut Dots {
        let mut dots: Vec<Dot> = dots.into_iter().collect();
        debug_assert!(dots.len() <= self.panels.len(), "{dots:?}: more than panels");
        dots.resize(self.panels.len(), Dot::default());
        for dot in &mut dots {
            debug_assert!(dot.values.len() <= self.series.len(), "{dot:?}: more than series");
            dot.values.resize(self.series.len(), None);
        }
        self.lines.push(DotEntry::Row { name: name.into(), dots });
        self
    }

    pub(crate) fn drawing(&self, colours: &mut Colours) -> Drawing {
        let scale = Scale::new(&self.values, self.values().into_iter(), self.ends());
        let looks = self.looks(colours);
        let rows = Rows {
            heading: self.rows.title(),
            panels: self.panels.clone(),
            notes: self.notes.clone(),
            caption: self.values.caption(),
            height: self.height(),
            lines: self.lines.iter().map(|entry| self.line(entry, &scale, &looks)).collect(),
            scale,
        };
        Drawing {
            html: format!("{}{}", self.legend(&looks), rows.html()),
            description: self.description(),
            remarks: self.remarks(),
            numbers: Numbers::Table(self.table()),
        }
    }

    fn has_panels(&self) -> bool {
        self.panels.len() > 1
    }

    fn on_one_line(&self) -> bool {
        self.series.len() <= ON_ONE_LINE
    }

    fn height(&self) -> usize {
        if self.on_one_line() { HEIGHT } else { self.series.len() * LANE + LANE }
    }

    /// Returns the kind of the axis's ends. If the axis reaches near 0, the distance from 0 is
    /// meaningful.
    fn ends(&self) -> Ends {
        let shown = self.values();
        let low = shown.iter().copied().fold(f64::INFINITY, f64::min);
        let high = shown.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low >= 0.0 && low < high / 2.0 { Ends::Zero } else { Ends::Data }
    }

    fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.lines.iter().flat_map(|entry| match entry {
            DotEntry::Group(_) => &[][..],
            DotEntry::Row { dots, .. } => dots,
        })
    }

    fn values(&self) -> Vec<f64> {
        let of = |dot: &Dot| {
            let range = dot.range.into_iter().flat_map(|(low, high)| [low, high]);
            dot.values.iter().flatten().copied().chain(range).collect::<Vec<_>>()
        };
        self.dots().flat_map(of).filter(|value| self.values.can_show(*value)).collect()
    }

    /// Returns the looks of the panels, if there are several; otherwise those of the series. The
    /// reference has none.
    fn looks(&self, colours: &mut Colours) -> Vec<Look> {
        if self.has_panels() {
            return self.panels.iter().map(|name| colours.look(name)).collect();
        }
        let first = usize::from(self.has_reference);
        let mut looks = vec![Look::numbered(0); first];
        looks.extend(
            self.series[first.min(self.series.len())..].iter().map(|name| colours.look(name)),
        );
        looks
    }

    fn sign(&self, series: usize, looks: &[Look]) -> Sign {
        match (series, self.has_reference) {
            (0, true) => Sign::Ring,
            (at, has_reference) if self.has_panels() => {
                Sign::Shape(at - usize::from(has_reference))
            }
            (at, _) => Sign::Mark(looks[at]),
        }
    }

    fn legend(&self, looks: &[Look]) -> String {
        let entries = self.series.iter().enumerate();
        legend::html(entries.map(|(at, name)| (self.sign(at, looks), name.as_str())))
    }

    fn line(&self, entry: &DotEntry, scale: &Scale, looks: &[Look]) -> Line {
        match entry {
            DotEntry::Group(name) => Line::Group(name.clone()),
            DotEntry::Row { name, dots } => {
                let cell = |(panel, dot): (usize, &Dot)| Drawn {
                    svg: self.svg(name, panel, dot, scale, looks),
                    notes: dot.notes.clone(),
                };
                Line::Row { name: name.clone(), cells: dots.iter().enumerate().map(cell).collect() }
            }
        }
    }

    fn svg(&self, row: &str, panel: usize, dot: &Dot, scale: &Scale, looks: &[Look]) -> String {
        let mut out = self.between(dot, scale);
        let colour = if self.has_panels() { looks[panel].class() } else { String::new() };
        // The ring is drawn last: it surrounds the dots that are compared with it.
        for series in (0..self.series.len()).rev() {
            let Some(value) = dot.values[series].filter(|value| self.values.can_show(*value))
            else {
                continue;
            };
            let (mark, class) = match self.sign(series, looks) {
                Sign::Ring => ("ring".to_owned(), "ring".to_owned()),
                Sign::Shape(shape) => (format!("m{shape}"), colour.clone()),
                _ => (format!("m{}", looks[series].shape()), looks[series].class()),
            };
            let _ = write!(
                out,
                "<use href=\"#{mark}\" class=\"mark {class}\" x=\"{}\" y=\"{}\"><title>{}</title></use>",
                percent(scale.place(value)),
                percent(self.height_of(series)),
                escape::html(&self.hover(row, panel, series, value))
            );
        }
        out
    }

    /// Returns the line between the dots, and the range of the first series.
    fn between(&self, dot: &Dot, scale: &Scale) -> String {
        let mut out = String::new();
        let line = |class: &str, low: f64, high: f64| {
            let (low, high) = (percent(scale.place(low)), percent(scale.place(high)));
            format!("<line class=\"{class}\" x1=\"{low}\" x2=\"{high}\" y1=\"50%\" y2=\"50%\"/>")
        };
        let shown =
            dot.values.iter().flatten().copied().filter(|value| self.values.can_show(*value));
        let (low, high) = (shown.clone().reduce(f64::min), shown.reduce(f64::max));
        if let (Some(low), Some(high), true) = (low, high, self.on_one_line()) {
            out.push_str(&line("join", low, high));
        }
        if let Some((low, high)) = dot.range {
            out.push_str(&line("range mark", low, high));
        }
        out
    }

    /// Returns the position from above, in percent.
    fn height_of(&self, series: usize) -> f64 {
        if self.on_one_line() {
            50.0
        } else {
            100.0 * (series as f64 + 1.0) / (self.series.len() as f64 + 1.0)
        }
    }

    fn hover(&self, row: &str, panel: usize, series: usize, value: f64) -> String {
        let panel = &self.panels[panel];
        let panel = if panel.is_empty() { String::new() } else { format!(", {panel}") };
        let (name, unit) = (&self.series[series], self.values.suffix());
        format!("{row}{panel}\n{name}: {}{unit}", significant(value, 6))
    }

    fn description(&self) -> String {
        let rows = self.lines.iter().filter_map(|entry| match entry {
            DotEntry::Group(_) => None,
            DotEntry::Row { name, .. } => Some(name.as_str()),
        });
        let rows: Vec<&str> = rows.collect();
        let panels = if self.has_panels() {
            format!(", of {}", self.panels.join(", "))
        } else {
            String::new()
        };
        format!(
            "Dots: {} of {}{panels}, for each {}: {}. The numbers are below.",
            self.values.title(),
            self.series.join(", "),
            self.rows.title(),
            rows.join(", ")
        )
    }

    fn remarks(&self) -> Vec<String> {
        let values = self.dots().flat_map(|dot| dot.values.iter().flatten());
        match values.filter(|value| !self.values.can_show(**value)).count() {
            0 => Vec::new(),
            hidden => vec![format!(
                "Not drawn, because the axis cannot show them: {hidden} of the numbers below."
            )],
        }
    }

    /// Returns a table with one row for each row and panel.
    fn table(&self) -> Table {
        let mut columns = vec![(self.rows.title(), Align::Left)];
        if self.has_panels() {
            columns.push(("of".to_owned(), Align::Left));
        }
        let series = self.series.iter();
        columns
            .extend(series.map(|name| (format!("{name}, {}", self.values.title()), Align::Right)));
        columns.extend(self.extra_notes().map(|note| (note.clone(), Align::Right)));
        let mut table = Table::new(columns);
        let mut group = String::new();
        for entry in &self.lines {
            match entry {
                DotEntry::Group(heading) => group = format!("{heading}: "),
                DotEntry::Row { name, dots } => {
                    for (panel, dot) in self.panels.iter().zip(dots) {
                        table.row(self.table_row(format!("{group}{name}"), panel, dot));
                    }
                }
            }
        }
        table
    }

    /// Returns the notes that do not repeat a series.
    fn extra_notes(&self) -> impl Iterator<Item = &String> {
        self.notes.iter().filter(|note| !self.series.contains(note))
    }

    fn table_row(&self, name: String, panel: &str, dot: &Dot) -> Vec<Cell> {
        let mut cells = vec![Cell::from(name)];
        if self.has_panels() {
            cells.push(Cell::from(panel));
        }
        cells.extend(dot.values.iter().enumerate().map(|(series, value)| {
            match (value, series, dot.range) {
                (None, 0, Some((low, high))) => Cell::from(format!("{low} to {high}")),
                (value, ..) => Cell::from(value.map(|value| value.to_string()).unwrap_or_default()),
            }
        }));
        let notes = self.notes.iter().zip(&dot.notes);
        let extra = notes.filter(|(heading, _)| !self.series.contains(heading));
        cells.extend(extra.map(|(_, note)| note.clone()));
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_share_one_scale_and_the_numbers_are_in_the_table() {
        let time = Axis::new("time").unit("ns").logarithmic();
        let dots = Dots::new(Axis::new("machine"), time, ["published", "simulated"]).reference();
        let mut dots = dots.panels(["one", "two"]).notes(["error"]);
        dots.group("all").row(
            "small",
            [
                Dot::new([10.0, 100.0]).note("+900 %"),
                Dot::new([Some(100.0), None]).note(Cell::outside("x")),
            ],
        );
        let drawing = dots.drawing(&mut Colours::default());
        let places: Vec<&str> =
            drawing.html.split(" x=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        // Two marks of the legend, then those of each panel, the reference last.
        assert_eq!(places.len(), 2 + 3);
        assert_eq!(places[2], places[4], "100 ns in both panels");
        let Numbers::Table(table) = drawing.numbers else { unreachable!("dots have a table") };
        let html = table.html("");
        assert!(
            html.contains(">all: small<") && html.contains(">+900 %<") && html.contains("<mark"),
            "{html}"
        );
    }

    #[test]
    fn what_the_axis_cannot_show_is_counted() {
        let mut dots =
            Dots::new(Axis::new("name"), Axis::new("time").logarithmic(), ["one", "two"]);
        dots.row("a", [Dot::new([0.0, f64::NAN])]).row("b", [Dot::new([-1.0])]);
        let drawing = dots.drawing(&mut Colours::default());
        assert!(drawing.remarks[0].ends_with(": 3 of the numbers below."), "{:?}", drawing.remarks);
        assert!(!drawing.html.contains("class=\"mark"));
    }
}
