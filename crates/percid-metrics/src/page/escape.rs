//! Escaped texts, which cannot end a line or a label.

use std::fmt;

use super::format::Format;

/// Escapes a help text.
pub(crate) fn help(text: &str, format: Format) -> impl fmt::Display {
    Escaped { text, quotes: format == Format::OpenMetrics }
}

/// Escapes the value of a label, between quotes.
pub(crate) fn label_value(text: &str) -> impl fmt::Display {
    Escaped { text, quotes: true }
}

struct Escaped<'t> {
    text: &'t str,
    quotes: bool,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_escaped = |char| matches!(char, '\\' | '\n') || (char == '"' && self.quotes);
        self.text.split_inclusive(is_escaped).try_for_each(|piece| {
            let plain = piece.strip_suffix(is_escaped).unwrap_or(piece);
            f.write_str(plain)?;
            f.write_str(match &piece[plain.len()..] {
                "\\" => "\\\\",
                "\n" => "\\n",
                "\"" => "\\\"",
                _ => "",
            })
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
