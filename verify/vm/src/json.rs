//! As much JSON as the report needs: writing, with correct escapes.

use std::fmt::Write;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that was an integer.
    Int(i64),
    /// Seconds and the like, written with three decimals.
    Real(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// Names and values, in the order given.
    Object(Vec<(&'static str, Value)>),
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A list of texts.
    pub fn texts<T: ToString>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(|t| Self::Text(t.to_string())).collect())
    }

    /// The document, indented by two per level, without a final newline.
    pub fn document(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out
    }

    fn write(&self, out: &mut String, level: usize) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Int(value) => {
                let _ = write!(out, "{value}");
            }
            Self::Real(value) if value.is_finite() => {
                let _ = write!(out, "{value:.3}");
            }
            // JSON has no infinities.
            Self::Real(_) => out.push_str("null"),
            Self::Text(text) => quote(out, text),
            Self::List(items) => {
                group(out, level, '[', ']', items, |out, item| item.write(out, level + 1));
            }
            Self::Object(members) => {
                group(out, level, '{', '}', members, |out, (name, value)| {
                    quote(out, name);
                    out.push_str(": ");
                    value.write(out, level + 1);
                });
            }
        }
    }
}

fn group<T>(
    out: &mut String,
    level: usize,
    open: char,
    close: char,
    items: &[T],
    mut each: impl FnMut(&mut String, &T),
) {
    out.push(open);
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        indent(out, level + 1);
        each(out, item);
    }
    if !items.is_empty() {
        out.push('\n');
        indent(out, level);
    }
    out.push(close);
}

fn indent(out: &mut String, level: usize) {
    out.extend(std::iter::repeat_n("  ", level));
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' || c == '\x7f' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let text = Value::text("a\"b\\c\n\t\x1b[0mä");
        assert_eq!(text.document(), r#""a\"b\\c\n\t\u001b[0mä""#);
    }

    #[test]
    fn documents_are_indented() {
        let value = Value::Object(vec![
            ("none", Value::List(Vec::new())),
            ("some", Value::List(vec![Value::Int(-1), Value::Bool(true)])),
            ("seconds", Value::Real(1.23456)),
            ("endless", Value::Real(f64::INFINITY)),
        ]);
        let expected = "{\n  \"none\": [],\n  \"some\": [\n    -1,\n    true\n  ],\n  \
                        \"seconds\": 1.235,\n  \"endless\": null\n}";
        assert_eq!(value.document(), expected);
    }
}
