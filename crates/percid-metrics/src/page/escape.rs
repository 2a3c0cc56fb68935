//! Texts, so that none can end a line or a label.

use std::fmt::{self, Write};

use super::Format;

/// A help text.
pub(crate) fn help(text: &str, format: Format) -> impl fmt::Display {
    Escaped { text, quotes: format == Format::OpenMetrics }
}

/// The value of a label, between quotes.
pub(crate) fn label_value(text: &str) -> impl fmt::Display {
    Escaped { text, quotes: true }
}

struct Escaped<'t> {
    text: &'t str,
    quotes: bool,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.chars().try_for_each(|char| match char {
            '\\' => f.write_str("\\\\"),
            '\n' => f.write_str("\\n"),
            '"' if self.quotes => f.write_str("\\\""),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_line_or_a_label() {
        let hostile = "a\\\"} 1\nb{\r\u{2028}";
        assert_eq!(label_value(hostile).to_string(), "a\\\\\\\"} 1\\nb{\r\u{2028}");
        assert_eq!(help(hostile, Format::Text).to_string(), "a\\\\\"} 1\\nb{\r\u{2028}");
    }
}
