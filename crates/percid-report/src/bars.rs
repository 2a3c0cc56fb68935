//! Bars: named values, side by side or as shares of a whole.

use std::fmt::Write;

use crate::axis::Axis;
use crate::colours::{Colours, Look};
use crate::dots::{Dot, Dots};
use crate::drawing::{Drawing, Numbers};
use crate::escape;
use crate::legend::{self, Sign};
use crate::number::{percent, significant};
use crate::rows::{Drawn, Line, Rows};
use crate::scale::{Ends, Scale};
use crate::table::{Align, Cell, Table};

/// Horizontal bars: one row per category, in it one bar per series.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    arrangement: Arrangement,
    categories: Axis,
    values: Axis,
    series: Vec<String>,
    rows: Vec<BarEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrangement {
    Grouped,
    Stacked,
}

#[derive(Clone, Debug, PartialEq)]
enum BarEntry {
    Group(String),
    Row(String, Vec<Option<f64>>),
}

/// Thickness of a bar with its distance to the next, for grouped and for stacked bars, and the
/// space around those of a row, in CSS pixels.
const BAR: usize = 17;
const STACK: usize = 22;
const AROUND: usize = 6;
/// Maximum number of series with values beside the bars: more values would leave no room for the
/// bars.
const FIGURES: usize = 3;
/// Minimum size of a part of a whole that contains its number, in percent of the axis.
const NUMBERED: f64 = 12.0;
/// Number of colours of parts.
const PARTS: usize = 8;

impl Bars {
    /// Creates bars that are one below the other in each category, each with its number. On a
    /// logarithmic axis the length of a bar has no meaning: dots replace the bars there.
    pub fn grouped<S: Into<String>>(
        categories: Axis,
        values: Axis,
        series: impl IntoIterator<Item = S>,
    ) -> Self {
        Bars::new(Arrangement::Grouped, categories, values, series)
    }

    /// Creates bars that are one behind the other in each category, as the parts of a whole. For
    /// linear axes.
    pub fn stacked<S: Into<String>>(
        categories: Axis,
        values: Axis,
        series: impl IntoIterator<Item = S>,
    ) -> Self {
        debug_assert!(!values.is_logarithmic(), "parts of a whole have no logarithms");
        Bars::new(Arrangement::Stacked, categories, values, series)
    }

    fn new<S: Into<String>>(
        arrangement: Arrangement,
        categories: Axis,
        values: Axis,
        series: impl IntoIterator<Item = S>,
    ) -> Self {
        let series = series.into_iter().map(Into::into).collect();
        Bars { arrangement, categories, values, series, rows: Vec::new() }
    }

    /// Adds a heading of the following categories.
    pub fn group(&mut self, heading: impl Into<String>) -> &mut Self {
        self.rows.push(BarEntry::Group(heading.into()));
        self
    }

    /// Adds a row with one value per series, in their order. `None`, and missing values at the end,
    /// have no bar. There must not be more values than series.
    pub fn category<V: Into<Option<f64>>>(
        &mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> &mut Self {
        let mut values: Vec<Option<f64>> = values.into_iter().map(Into::into).collect();
        debug_assert!(values.len() <= self.series.len(), "{values:?}: more than series");
        values.resize(self.series.len(), None);
        self.rows.push(BarEntry::Row(name.into(), values));
        self
    }

    pub(crate) fn drawing(&self, colours: &mut Colours) -> Drawing {
        if self.values.is_logarithmic() {
            return self.dots().drawing(colours);
        }
        let looks: Vec<Look> = match self.arrangement {
            Arrangement::Grouped => self.series.iter().map(|name| colours.look(name)).collect(),
            Arrangement::Stacked => Vec::new(),
        };
        let scale = Scale::new(&self.values, self.ends().into_iter(), self.kind_of_ends());
        let rows = Rows {
            heading: self.categories.title(),
            panels: vec![String::new()],
            notes: self.notes(),
            caption: self.values.caption(),
            height: self.height(),
            lines: self.rows.iter().map(|entry| self.line(entry, &scale, &looks)).collect(),
            scale,
        };
        Drawing {
            html: format!("{}{}", self.legend(&looks), rows.html()),
            description: self.description(),
            remarks: self.remarks(),
            numbers: Numbers::Table(self.table()),
        }
    }

    /// Returns the same values as dots.
    fn dots(&self) -> Dots {
        let notes = self.notes();
        let mut dots = Dots::new(self.categories.clone(), self.values.clone(), self.series.clone());
        let with_notes = !notes.is_empty();
        dots = dots.notes(notes);
        for entry in &self.rows {
            match entry {
                BarEntry::Group(heading) => dots.group(heading),
                BarEntry::Row(name, values) => {
                    let mut dot = Dot::new(values.iter().copied());
                    for note in figures(values).into_iter().filter(|_| with_notes) {
                        dot = dot.note(note);
                    }
                    dots.row(name, [dot])
                }
            };
        }
        dots
    }

    fn categories(&self) -> impl Iterator<Item = (&str, &[Option<f64>])> {
        self.rows.iter().filter_map(|entry| match entry {
            BarEntry::Group(_) => None,
            BarEntry::Row(name, values) => Some((name.as_str(), values.as_slice())),
        })
    }

    /// Returns the names of the values beside grouped bars, if there is room.
    fn notes(&self) -> Vec<String> {
        match self.arrangement {
            Arrangement::Grouped if self.series.len() <= FIGURES => self.series.clone(),
            _ => Vec::new(),
        }
    }

    fn height(&self) -> usize {
        match self.arrangement {
            Arrangement::Grouped => self.series.len().max(1) * BAR + AROUND,
            Arrangement::Stacked => STACK + AROUND,
        }
    }

    /// Returns the kind of the axis's ends: shares of a whole fill the axis.
    fn kind_of_ends(&self) -> Ends {
        match self.arrangement {
            Arrangement::Grouped => Ends::Zero,
            Arrangement::Stacked => Ends::Exact,
        }
    }

    /// Returns the ends of the bars.
    fn ends(&self) -> Vec<f64> {
        let of = |values: &[Option<f64>]| {
            let shown =
                values.iter().flatten().copied().filter(|value| self.values.can_show(*value));
            match self.arrangement {
                Arrangement::Grouped => shown.collect::<Vec<f64>>(),
                // Remove the rounding error, which would extend the axis.
                Arrangement::Stacked => {
                    let whole: f64 = shown.sum();
                    vec![0.0, (whole * 1e9).round() / 1e9]
                }
            }
        };
        self.categories().flat_map(|(_, values)| of(values)).collect()
    }

    fn legend(&self, looks: &[Look]) -> String {
        let sign = |at: usize| match self.arrangement {
            Arrangement::Grouped => Sign::Patch(looks[at]),
            Arrangement::Stacked => Sign::Part(self.part(at)),
        };
        legend::html(self.series.iter().enumerate().map(|(at, name)| (sign(at), name.as_str())))
    }

    /// Returns the colour of a part. The colours of few parts differ as much as possible.
    fn part(&self, at: usize) -> usize {
        let parts = self.series.len().clamp(2, PARTS);
        (at * (PARTS - 1) / (parts - 1)) % PARTS
    }

    fn line(&self, entry: &BarEntry, scale: &Scale, looks: &[Look]) -> Line {
        match entry {
            BarEntry::Group(heading) => Line::Group(heading.clone()),
            BarEntry::Row(name, values) => {
                let svg = match self.arrangement {
                    Arrangement::Grouped => self.side_by_side(name, values, scale, looks),
                    Arrangement::Stacked => self.behind_each_other(name, values, scale),
                };
                let notes = if self.notes().is_empty() { Vec::new() } else { figures(values) };
                Line::Row { name: name.clone(), cells: vec![Drawn { svg, notes }] }
            }
        }
    }

    fn side_by_side(
        &self,
        name: &str,
        values: &[Option<f64>],
        scale: &Scale,
        looks: &[Look],
    ) -> String {
        let mut out = String::new();
        let zero = scale.place(0.0);
        for (series, value) in values.iter().enumerate() {
            let Some(value) = value.filter(|value| self.values.can_show(*value)) else { continue };
            let end = scale.place(value);
            let _ = write!(
                out,
                "<rect class=\"mark {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</rect>",
                looks[series].class(),
                percent(end.min(zero)),
                AROUND / 2 + 1 + series * BAR,
                percent((end - zero).abs()),
                BAR - 2,
                self.hover(name, series, value)
            );
        }
        out
    }

    fn behind_each_other(&self, name: &str, values: &[Option<f64>], scale: &Scale) -> String {
        let (mut out, mut from) = (String::new(), 0.0);
        for (series, value) in values.iter().enumerate() {
            let shown = value.filter(|value| self.values.can_show(*value) && *value > 0.0);
            let Some(value) = shown else { continue };
            let (start, end) = (scale.place(from), scale.place(from + value));
            from += value;
            let _ = write!(
                out,
                "<rect class=\"mark part o{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{STACK}\">{}</rect>",
                self.part(series),
                percent(start),
                AROUND / 2,
                percent(end - start),
                self.hover(name, series, value)
            );
            if end - start >= NUMBERED {
                let _ = write!(
                    out,
                    "<text class=\"i{}\" x=\"{}\" y=\"50%\">{}</text>",
                    self.part(series),
                    percent((start + end) / 2.0),
                    significant(value, 2)
                );
            }
        }
        out
    }

    fn hover(&self, category: &str, series: usize, value: f64) -> String {
        let (name, unit) = (&self.series[series], self.values.suffix());
        let text = format!("{category}\n{name}: {}{unit}", significant(value, 6));
        format!("<title>{}</title>", escape::html(&text))
    }

    fn description(&self) -> String {
        let kind = match self.arrangement {
            Arrangement::Grouped => "Bars",
            Arrangement::Stacked => "Stacked bars",
        };
        let rows: Vec<&str> = self.categories().map(|(name, _)| name).collect();
        format!(
            "{kind}: {} of {}, for each {}: {}. The numbers are below.",
            self.values.title(),
            self.series.join(", "),
            self.categories.title(),
            rows.join(", ")
        )
    }

    fn remarks(&self) -> Vec<String> {
        let can_draw = |value: f64| match self.arrangement {
            Arrangement::Grouped => self.values.can_show(value),
            Arrangement::Stacked => self.values.can_show(value) && value >= 0.0,
        };
        let values = self.categories().flat_map(|(_, values)| values.iter().flatten());
        match values.filter(|value| !can_draw(**value)).count() {
            0 => Vec::new(),
            hidden => vec![format!(
                "Not drawn, because the axis cannot show them: {hidden} of the numbers below."
            )],
        }
    }

    fn table(&self) -> Table {
        let series = self
            .series
            .iter()
            .map(|name| (format!("{name}, {}", self.values.title()), Align::Right));
        let mut table =
            Table::new([(self.categories.title(), Align::Left)].into_iter().chain(series));
        let mut group = String::new();
        for entry in &self.rows {
            match entry {
                BarEntry::Group(heading) => group = format!("{heading}: "),
                BarEntry::Row(name, values) => {
                    let values = values
                        .iter()
                        .map(|value| value.map(|value| value.to_string()).unwrap_or_default());
                    table.row([format!("{group}{name}")].into_iter().chain(values));
                }
            }
        }
        table
    }
}

/// Returns values as they are printed beside their marks.
fn figures(values: &[Option<f64>]) -> Vec<Cell> {
    let text = |value: &Option<f64>| value.map(|value| significant(value, 4)).unwrap_or_default();
    values.iter().map(|value| Cell::from(text(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_bars_on_a_logarithmic_axis() {
        let time = Axis::new("time").unit("ns").logarithmic();
        let mut bars = Bars::grouped(Axis::new("name"), time, ["one", "two"]);
        bars.category("a", [0.0, f64::NAN]).category("b", [Some(-1.0)]).category("c", [2.5]);
        let drawing = bars.drawing(&mut Colours::default());
        assert!(!drawing.html.contains("<rect") && drawing.html.contains("<use"));
        assert!(drawing.remarks.iter().any(|remark| remark.ends_with(": 3 of the numbers below.")));
        let Numbers::Table(table) = drawing.numbers else { unreachable!("dots have a table") };
        let html = table.html("");
        for cell in [">0<", ">NaN<", ">-1<", ">2.5<"] {
            assert!(html.contains(cell), "{cell} in {html}");
        }
    }

    #[test]
    fn bars_begin_at_zero() {
        let mut bars = Bars::grouped(Axis::new("name"), Axis::new("error").unit("%"), ["one"]);
        bars.category("below", [-50.0]).category("above", [50.0]);
        let html = bars.drawing(&mut Colours::default()).html;
        let bars: Vec<&str> = html.split("<rect class=\"mark").skip(1).collect();
        assert!(bars[0].contains("width=\"41.67%\"") && bars[1].contains("x=\"50%\""), "{bars:?}");
    }

    #[test]
    fn parts_fill_their_whole() {
        let mut bars =
            Bars::stacked(Axis::new("name"), Axis::new("share").unit("%"), ["one", "two"]);
        bars.group("all").category("first", [30.0, 70.0]).category::<f64>("empty", []);
        let html = bars.drawing(&mut Colours::default()).html;
        assert!(html.contains("x=\"30%\"") && html.contains("width=\"70%\""), "{html}");
        assert_eq!(html.matches("class=\"mark").count(), 2);
    }
}
