//! Conversion of rows with names to tables.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use serde_json::{Map, Value};

use crate::table::Table;

/// Returns a table with a row for each value. Keys of nested values are joined by dots; a list is
/// written as JSON. The type of a column follows from its values: integers, numbers, booleans or
/// text.
pub(crate) fn table(rows: Vec<Value>) -> Table {
    let rows: Vec<Map<String, Value>> = rows.into_iter().map(flat).collect();
    let mut names: Vec<&String> = Vec::new();
    for row in &rows {
        for name in row.keys() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let columns = names.iter().map(|&name| {
        let values: Vec<Option<&Value>> =
            rows.iter().map(|row| row.get(name).filter(|value| !value.is_null())).collect();
        let array = array(&values);
        (Field::new(name, array.data_type().clone(), true), array)
    });
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = match arrays.is_empty() {
        true => RecordBatch::new_empty(schema),
        false => RecordBatch::try_new(schema, arrays).expect("a field for each array, of its type"),
    };
    Table::of(batch)
}

fn flat(value: Value) -> Map<String, Value> {
    let mut into = Map::new();
    flatten(String::new(), value, &mut into);
    into
}

fn flatten(name: String, value: Value, into: &mut Map<String, Value>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                flatten(name, value, into);
            }
        }
        Value::Array(_) => drop(into.insert(name, Value::String(value.to_string()))),
        other => drop(into.insert(name, other)),
    }
}

fn array(values: &[Option<&Value>]) -> ArrayRef {
    let all = |is: fn(&Value) -> bool| values.iter().flatten().all(|value| is(value));
    if values.iter().flatten().next().is_none() {
        return arrow_array::new_null_array(&DataType::Float64, values.len());
    }
    if all(Value::is_u64) {
        let numbers = values.iter().map(|value| value.and_then(Value::as_u64));
        return Arc::new(numbers.collect::<UInt64Array>());
    }
    if all(Value::is_i64) {
        let numbers = values.iter().map(|value| value.and_then(Value::as_i64));
        return Arc::new(numbers.collect::<Int64Array>());
    }
    if all(Value::is_number) {
        let numbers = values.iter().map(|value| value.and_then(Value::as_f64));
        return Arc::new(numbers.collect::<Float64Array>());
    }
    if all(Value::is_boolean) {
        let truths = values.iter().map(|value| value.and_then(Value::as_bool));
        return Arc::new(truths.collect::<BooleanArray>());
    }
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Arc::new(values.iter().map(|value| value.map(text)).collect::<StringArray>())
}
