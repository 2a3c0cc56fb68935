//! Patterns in each colour, which distinguish numbers if colours have another meaning.

use std::fmt::Write;

use crate::colours::COLOURS;

/// Number of patterns; larger numbers repeat them.
pub(crate) const PATTERNS: u32 = 6;

/// The lines of the patterns on a tile of 8 by 8.
const LINES: [&str; PATTERNS as usize] = [
    "",
    "M5 0h2v8h-2z",
    "M0 5h8v2H0z",
    "M0 8L8 0v3L3 8zM0 0h3L0 3z",
    "M0 0L8 8V5L3 0zM0 8h3L0 5z",
    "M2 2h3v4H2z",
];

/// A tile in the units of a drawing: horizontally one part of time is about a tenth of a CSS pixel,
/// vertically a row is about twenty.
const WIDTH: u32 = 72;
const HEIGHT: f64 = 0.4;

/// Returns the stroke of a mark with this colour and number.
pub(crate) fn stroke(colour: usize, number: u32) -> String {
    match number % PATTERNS {
        0 => "currentColor".to_owned(),
        pattern => format!("url(#h{colour}-{pattern})"),
    }
}

/// Returns the numbers that have a pattern.
pub(crate) fn name(what: &str, pattern: u32) -> String {
    format!("{what} {pattern}, {}, ...", pattern + PATTERNS)
}

/// Returns a pattern as a sign of 16 by 16 CSS pixels.
pub(crate) fn sign(pattern: u32) -> String {
    let lines = LINES[(pattern % PATTERNS) as usize];
    let at = |x: u32, y: u32| format!("<path transform=\"translate({x} {y})\" d=\"{lines}\"/>");
    let lines: String = [(0, 0), (8, 0), (0, 8), (8, 8)].map(|(x, y)| at(x, y)).concat();
    format!("<rect width=\"16\" height=\"16\"/><g class=\"gap\">{lines}</g>")
}

/// Returns the definitions of all patterns in all colours, to be used by their names on the whole
/// page.
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
