//! Lines: one quantity over another.

use plotly::common::{DashType, Line, Marker, MarkerSymbol, Mode};
use plotly::{Scatter, Trace};

use crate::axis::Axis;
use crate::drawing::{Drawing, Numbers};
use crate::escape;
use crate::style;
use crate::table::{Align, Table};

/// Points of several series, each joined by a line in the order in which they are given.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    x: Axis,
    y: Axis,
    series: Vec<Series>,
}

#[derive(Clone, Debug, PartialEq)]
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

/// Of the drawing area, in CSS pixels.
const HEIGHT: usize = 320;
/// More points than this on a line are drawn without their marks, which would hide each other.
const MARKED: usize = 60;

impl Lines {
    /// Empty axes.
    pub fn new(x: Axis, y: Axis) -> Self {
        Lines { x, y, series: Vec::new() }
    }

    /// Adds a line through `points`, which are pairs of x and y.
    pub fn series(
        &mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> &mut Self {
        self.series.push(Series { name: name.into(), points: points.into_iter().collect() });
        self
    }

    pub(crate) fn drawing(&self) -> Drawing {
        let (x, y) = (style::numbers(&self.x), style::numbers(&self.y));
        Drawing {
            traces: (0..self.series.len()).map(|at| self.trace(at)).collect(),
            layout: style::layout(HEIGHT, style::margin(style::SIDE, style::SIDE), x, y)
                .show_legend(true),
            height: HEIGHT + style::ABOVE + style::BELOW,
            description: self.description(),
            remarks: self.remarks(),
            numbers: Numbers::Table(self.table()),
        }
    }

    fn can_show(&self, (x, y): (f64, f64)) -> bool {
        self.x.can_show(x) && self.y.can_show(y)
    }

    fn trace(&self, at: usize) -> Box<dyn Trace> {
        let Series { name, points } = &self.series[at];
        let shown = points.iter().map(|point| self.can_show(*point).then_some(*point));
        let (x, y) = shown.map(Option::unzip).unzip();
        let name = escape::plot(name);
        let hover = format!(
            "{name}<br>{}: %{{x:,.6~r}}{}<br>{}: %{{y:,.6~r}}{}<extra></extra>",
            escape::plot(self.x.name()),
            escape::plot(&self.x.suffix()),
            escape::plot(self.y.name()),
            escape::plot(&self.y.suffix()),
        );
        let mode = if points.len() > MARKED { Mode::Lines } else { Mode::LinesMarkers };
        Scatter::<Option<f64>, Option<f64>>::new(x, y)
            .name(name)
            .mode(mode)
            .line(Line::new().color(style::colour(at)).width(2.0).dash(dash(at)))
            .marker(Marker::new().color(style::colour(at)).size(8).symbol(symbol(at)))
            .hover_template(hover)
    }

    fn description(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        format!(
            "Lines: {} over {}, for {}. The numbers are below.",
            self.y.title(),
            self.x.title(),
            names.join(", ")
        )
    }

    fn remarks(&self) -> Vec<String> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let hidden = points.filter(|point| !self.can_show(**point)).count();
        if hidden == 0 {
            return Vec::new();
        }
        vec![format!("Not drawn, because the axes cannot show them: {hidden} of the points below.")]
    }

    fn table(&self) -> Table {
        let mut table = Table::new([
            ("series".to_owned(), Align::Left),
            (self.x.title(), Align::Right),
            (self.y.title(), Align::Right),
        ]);
        for Series { name, points } in &self.series {
            for (x, y) in points {
                table.row([name.clone(), x.to_string(), y.to_string()]);
            }
        }
        table
    }
}

/// Lines are told apart without their colours.
fn dash(at: usize) -> DashType {
    match at % 4 {
        0 => DashType::Solid,
        1 => DashType::Dash,
        2 => DashType::Dot,
        _ => DashType::DashDot,
    }
}

fn symbol(at: usize) -> MarkerSymbol {
    match at % 5 {
        0 => MarkerSymbol::Circle,
        1 => MarkerSymbol::Square,
        2 => MarkerSymbol::Diamond,
        3 => MarkerSymbol::TriangleUp,
        _ => MarkerSymbol::Cross,
    }
}
