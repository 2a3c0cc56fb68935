//! Bars: figures of named things, side by side or as shares of a whole.

use plotly::common::{Marker, Orientation, TextPosition, TickMode};
use plotly::layout::{AxisRange, BarMode};
use plotly::{Bar, Trace};

use crate::axis::Axis;
use crate::drawing::{Drawing, Numbers};
use crate::escape;
use crate::style;
use crate::table::{Align, Table};

/// Horizontal bars: one row per category, in it one bar per series.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    arrangement: Arrangement,
    categories: Axis,
    values: Axis,
    series: Vec<String>,
    rows: Vec<(String, Vec<Option<f64>>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrangement {
    Grouped,
    Stacked,
}

/// Thickness of a bar, and the gap between two categories, in CSS pixels.
const BAR: usize = 20;
const STACK: usize = 26;
const GAP: usize = 16;
/// Room for the number behind the longest of the grouped bars, in CSS pixels.
const NUMBER: usize = 64;
/// Longer names of categories are broken into lines, in characters.
const NAME: usize = 26;

impl Bars {
    /// A category's bars stand one below the other, each with its number.
    pub fn grouped<S: Into<String>>(
        categories: Axis,
        values: Axis,
        series: impl IntoIterator<Item = S>,
    ) -> Self {
        Bars::new(Arrangement::Grouped, categories, values, series)
    }

    /// A category's bars stand one behind the other, as the parts of a whole. Meant for linear
    /// axes.
    pub fn stacked<S: Into<String>>(
        categories: Axis,
        values: Axis,
        series: impl IntoIterator<Item = S>,
    ) -> Self {
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

    /// Adds a row with one value per series, in their order. `None`, and values that are missing at
    /// the end, have no bar; there must not be more than series.
    pub fn category<V: Into<Option<f64>>>(
        &mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> &mut Self {
        let mut values: Vec<Option<f64>> = values.into_iter().map(Into::into).collect();
        debug_assert!(values.len() <= self.series.len(), "{values:?}: more than series");
        values.resize(self.series.len(), None);
        self.rows.push((name.into(), values));
        self
    }

    pub(crate) fn drawing(&self) -> Drawing {
        let height = self.height();
        let (right, mode) = match self.arrangement {
            Arrangement::Grouped => (NUMBER, BarMode::Group),
            Arrangement::Stacked => (style::SIDE, BarMode::Stack),
        };
        let margin = style::margin(style::SIDE, right);
        let layout = style::layout(height, margin, self.value_axis(), self.category_axis())
            .bar_mode(mode)
            .bar_gap(GAP as f64 / self.row_height() as f64)
            .show_legend(true);
        Drawing {
            traces: (0..self.series.len()).map(|at| self.trace(at)).collect(),
            layout,
            height: height + style::ABOVE + style::BELOW,
            description: self.description(),
            remarks: self.remarks(),
            numbers: Numbers::Table(self.table()),
        }
    }

    fn row_height(&self) -> usize {
        match self.arrangement {
            Arrangement::Grouped => self.series.len().max(1) * BAR + GAP,
            Arrangement::Stacked => STACK + GAP,
        }
    }

    fn height(&self) -> usize {
        self.rows.len().max(1) * self.row_height()
    }

    fn trace(&self, series: usize) -> Box<dyn Trace> {
        let value = |(_, values): &(String, Vec<Option<f64>>)| {
            values[series].filter(|value| self.values.can_show(*value))
        };
        let name = escape::plot(&self.series[series]);
        let hover = format!(
            "%{{y}}<br>{name}: %{{x:,.6~r}}{}<extra></extra>",
            escape::plot(&self.values.suffix())
        );
        let bar = Bar::new(self.rows.iter().map(value).collect(), (0..self.rows.len()).collect())
            .orientation(Orientation::Horizontal)
            .name(name)
            .marker(Marker::new().color(style::colour(series)))
            .hover_template(hover);
        match self.arrangement {
            Arrangement::Grouped => bar
                .text_template("%{x:,.4~r}")
                .text_position(TextPosition::Outside)
                .clip_on_axis(false),
            Arrangement::Stacked => bar,
        }
    }

    /// Positions, and not names, which plotly.js would take for numbers, dates or each other.
    fn category_axis(&self) -> plotly::layout::Axis {
        let names = self.rows.iter().map(|(name, _)| escape::plot_wrapped(name, NAME)).collect();
        style::named(&self.categories)
            .tick_mode(TickMode::Array)
            .tick_values((0..self.rows.len()).map(|at| at as f64).collect())
            .tick_text(names)
            .range(AxisRange::new(self.rows.len().max(1) as f64 - 0.5, -0.5))
            .show_grid(false)
            .fixed_range(true)
    }

    fn value_axis(&self) -> plotly::layout::Axis {
        let axis = style::numbers(&self.values).fixed_range(true);
        let ends = style::ends(self.rows.iter().flat_map(|(_, values)| self.row_ends(values)));
        match ends {
            Some((low, high)) if self.values.is_logarithmic() => {
                // The shortest bar needs some length too.
                let (low, high) = ((low.log10() - 0.05).floor(), high.log10());
                let ticks = ticks(low, high);
                axis.range(AxisRange::new(low, high))
                    .tick_text(ticks.iter().map(|(_, text)| text.clone()).collect())
                    .tick_values(ticks.into_iter().map(|(value, _)| value).collect())
            }
            Some((low, high)) if low.min(0.0) < high.max(0.0) => {
                axis.range(AxisRange::new(low.min(0.0), high.max(0.0)))
            }
            _ => axis,
        }
    }

    /// Where the bars of a row end.
    fn row_ends(&self, values: &[Option<f64>]) -> Vec<f64> {
        let shown = values.iter().flatten().copied().filter(|value| self.values.can_show(*value));
        match self.arrangement {
            Arrangement::Grouped => shown.collect(),
            Arrangement::Stacked => {
                let (above, below): (Vec<f64>, Vec<f64>) = shown.partition(|value| *value > 0.0);
                vec![below.iter().sum(), above.iter().sum()]
            }
        }
    }

    fn description(&self) -> String {
        let kind = match self.arrangement {
            Arrangement::Grouped => "Bars",
            Arrangement::Stacked => "Stacked bars",
        };
        let rows: Vec<&str> = self.rows.iter().map(|(name, _)| name.as_str()).collect();
        format!(
            "{kind}: {} of {}, for each {}: {}. The numbers are below.",
            self.values.title(),
            self.series.join(", "),
            self.categories.title(),
            rows.join(", ")
        )
    }

    fn remarks(&self) -> Vec<String> {
        let values = self.rows.iter().flat_map(|(_, values)| values.iter().flatten());
        let hidden = values.filter(|value| !self.values.can_show(**value)).count();
        let mut remarks = Vec::new();
        if self.values.is_logarithmic() {
            remarks.push(
                "The axis is logarithmic: compare the ends of the bars, not their lengths."
                    .to_owned(),
            );
        }
        if hidden > 0 {
            remarks.push(format!(
                "Not drawn, because the axis cannot show them: {hidden} of the numbers below."
            ));
        }
        remarks
    }

    fn table(&self) -> Table {
        let series = self
            .series
            .iter()
            .map(|name| (format!("{name}, {}", self.values.title()), Align::Right));
        let mut table =
            Table::new([(self.categories.title(), Align::Left)].into_iter().chain(series));
        for (name, values) in &self.rows {
            let values =
                values.iter().map(|value| value.map(|value| value.to_string()).unwrap_or_default());
            table.row([name.clone()].into_iter().chain(values));
        }
        table
    }
}

/// Powers of ten between these exponents, with what is written there. If there is only one, twice
/// and five times as much as well.
fn ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let exponents = low.ceil() as i32..=high.floor() as i32;
    let factors: &[u8] = if exponents.clone().count() > 1 { &[1] } else { &[1, 2, 5] };
    let tick = |exponent: i32, factor: u8| {
        let value = f64::from(factor) * 10_f64.powi(exponent);
        let text = match (exponent, factor) {
            (-3..=3, _) => value.to_string(),
            (_, 1) => format!("10<sup>{exponent}</sup>"),
            _ => format!("{factor}·10<sup>{exponent}</sup>"),
        };
        (value, text)
    };
    exponents
        .flat_map(|exponent| factors.iter().map(move |factor| tick(exponent, *factor)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_has_more_than_one_number() {
        let texts =
            |low, high| ticks(low, high).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(3.0, 5.1), ["1000", "10<sup>4</sup>", "10<sup>5</sup>"]);
        assert_eq!(texts(4.0, 4.9), ["10<sup>4</sup>", "2·10<sup>4</sup>", "5·10<sup>4</sup>"]);
        assert_eq!(texts(-1.0, -0.5), ["0.1", "0.2", "0.5"]);
    }

    #[test]
    fn what_the_axis_cannot_show_is_counted_and_stays_in_the_table() {
        let time = Axis::new("time").unit("ns").logarithmic();
        let mut bars = Bars::grouped(Axis::new("name"), time, ["one", "two"]);
        bars.category("a", [0.0, f64::NAN]).category("b", [Some(-1.0)]).category("c", [2.5]);
        let drawing = bars.drawing();
        assert!(drawing.remarks.iter().any(|remark| remark.ends_with(": 3 of the numbers below.")));
        let Numbers::Table(table) = drawing.numbers else { unreachable!("bars have a table") };
        let html = table.html("");
        for cell in [">0<", ">NaN<", ">-1<", ">2.5<"] {
            assert!(html.contains(cell), "{cell} in {html}");
        }
    }

    #[test]
    fn rows_are_as_long_as_there_are_series() {
        let mut bars = Bars::stacked(Axis::new("name"), Axis::new("count"), ["one", "two"]);
        bars.category("short", [1.0]).category::<f64>("empty", []);
        assert!(bars.rows.iter().all(|(_, values)| values.len() == 2));
        assert_eq!(bars.drawing().traces.len(), 2);
    }
}
