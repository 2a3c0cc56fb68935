//! Values and fields in both JSON formats.

use serde_json::{Map, Value as Json};

use crate::decode::{Record, Text, Value};

/// Returns the fields of a record by name.
pub(crate) fn fields(record: &Record<'_>) -> Map<String, Json> {
    record.fields.iter().map(|(name, value)| (String::from(*name), json_of(value))).collect()
}

/// Converts a value. Numbers that JSON does not have become strings.
fn json_of(value: &Value<'_>) -> Json {
    match *value {
        Value::I64(number) => number.into(),
        Value::U64(number) => number.into(),
        Value::F64(number) if number.is_finite() => number.into(),
        Value::F64(number) => number.to_string().into(),
        Value::I128(number) => number.to_string().into(),
        Value::U128(number) => number.to_string().into(),
        Value::Bool(bool) => bool.into(),
        Value::Str(text) | Value::Debug(text) => marked(text).into(),
    }
}

/// Returns a text, with an ellipsis if it is cut.
pub(crate) fn marked(text: Text<'_>) -> String {
    let mark = if text.cut { "…" } else { "" };
    format!("{}{mark}", text.text)
}

/// Returns the names of the fields whose values are cut.
pub(crate) fn cut(record: &Record<'_>) -> Vec<&'static str> {
    let cut = record.fields.iter().filter(|(_, value)| is_cut(value));
    cut.map(|(name, _)| *name).collect()
}

fn is_cut(value: &Value<'_>) -> bool {
    matches!(value, Value::Str(text) | Value::Debug(text) if text.cut)
}
