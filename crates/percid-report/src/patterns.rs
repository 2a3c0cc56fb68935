//! Patterns in each colour: what tells numbers apart where colours say something else.

use std::fmt::Write;

use crate::colours::COLOURS;

/// How many there are; larger numbers have them in turn.
pub(crate) const PATTERNS: u32 = 6;

/// Their lines on a tile of 8 by 8.
const LINES: [&str; PATTERNS as usize] = [
    "",
    "M5 0h2v8h-2z",
    "M0 5h8v2H0z",
    "M0 8L8 0v3L3 8zM0 0h3L0 3z",
    "M0 0L8 8V5L3 0zM0 8h3L0 5z",
    "M2 2h3v4H2z",
];

/// A tile in the units of a drawing: in x one part of time is about a tenth of a CSS pixel, in y a row
/// is some twenty.
const WIDTH: u32 = 72;
const HEIGHT: f64 = 0.4;

/// How a mark of this colour is drawn.
pub(crate) fn stroke(colour: usize, number: u32) -> String {
    match number % PATTERNS {
        0 => "currentColor".to_owned(),
        pattern => format!("url(#h{colour}-{pattern})"),
    }
}

/// Which numbers have a pattern.
pub(crate) fn name(what: &str, pattern: u32) -> String {
    format!("{what} {pattern}, {}, ...", pattern + PATTERNS)
}

/// One of them, as a sign of 16 by 16 CSS pixels.
pub(crate) fn sign(pattern: u32) -> String {
    let lines = LINES[(pattern % PATTERNS) as usize];
    let at = |x: u32, y: u32| format!("<path transform=\"translate({x} {y})\" d=\"{lines}\"/>");
    let lines: String = [(0, 0), (8, 0), (0, 8), (8, 8)].map(|(x, y)| at(x, y)).concat();
    format!("<rect width=\"16\" height=\"16\"/><g class=\"gap\">{lines}</g>")
}

/// All of them in all colours, to be used by their names on the whole page.
pub(crate) fn definitions() -> String {
    let mut out = String::new();
    for colour in 0..COLOURS {
        for (pattern, lines) in LINES.iter().enumerate().skip(1) {
            let _ = write!(
                out,
                "<pattern id=\"h{colour}-{pattern}\" patternUnits=\"userSpaceOnUse\" width=\"{WIDTH}\" height=\"{HEIGHT}\">\
                 <g transform=\"scale({} {})\"><rect class=\"c{colour}\" width=\"8\" height=\"8\"/>\
                 <path class=\"gap\" d=\"{lines}\"/></g></pattern>",
                f64::from(WIDTH) / 8.0,
                HEIGHT / 8.0
            );
        }
    }
    out
}
