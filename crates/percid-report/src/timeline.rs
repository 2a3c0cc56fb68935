//! Time lines: what was where, from when to when.

use std::collections::BTreeSet;
use std::fmt::Write;

use plotly::Trace;
use plotly::common::{Marker, Orientation};
use plotly::layout::{AxisRange, BarMode};
use serde::Serialize;

use crate::axis::Axis;
use crate::drawing::{Drawing, Numbers};
use crate::escape;
use crate::style;

/// Rows, such as CPUs, and on them spans of time in the colour of their ID.
///
/// Ten colours are used in turn, so that neighbouring IDs differ. Made for hundreds of rows and
/// some ten thousand spans; each span costs about 100 bytes of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    time: Axis,
    row: String,
    id: String,
    spans: Vec<Span>,
}

/// That a row had an ID for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The number of the row, such as the CPU's.
    pub row: u32,
    /// What was there, such as the concurrency ID.
    pub id: u32,
    /// When it came, in the time axis's unit.
    pub from: f64,
    /// When it went, in the time axis's unit. A span that does not end after its start is not
    /// drawn.
    pub to: f64,
}

/// Bars of plotly.js that start anywhere, which `plotly::Bar` cannot say.
#[derive(Clone, Debug, Serialize)]
struct Spans {
    r#type: &'static str,
    orientation: Orientation,
    base: Vec<f64>,
    x: Vec<f64>,
    y: Vec<u32>,
    customdata: Vec<(u32, f64)>,
    hovertemplate: String,
    marker: Marker,
}

impl Trace for Spans {
    fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Of the drawing area, in CSS pixels: as much as this for each row, and in all between these two.
const ROW: usize = 20;
const LOWEST: usize = 120;
const HIGHEST: usize = 760;
/// Room for the rows' name, and for each digit of their numbers, in CSS pixels. Left to plotly.js,
/// which finds it out by drawing everything twice, a large time line takes twice as long.
const LEFT: usize = 44;
const DIGIT: usize = 9;
/// With more rows than this, only some are labelled.
const LABELLED: usize = 32;

impl Timeline {
    /// No spans yet. `row` is the name of what has a row (`CPU`), `id` of what has a colour (`ID`).
    pub fn new(time: Axis, row: impl Into<String>, id: impl Into<String>) -> Self {
        Timeline { time, row: row.into(), id: id.into(), spans: Vec::new() }
    }

    /// Adds a span. Those of one row should not overlap: the later one hides the earlier.
    pub fn span(&mut self, span: Span) -> &mut Self {
        self.spans.push(span);
        self
    }

    pub(crate) fn drawing(&self) -> Drawing {
        let (first, rows) = self.rows();
        let height = (rows * ROW).clamp(LOWEST, HIGHEST);
        let (first, last) = (f64::from(first), f64::from(first) + rows as f64 - 1.0);
        let left = LEFT + DIGIT * last.to_string().len();
        let axis = style::named(&Axis::new(self.row.as_str()))
            .range(AxisRange::new(last + 0.5, first - 0.5))
            .auto_margin(false)
            .show_grid(false);
        let axis = if rows <= LABELLED { axis.dtick(1.0) } else { axis };
        let layout =
            style::layout(height, style::margin(left, style::SIDE), self.time_axis(), axis);
        Drawing {
            traces: (0..style::COLOURS).filter_map(|colour| self.trace(colour)).collect(),
            layout: layout.bar_mode(BarMode::Overlay).bar_gap(0.1).show_legend(false),
            height: height + style::ABOVE + style::BELOW,
            description: self.description(rows),
            remarks: self.remarks(),
            numbers: Numbers::Text { text: self.text(), rows: self.spans.len() },
        }
    }

    fn time_axis(&self) -> plotly::layout::Axis {
        let shown = self.spans.iter().filter(|span| self.can_show(span));
        let ends = style::ends(shown.flat_map(|span| [span.from, span.to]));
        let axis = style::numbers(&self.time).auto_margin(false);
        match ends {
            Some((low, high)) if self.time.is_logarithmic() => {
                axis.range(AxisRange::new(low.log10(), high.log10()))
            }
            Some((low, high)) => axis.range(AxisRange::new(low, high)),
            None => axis,
        }
    }

    /// The first row, and how many there are up to the last.
    fn rows(&self) -> (u32, usize) {
        let rows = || self.spans.iter().map(|span| span.row);
        match (rows().min(), rows().max()) {
            (Some(first), Some(last)) => (first, (last - first) as usize + 1),
            _ => (0, 1),
        }
    }

    fn can_show(&self, span: &Span) -> bool {
        self.time.can_show(span.from) && self.time.can_show(span.to) && span.from < span.to
    }

    /// All spans of one colour.
    fn trace(&self, colour: usize) -> Option<Box<dyn Trace>> {
        let spans = self.spans.iter().filter(|span| self.can_show(span));
        let spans: Vec<&Span> =
            spans.filter(|span| span.id as usize % style::COLOURS == colour).collect();
        if spans.is_empty() {
            return None;
        }
        let unit = escape::plot(&self.time.suffix());
        let hovertemplate = format!(
            "{} %{{y}}, {} %{{customdata[0]}}<br>%{{base:,.9~r}} to %{{customdata[1]:,.9~r}}{unit}<extra></extra>",
            escape::plot(&self.row),
            escape::plot(&self.id),
        );
        Some(Box::new(Spans {
            r#type: "bar",
            orientation: Orientation::Horizontal,
            base: spans.iter().map(|span| span.from).collect(),
            x: spans.iter().map(|span| span.to - span.from).collect(),
            y: spans.iter().map(|span| span.row).collect(),
            customdata: spans.iter().map(|span| (span.id, span.to)).collect(),
            hovertemplate,
            marker: Marker::new().color(style::colour(colour)),
        }))
    }

    fn description(&self, rows: usize) -> String {
        let ids: BTreeSet<u32> = self.spans.iter().map(|span| span.id).collect();
        format!(
            "Time line: {} spans of {} different {} numbers on {rows} rows, one per {}, over {}. The numbers are below.",
            self.spans.len(),
            ids.len(),
            self.id,
            self.row,
            self.time.title()
        )
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![format!(
            "{} numbers that differ by {} have the same colour. Point at a span to read its numbers; draw a frame to zoom, double-click to go back.",
            self.id,
            style::COLOURS
        )];
        let hidden = self.spans.iter().filter(|span| !self.can_show(span)).count();
        if hidden > 0 {
            remarks.push(format!("Not drawn, because they have no length that the axis can show: {hidden} of the spans below."));
        }
        remarks
    }

    /// Values separated by commas.
    fn text(&self) -> String {
        let unit = self.time.suffix();
        let mut text = format!("{},{},from{unit},to{unit}\n", self.row, self.id);
        for Span { row, id, from, to } in &self.spans {
            let _ = writeln!(text, "{row},{id},{from},{to}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_without_length_are_counted_and_stay_in_the_text() {
        let mut timeline = Timeline::new(Axis::new("time").unit("ms"), "CPU", "ID");
        timeline.span(Span { row: 3, id: 1, from: 0.5, to: 2.0 });
        timeline.span(Span { row: 4, id: 11, from: 2.0, to: 2.0 });
        timeline.span(Span { row: 4, id: 2, from: 2.0, to: f64::NAN });
        let drawing = timeline.drawing();
        assert_eq!(drawing.traces.len(), 1, "one colour");
        assert!(drawing.remarks.iter().any(|remark| remark.ends_with(": 2 of the spans below.")));
        let Numbers::Text { text, rows } = drawing.numbers else { unreachable!("text") };
        assert_eq!((text.lines().count(), rows), (4, 3));
        assert!(text.starts_with("CPU,ID,from ms,to ms\n3,1,0.5,2\n"), "{text}");
    }
}
