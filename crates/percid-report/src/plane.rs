//! An area between two axes, as wide as the page.

use std::fmt::Write;

use crate::escape;
use crate::number::percent;
use crate::scale::{Scale, Tick};

/// The content of the area, and the axes below and beside it.
#[derive(Debug)]
pub(crate) struct Plane {
    pub(crate) x_caption: String,
    pub(crate) y_caption: String,
    /// Height of the area, in CSS pixels.
    pub(crate) height: usize,
    pub(crate) y_ticks: Vec<Tick>,
    pub(crate) x: Scale,
    /// The drawing, as SVG.
    pub(crate) content: String,
}

/// Width of the drawing area on a phone, and on a wider page, in CSS pixels.
const NARROW: f64 = 260.0;
const WIDE: f64 = 480.0;

impl Plane {
    pub(crate) fn html(&self) -> String {
        let (narrow, wide) = (self.x.ticks(NARROW), self.x.ticks(WIDE));
        let (mut grid, mut beside) = (String::new(), String::new());
        for (class, ticks) in [("narrow", &narrow), ("wide", &wide)] {
            for x in ticks.iter().map(|tick| percent(tick.place)) {
                let _ = write!(
                    grid,
                    "<line class=\"grid {class}\" x1=\"{x}\" x2=\"{x}\" y2=\"100%\"/>"
                );
            }
        }
        for tick in &self.y_ticks {
            let y = percent(100.0 - tick.place);
            let _ = write!(grid, "<line class=\"grid\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>");
            let _ = write!(beside, "<span style=\"top: {y}\">{}</span>", escape::html(&tick.text));
        }
        let digits = self.y_ticks.iter().map(|tick| tick.text.chars().count()).max().unwrap_or(1);
        let (x_caption, y_caption) = (escape::html(&self.x_caption), escape::html(&self.y_caption));
        format!(
            "<div class=\"plane\" style=\"--beside: {digits}ch\">\n<div class=\"caption\">{y_caption}</div>\n\
             <div class=\"beside\">{beside}</div>\n\
             <svg class=\"area\" height=\"{}\">{grid}\n{}</svg>\n{}{}<div class=\"caption\">{x_caption}</div>\n</div>\n",
            self.height,
            self.content,
            below("narrow", &narrow),
            below("wide", &wide)
        )
    }
}

fn below(class: &str, ticks: &[Tick]) -> String {
    let tick = |tick: &Tick| {
        format!("<span style=\"left: {}\">{}</span>", percent(tick.place), escape::html(&tick.text))
    };
    let ticks: String = ticks.iter().map(tick).collect();
    format!("<div class=\"ticks {class}\">{ticks}</div>\n")
}
