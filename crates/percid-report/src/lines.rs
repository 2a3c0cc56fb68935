//! Lines: one quantity over another.

use std::fmt::Write;

use crate::axis::Axis;
use crate::colours::{Colours, Look};
use crate::drawing::{Drawing, Numbers};
use crate::escape;
use crate::legend::{self, Sign};
use crate::number::{percent, significant};
use crate::plane::Plane;
use crate::scale::{Ends, Scale};
use crate::table::{Align, Table};

/// Points of several series, each joined by a line in the given order.
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

/// Height of the drawing area, in CSS pixels.
const HEIGHT: usize = 300;
/// Maximum number of points of a line that have marks: more would hide each other.
const MARKED: usize = 30;

impl Lines {
    /// Creates empty axes.
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

    pub(crate) fn drawing(&self, colours: &mut Colours) -> Drawing {
        let looks: Vec<Look> =
            self.series.iter().map(|series| colours.look(&series.name)).collect();
        let (x, y) = self.scales();
        let drawn = self.series.iter().zip(&looks);
        let signs = self
            .series
            .iter()
            .zip(&looks)
            .map(|(series, look)| (Sign::Line(*look), series.name.as_str()));
        let plane = Plane {
            x_caption: self.x.caption(),
            y_caption: self.y.caption(),
            height: HEIGHT,
            y_ticks: y.ticks(HEIGHT as f64 * 0.6),
            x: x.clone(),
            content: drawn.map(|(series, look)| self.drawn(series, *look, &x, &y)).collect(),
        };
        Drawing {
            html: format!("{}{}", legend::html(signs), plane.html()),
            description: self.description(),
            remarks: self.remarks(),
            numbers: Numbers::Table(self.table()),
        }
    }

    /// Returns both axes; the vertical one reaches down to 0 if that is not far away.
    fn scales(&self) -> (Scale, Scale) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let shown = || points().filter(|point| self.can_show(**point));
        let low = shown().map(|(_, y)| *y).fold(f64::INFINITY, f64::min);
        let high = shown().map(|(_, y)| *y).fold(f64::NEG_INFINITY, f64::max);
        let ends = if low >= 0.0 && low < high * 0.7 { Ends::Zero } else { Ends::Data };
        (
            Scale::new(&self.x, shown().map(|(x, _)| *x), Ends::Exact),
            Scale::new(&self.y, shown().map(|(_, y)| *y), ends),
        )
    }

    fn can_show(&self, (x, y): (f64, f64)) -> bool {
        self.x.can_show(x) && self.y.can_show(y)
    }

    /// Returns the line, which is scaled to the width of the page, and marks, which keep their
    /// size.
    fn drawn(&self, Series { name, points }: &Series, look: Look, x: &Scale, y: &Scale) -> String {
        let place = |point: (f64, f64)| (x.place(point.0), 100.0 - y.place(point.1));
        let (mut path, mut marks, mut pen) = (String::new(), String::new(), 'M');
        for &point in points {
            if !self.can_show(point) {
                pen = 'M';
                continue;
            }
            let (left, top) = place(point);
            let _ = write!(path, "{pen}{left:.2} {top:.2}");
            pen = 'L';
            if points.len() <= MARKED {
                let _ = write!(
                    marks,
                    "<use href=\"#m{}\" class=\"mark\" x=\"{}\" y=\"{}\"><title>{}</title></use>",
                    look.shape(),
                    percent(left),
                    percent(top),
                    escape::html(&self.hover(name, point))
                );
            }
        }
        format!(
            "<g class=\"{}\"><svg viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\">\
             <path class=\"mark stroke\" d=\"{path}\" stroke-dasharray=\"{}\"><title>{}</title></path></svg>{marks}</g>\n",
            look.class(),
            look.dash(),
            escape::html(name)
        )
    }

    fn hover(&self, name: &str, (x, y): (f64, f64)) -> String {
        format!(
            "{name}\n{}: {}\n{}: {}",
            self.x.title(),
            significant(x, 6),
            self.y.title(),
            significant(y, 6)
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_cannot_be_shown_break_the_line_and_are_counted() {
        let mut lines = Lines::new(Axis::new("x"), Axis::new("y"));
        lines.series("one", [(0.0, 0.0), (1.0, f64::NAN), (2.0, 50.0), (4.0, 100.0)]);
        let drawing = lines.drawing(&mut Colours::default());
        assert!(
            drawing.html.contains("d=\"M0.00 100.00M50.00 50.00L100.00 0.00\""),
            "{}",
            drawing.html
        );
        assert!(drawing.remarks[0].ends_with(": 1 of the points below."));
        assert_eq!(drawing.html.matches("<use").count(), 3);
    }
}
