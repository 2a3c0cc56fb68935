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
/// Vertical distance below which two lines hide each other, in percent of the height.
const CLOSE: f64 = 1.0;
/// Maximum number of lines that lie on another one. With more, each series has a drawing of its own.
const BESIDE: usize = 2;

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
        let scales = self.scales();
        let above = self.above(&scales);
        let is_one = above.iter().all(|lines| *lines <= BESIDE);
        let size = |at: usize| if is_one { above[at] } else { 0 };
        let lines: Vec<String> = (0..self.series.len())
            .map(|at| self.drawn(&self.series[at], looks[at], size(at), &scales))
            .collect();
        let signs = self.series.iter().zip(&looks);
        let signs = signs.map(|(series, look)| (Sign::Line(*look), series.name.as_str()));
        let html = if is_one {
            format!("{}{}", legend::html(signs), self.plane(lines.concat(), HEIGHT, &scales))
        } else {
            let small = signs.zip(lines).map(|(sign, line)| {
                let plane = self.plane(line, HEIGHT / 2, &scales);
                format!("<div>{}{plane}</div>\n", legend::all([sign]))
            });
            format!("<div class=\"multiples\">\n{}</div>\n", small.collect::<String>())
        };
        Drawing {
            html,
            description: self.description(),
            remarks: self.remarks(&above),
            numbers: Numbers::Table(self.table()),
        }
    }

    fn plane(&self, content: String, height: usize, (x, y): &(Scale, Scale)) -> String {
        let plane = Plane {
            x_caption: self.x.caption(),
            y_caption: self.y.caption(),
            height,
            y_ticks: y.ticks(height as f64 * 0.6),
            x: x.clone(),
            content,
        };
        plane.html()
    }

    /// Returns, for each series, the number of later ones that coincide with it at two adjacent
    /// points at least: they are drawn above it.
    fn above(&self, scales: &(Scale, Scale)) -> Vec<usize> {
        let places: Vec<Vec<Option<(f64, f64)>>> = self
            .series
            .iter()
            .map(|series| series.points.iter().map(|point| self.place(*point, scales)).collect())
            .collect();
        let meets = |(x, y): (f64, f64), other: &[Option<(f64, f64)>]| {
            other.iter().flatten().any(|at| at.0 == x && (at.1 - y).abs() < CLOSE)
        };
        let coincide = |one: &[Option<(f64, f64)>], other: &[Option<(f64, f64)>]| {
            let met: Vec<bool> =
                one.iter().map(|at| at.is_some_and(|at| meets(at, other))).collect();
            met.windows(2).any(|pair| pair == [true, true])
        };
        let count = |at: usize| {
            let later = places[at + 1..].iter();
            later.filter(|other| coincide(&places[at], other)).count()
        };
        (0..places.len()).map(count).collect()
    }

    /// Returns the position from the left and from above, in percent, if the axes can show it.
    fn place(&self, point: (f64, f64), (x, y): &(Scale, Scale)) -> Option<(f64, f64)> {
        self.can_show(point).then(|| (x.place(point.0), 100.0 - y.place(point.1)))
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
    /// size. Both are larger by `size` steps, so that lines that coincide do not hide their edges.
    fn drawn(
        &self,
        Series { name, points }: &Series,
        look: Look,
        size: usize,
        scales: &(Scale, Scale),
    ) -> String {
        let (mut path, mut marks, mut pen) = (String::new(), String::new(), 'M');
        let width = match size {
            0 => String::new(),
            _ => format!(" style=\"stroke-width: {}\"", 2 + 4 * size),
        };
        for &point in points {
            let Some((left, top)) = self.place(point, scales) else {
                pen = 'M';
                continue;
            };
            let _ = write!(path, "{pen}{left:.2} {top:.2}");
            pen = 'L';
            if points.len() <= MARKED {
                let _ = write!(
                    marks,
                    "<use href=\"#{}\" class=\"mark\" x=\"{}\" y=\"{}\"><title>{}</title></use>",
                    look.mark(size),
                    percent(left),
                    percent(top),
                    escape::html(&self.hover(name, point))
                );
            }
        }
        format!(
            "<g class=\"{}\"><svg viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\">\
             <path class=\"mark stroke series\"{width} d=\"{path}\" stroke-dasharray=\"{}\"><title>{}</title></path></svg>{marks}</g>\n",
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

    fn remarks(&self, above: &[usize]) -> Vec<String> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let hidden = points.filter(|point| !self.can_show(**point)).count();
        let hidden = (hidden > 0).then(|| {
            format!("Not drawn, because the axes cannot show them: {hidden} of the points below.")
        });
        let below: Vec<&str> = self
            .series
            .iter()
            .zip(above)
            .filter(|(_, above)| (1..=BESIDE).contains(*above))
            .map(|(series, _)| series.name.as_str())
            .collect();
        let is_wider = (!below.is_empty() && above.iter().all(|lines| *lines <= BESIDE))
            .then(|| format!("Wider because another line lies on it: {}.", below.join(", ")));
        hidden.into_iter().chain(is_wider).collect()
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

    #[test]
    fn lines_that_coincide_are_all_visible() {
        let points = |last: f64| [(0.0, 5.0), (1.0, 5.0), (2.0, last)];
        let mut lines = Lines::new(Axis::new("x"), Axis::new("y"));
        lines.series("one", points(5.0)).series("other", points(9.0)).series("apart", points(0.0));
        lines.series("crosses", [(0.0, 1.0), (1.0, 5.0), (2.0, 1.0)]);
        let drawing = lines.drawing(&mut Colours::default());
        let widths = ["stroke-width: 10\"", "stroke-width: 6\"", "#m0-2", "#m1-1"];
        assert_eq!(widths.map(|width| drawing.html.matches(width).count()), [1, 1, 3, 3]);
        assert_eq!(drawing.remarks, ["Wider because another line lies on it: one, other."]);
        lines.series("fourth", points(7.0));
        let html = lines.drawing(&mut Colours::default()).html;
        assert_eq!(html.matches("class=\"plane\"").count(), 5, "each has its own drawing");
    }
}
