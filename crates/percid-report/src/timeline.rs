//! Timelines: spans of time on rows.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::axis::Axis;
use crate::colours::Look;
use crate::drawing::{Drawing, Numbers};
use crate::escape;
use crate::number;
use crate::plane::Plane;
use crate::scale::{Ends, Scale, Tick};

/// Rows, such as CPUs, and on them spans of time in the colour of their ID.
///
/// The colours repeat, so that adjacent IDs differ. Made for hundreds of rows and a few thousand
/// spans; each span costs about 40 bytes of the page, half of them in the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    time: Axis,
    row: String,
    id: String,
    spans: Vec<Span>,
}

/// A time for which a row had an ID.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The number of the row, such as the CPU's.
    pub row: u32,
    /// The ID on the row, such as the concurrency ID.
    pub id: u32,
    /// The start, in the time axis's unit.
    pub from: f64,
    /// The end, in the time axis's unit. A span that does not end after its start is not drawn.
    pub to: f64,
}

/// Height of each row, and the minimum and maximum height of the drawing area, in CSS pixels.
const ROW: usize = 20;
const LOWEST: usize = 60;
const HIGHEST: usize = 760;
/// Height of a row's number, in CSS pixels.
const NUMBER: usize = 18;
/// Number of parts of the time in the picture: finer than any screen.
const PARTS: f64 = 10_000.0;
/// Number of colours, which repeat.
const COLOURS: u32 = 6;
/// Steps between the rows whose numbers are printed.
const STEPS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

impl Timeline {
    /// Creates a timeline without spans. `row` is the name of the rows (`CPU`), `id` that of the
    /// colours (`ID`).
    pub fn new(time: Axis, row: impl Into<String>, id: impl Into<String>) -> Self {
        Timeline { time, row: row.into(), id: id.into(), spans: Vec::new() }
    }

    /// Adds a span. Spans of one row should not overlap: the later one hides the earlier.
    pub fn span(&mut self, span: Span) -> &mut Self {
        self.spans.push(span);
        self
    }

    pub(crate) fn drawing(&self) -> Drawing {
        let (first, rows) = self.rows();
        let height = (rows * ROW).clamp(LOWEST, HIGHEST);
        let shown = self.spans.iter().filter(|span| self.can_show(span));
        let scale =
            Scale::new(&self.time, shown.flat_map(|span| [span.from, span.to]), Ends::Exact);
        let plane = Plane {
            x_caption: self.time.caption(),
            y_caption: self.row.clone(),
            height,
            y_ticks: numbers(first, rows, height),
            content: self.content(first, rows, &scale),
            x: scale,
        };
        Drawing {
            html: plane.html(),
            description: self.description(rows),
            remarks: self.remarks(),
            numbers: Numbers::Text { text: self.text(), rows: self.spans.len() },
        }
    }

    /// Returns the first row, and the number of rows up to the last.
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

    /// Returns one path for each ID, so that pointing at it shows the ID.
    fn content(&self, first: u32, rows: usize, scale: &Scale) -> String {
        let mut paths: BTreeMap<u32, String> = BTreeMap::new();
        for span in self.spans.iter().filter(|span| self.can_show(span)) {
            let part = |time: f64| (scale.place(time) / 100.0 * PARTS).round();
            let (from, to) = (part(span.from), part(span.to));
            // A span that is too short to be visible has the minimum length.
            let length = (to - from).max(1.0);
            let row = span.row - first;
            let _ = write!(paths.entry(span.id).or_default(), "M{from} {row}h{length}");
        }
        let mut out = format!(
            "<svg class=\"spans\" viewBox=\"0 -0.5 {PARTS} {rows}\" preserveAspectRatio=\"none\">"
        );
        for (id, path) in paths {
            let look = Look::numbered((id % COLOURS) as usize);
            let _ = write!(
                out,
                "<path class=\"mark {}\" d=\"{path}\"><title>{} {id}</title></path>",
                look.class(),
                escape::html(&self.id)
            );
        }
        out.push_str("</svg>");
        out
    }

    fn description(&self, rows: usize) -> String {
        let mut ids: Vec<u32> = self.spans.iter().map(|span| span.id).collect();
        ids.sort_unstable();
        ids.dedup();
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
            "{} numbers that differ by {COLOURS} have the same colour. Point at a span to read its {0}.",
            self.id
        )];
        let hidden = self.spans.iter().filter(|span| !self.can_show(span)).count();
        if hidden > 0 {
            remarks.push(format!("Not drawn, because they have no length that the axis can show: {hidden} of the spans below."));
        }
        remarks
    }

    /// Returns the number of decimals that represent a millionth of the whole time: there are many
    /// spans, and the size of a page is limited.
    fn decimals(&self) -> usize {
        let ends = self.spans.iter().filter(|span| self.can_show(span)).map(|span| span.to);
        let most = ends.fold(0.0, f64::max);
        if most > 0.0 { (6 - most.log10().ceil() as i32).clamp(0, 12) as usize } else { 0 }
    }

    /// Returns the values separated by commas.
    fn text(&self) -> String {
        let unit = self.time.suffix();
        let mut text = format!("{},{},from{unit},to{unit}\n", self.row, self.id);
        let decimals = self.decimals();
        for Span { row, id, from, to } in &self.spans {
            let [from, to] = [from, to].map(|time| number::decimal(*time, decimals));
            let _ = writeln!(text, "{row},{id},{from},{to}");
        }
        text
    }
}

/// Returns the numbers of as many rows as there is room for.
fn numbers(first: u32, rows: usize, height: usize) -> Vec<Tick> {
    let row = height as f64 / rows as f64;
    let step = STEPS.into_iter().find(|step| *step as f64 * row >= NUMBER as f64).unwrap_or(rows);
    let tick = |at: usize| Tick {
        place: 100.0 - 100.0 * (at as f64 + 0.5) / rows as f64,
        text: (first as usize + at).to_string(),
    };
    (0..rows).step_by(step).map(tick).collect()
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
        assert_eq!(drawing.html.matches("<path").count(), 1, "one ID");
        assert!(drawing.html.contains("d=\"M0 0h10000\""), "{}", drawing.html);
        assert!(drawing.remarks.iter().any(|remark| remark.ends_with(": 2 of the spans below.")));
        let Numbers::Text { text, rows } = drawing.numbers else { unreachable!("text") };
        assert_eq!((text.lines().count(), rows), (4, 3));
        assert!(text.starts_with("CPU,ID,from ms,to ms\n3,1,0.5,2\n"), "{text}");
    }

    #[test]
    fn numbers_of_rows_have_room() {
        assert_eq!(
            numbers(4, 2, 40).iter().map(|tick| tick.text.as_str()).collect::<Vec<_>>(),
            ["4", "5"]
        );
        assert_eq!(numbers(0, 384, 760).len(), 24);
    }
}
