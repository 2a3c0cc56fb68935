//! The meaning of marks, above the drawing.

use std::fmt::Write;

use crate::colours::Look;
use crate::escape;
use crate::patterns;

/// The kind of mark that a legend explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A mark of this look.
    Mark(Look),
    /// A mark of this shape, whose colour has another meaning.
    Shape(usize),
    /// The ring around the compared dots.
    Ring,
    /// A line with marks.
    Line(Look),
    /// A patch in the colour of a look.
    Patch(Look),
    /// A patch in the colour of a part of a whole.
    Part(usize),
    /// A patch with a pattern, whose colour has another meaning.
    Pattern(u32),
}

/// Returns a list over as many lines as it needs. A single entry needs no legend.
pub(crate) fn html<'a>(entries: impl IntoIterator<Item = (Sign, &'a str)>) -> String {
    let entries: Vec<_> = entries.into_iter().collect();
    if entries.len() < 2 { String::new() } else { all(entries) }
}

/// Returns the list even for a single entry.
pub(crate) fn all<'a>(entries: impl IntoIterator<Item = (Sign, &'a str)>) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for (sign, name) in entries {
        let (width, sign) = sign.drawn();
        let _ = write!(
            out,
            "<li><svg width=\"{width}\" height=\"14\" aria-hidden=\"true\">{sign}</svg>{}</li>",
            escape::html(name)
        );
    }
    out.push_str("</ul>\n");
    out
}

impl Sign {
    /// Returns the width in CSS pixels, and the drawing in it.
    fn drawn(self) -> (u32, String) {
        match self {
            Sign::Mark(look) => (
                14,
                format!(
                    "<use href=\"#m{}\" x=\"7\" y=\"7\" class=\"{}\"/>",
                    look.shape(),
                    look.class()
                ),
            ),
            Sign::Shape(shape) => (14, format!("<use href=\"#m{shape}\" x=\"7\" y=\"7\"/>")),
            Sign::Ring => (14, "<use href=\"#ring\" x=\"7\" y=\"7\" class=\"ring\"/>".to_owned()),
            Sign::Line(look) => (
                30,
                format!(
                    "<g class=\"{}\"><line x1=\"0\" x2=\"30\" y1=\"7\" y2=\"7\" class=\"stroke\" stroke-dasharray=\"{}\"/>\
                     <use href=\"#m{}\" x=\"15\" y=\"7\"/></g>",
                    look.class(),
                    look.dash(),
                    look.shape()
                ),
            ),
            Sign::Patch(look) => {
                (14, format!("<rect width=\"14\" height=\"14\" class=\"{}\"/>", look.class()))
            }
            Sign::Pattern(at) => (14, patterns::sign(at)),
            Sign::Part(at) => (14, format!("<rect width=\"14\" height=\"14\" class=\"o{at}\"/>")),
        }
    }
}
