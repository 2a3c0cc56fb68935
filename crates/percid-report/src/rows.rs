//! Rows of a chart: a name, a drawing for each panel, and values beside it.
//!
//! Names and values are HTML, so that the browser, which knows their widths, breaks and aligns
//! them. Only marks with a position on the axis are SVG, in percent of the axis's length.

use std::fmt::Write;

use crate::escape;
use crate::number::percent;
use crate::scale::{Scale, Tick};
use crate::table::Cell;

/// Classes of windows: phones, and wider ones. Ticks are in percent, and an axis of a wider window
/// has room for more numbers.
const CLASSES: [&str; 2] = ["narrow", "wide"];
/// Width of a single drawing on a phone and on the narrowest larger screen, with a name, and of
/// names and labels, in CSS pixels.
const PHONE: f64 = 320.0;
const SCREEN: f64 = 700.0;
const NAME: f64 = 250.0;
const LABEL: f64 = 90.0;
/// Width of a character of a value, and the distance between values, in CSS pixels.
const CHARACTER: f64 = 9.0;
const GAP: f64 = 14.0;

/// The content of the rows, from top to bottom.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The heading of the rows' names.
    pub(crate) heading: String,
    /// The panels: each row has one drawing for each of them. A single one may be without a name.
    pub(crate) panels: Vec<String>,
    /// The headings of the values beside each drawing.
    pub(crate) notes: Vec<String>,
    /// The text beneath the axis.
    pub(crate) caption: String,
    pub(crate) scale: Scale,
    /// Height of the drawings, in CSS pixels.
    pub(crate) height: usize,
    pub(crate) lines: Vec<Line>,
}

/// A row, or the heading of the following rows.
#[derive(Debug)]
pub(crate) enum Line {
    Group(String),
    Row { name: String, cells: Vec<Drawn> },
}

/// The content of a row in one panel: the drawing, and values beside it.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) svg: String,
    pub(crate) notes: Vec<Cell>,
}

impl Rows {
    pub(crate) fn html(&self) -> String {
        let mut out = self.opening();
        out.push_str(&self.head());
        let grid = self.grid();
        for line in &self.lines {
            match line {
                Line::Group(name) => {
                    let _ = writeln!(out, "<div class=\"group\">{}</div>", escape::html(name));
                }
                Line::Row { name, cells } => {
                    let _ = write!(
                        out,
                        "<div class=\"row\"><span class=\"name\">{}</span>",
                        escape::html(name)
                    );
                    for (panel, cell) in self.panels.iter().zip(cells) {
                        out.push_str(&self.cell(panel, cell, &grid));
                    }
                    out.push_str("</div>\n");
                }
            }
        }
        out.push_str(&self.axis());
        out.push_str("</div>\n");
        out
    }

    fn named_panels(&self) -> bool {
        self.panels.len() > 1
    }

    /// Returns the columns of a wide window, and those of a narrow one, in which names and panels
    /// are one below the other.
    fn opening(&self) -> String {
        let notes = " min-content".repeat(self.notes.len());
        let panel = format!(" minmax(0, 1fr){notes}");
        let wide = format!("fit-content(21rem){}", panel.repeat(self.panels.len()));
        let label = if self.named_panels() { "fit-content(8rem)" } else { "" };
        let several = if self.named_panels() { " several" } else { "" };
        format!(
            "<div class=\"rows{several}\" style=\"--wide: {wide}; --narrow: {label}{panel}\">\n"
        )
    }

    fn head(&self) -> String {
        let mut out = format!(
            "<div class=\"row head\"><span class=\"name\">{}</span>",
            escape::html(&self.heading)
        );
        let notes: String = self
            .notes
            .iter()
            .map(|note| format!("<span class=\"note\">{}</span>", escape::html(note)))
            .collect();
        for panel in &self.panels {
            let label = self.label("");
            let _ = write!(
                out,
                "<span class=\"cell\">{label}<span class=\"panel\">{}</span>{notes}</span>",
                escape::html(panel)
            );
        }
        out.push_str("</div>\n");
        out
    }

    /// Returns the panel's name again, for windows in which panels are one below the other.
    fn label(&self, panel: &str) -> String {
        if self.named_panels() {
            format!("<span class=\"label\">{}</span>", escape::html(panel))
        } else {
            String::new()
        }
    }

    fn cell(&self, panel: &str, Drawn { svg, notes }: &Drawn, grid: &str) -> String {
        let mut out = format!(
            "<span class=\"cell\">{}<svg class=\"track\" height=\"{}\">{grid}{svg}</svg>",
            self.label(panel),
            self.height
        );
        for at in 0..self.notes.len() {
            let note = notes.get(at).map(Cell::html).unwrap_or_default();
            let _ = write!(out, "<span class=\"note\">{note}</span>");
        }
        out.push_str("</span>");
        out
    }

    /// Returns the ticks for windows of this class.
    fn ticks(&self, class: &str) -> Vec<Tick> {
        let (panels, notes) = (self.panels.len() as f64, self.width_of_notes());
        let room = match (class, self.named_panels()) {
            ("narrow", false) => PHONE - notes,
            ("narrow", true) => PHONE - LABEL - notes,
            (_, false) => SCREEN - NAME - notes,
            (_, true) => (SCREEN - LABEL) / panels - notes,
        };
        self.scale.ticks(room)
    }

    /// Returns the width of the values beside a drawing, in CSS pixels. Their headings are broken
    /// between words.
    fn width_of_notes(&self) -> f64 {
        let cells = |at: usize| {
            let rows = self.lines.iter().filter_map(|line| match line {
                Line::Group(_) => None,
                Line::Row { cells, .. } => Some(cells),
            });
            rows.flatten().filter_map(move |cell| cell.notes.get(at)).map(Cell::characters)
        };
        let column = |(at, heading): (usize, &String)| {
            let words = heading.split_whitespace().map(|word| word.chars().count());
            words.chain(cells(at)).max().unwrap_or(0) as f64 * CHARACTER + GAP
        };
        self.notes.iter().enumerate().map(column).sum()
    }

    fn grid(&self) -> String {
        let mut out = String::new();
        for class in CLASSES {
            for x in self.ticks(class).iter().map(|tick| percent(tick.place)) {
                let _ =
                    write!(out, "<line class=\"grid {class}\" x1=\"{x}\" x2=\"{x}\" y2=\"100%\"/>");
            }
        }
        out
    }

    fn axis(&self) -> String {
        let tick = |tick: &Tick| {
            format!(
                "<span style=\"left: {}\">{}</span>",
                percent(tick.place),
                escape::html(&tick.text)
            )
        };
        let ticks = CLASSES.map(|class| {
            let ticks: String = self.ticks(class).iter().map(tick).collect();
            format!("<span class=\"{class}\">{ticks}</span>")
        });
        let notes = "<span class=\"note\"></span>".repeat(self.notes.len());
        let cell = format!(
            "<span class=\"cell\">{}<span class=\"ticks\">{}</span>{notes}</span>",
            self.label(""),
            ticks.concat()
        );
        format!(
            "<div class=\"row axis\"><span class=\"name\"></span>{}</div>\n<div class=\"caption\">{}</div>\n",
            cell.repeat(self.panels.len()),
            escape::html(&self.caption)
        )
    }
}
