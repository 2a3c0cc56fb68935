//! Rows as Arrow tables and as Parquet files.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, StringArray, UInt64Array,
    new_null_array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use percid_sim::columns::{Column, Values};

/// Returns columns as an Arrow table. Only the texts are copied.
pub fn batch(columns: Vec<Column>) -> RecordBatch {
    let rows = columns.first().map_or(0, |column| column.values.len());
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().map(column).unzip();
    of_arrays(Arc::new(Schema::new(fields)), arrays, rows)
}

fn column(Column { name, values }: Column) -> (Field, ArrayRef) {
    // Columns of numbers are nullable even if no value is missing, because the next table may have
    // gaps.
    let may_lack = !matches!(values, Values::Text(_));
    let array: ArrayRef = match values {
        Values::Text(values) => Arc::new(StringArray::from(values)),
        Values::Count(values) => Arc::new(UInt64Array::from(values)),
        Values::Number(values) => Arc::new(Float64Array::from(values)),
    };
    (Field::new(name, array.data_type().clone(), may_lack), array)
}

fn of_arrays(schema: SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, arrays, &options)
        .expect("columns are of the types and the length that their table says")
}

/// Returns the bytes of a Parquet file. The same table gives the same bytes.
pub fn to_parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None)
        .expect("Parquet has types for texts and numbers");
    writer.write(batch).and_then(|()| writer.close()).expect("memory takes all that is written");
    bytes
}

/// Returns the table in a Parquet file.
///
/// # Errors
///
/// Returns a description of the damage, if the bytes are not such a file.
pub fn from_parquet(bytes: impl Into<Bytes>) -> Result<RecordBatch, String> {
    let read = |bytes: Bytes| -> Result<RecordBatch, String> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| e.to_string())?;
        let schema = builder.schema().clone();
        let reader = builder.build().map_err(|e| e.to_string())?;
        let batches: Result<Vec<RecordBatch>, _> = reader.collect();
        let batches = batches.map_err(|fault| fault.to_string())?;
        arrow_select::concat::concat_batches(&schema, &batches).map_err(|fault| fault.to_string())
    };
    let bytes = bytes.into();
    // The decoder panics on some damaged files.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(bytes)))
        .unwrap_or_else(|_| Err("it is damaged".to_owned()))
}

/// Returns the numbers of a column, if there is one with this name.
pub fn numbers(batch: &RecordBatch, name: &str) -> Option<Vec<Option<f64>>> {
    let column = batch.column_by_name(name)?.as_primitive_opt::<Float64Type>()?;
    Some(column.iter().collect())
}

/// Returns the counts of a column, if there is one with this name.
pub(crate) fn counts(batch: &RecordBatch, name: &str) -> Option<Vec<Option<u64>>> {
    let column = batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>()?;
    Some(column.iter().collect())
}

/// Joins tables one after the other. Columns that a table lacks are null in its rows.
///
/// Columns keep the order of the tables, but parameters are grouped in the order of their names,
/// and the columns of single programs come last.
pub fn join(batches: &[RecordBatch]) -> RecordBatch {
    let schema = common_schema(batches);
    let completed: Vec<RecordBatch> = batches.iter().map(|one| completed(one, &schema)).collect();
    arrow_select::concat::concat_batches(&schema, &completed)
        .expect("all have the common schema now")
}

/// Joins tables as they arrive, so that only a limited number of small ones is in memory. Each
/// column of each table has an overhead of some hundred bytes.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    tables: Vec<RecordBatch>,
}

impl Joined {
    /// Maximum number of tables before they are joined.
    const WAITING: usize = 256;

    pub(crate) fn push(&mut self, table: RecordBatch) {
        self.tables.push(table);
        if self.tables.len() > Joined::WAITING {
            let table = join(&self.tables);
            self.tables = vec![table];
        }
    }

    pub(crate) fn finish(self) -> RecordBatch {
        join(&self.tables)
    }
}

/// Returns the sort key of a column: its group, then its name or its index.
fn rank(name: &str, place: usize) -> (u8, &str, usize) {
    match name {
        "machine" | "workload" | "memory" | "seed" => (0, "", place),
        _ if name.starts_with("parameters.") => (1, name, 0),
        _ if name.starts_with("programs.") => (3, "", place),
        _ => (2, "", place),
    }
}

fn common_schema(batches: &[RecordBatch]) -> SchemaRef {
    let mut found: BTreeMap<String, (usize, DataType, bool)> = BTreeMap::new();
    for (nth, batch) in batches.iter().enumerate() {
        for field in batch.schema_ref().fields() {
            let place = found.len();
            let entry = found.entry(field.name().clone());
            entry.or_insert((place, field.data_type().clone(), field.is_nullable() || nth > 0));
        }
    }
    let mut fields: Vec<(String, (usize, DataType, bool))> = found.into_iter().collect();
    fields.sort_by(|(a, (at_a, ..)), (b, (at_b, ..))| rank(a, *at_a).cmp(&rank(b, *at_b)));
    let field = |(name, (_, data_type, may_lack))| Field::new(name, data_type, may_lack);
    Arc::new(Schema::new(fields.into_iter().map(field).collect::<Vec<_>>()))
}

fn completed(batch: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    let rows = batch.num_rows();
    let array = |field: &Arc<Field>| {
        let found = batch.column_by_name(field.name()).cloned();
        found.unwrap_or_else(|| new_null_array(field.data_type(), rows))
    };
    of_arrays(schema.clone(), schema.fields().iter().map(array).collect(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(nth: usize) -> RecordBatch {
        let number = |name: &str, value: f64| Column {
            name: name.to_owned(),
            values: Values::Number(vec![Some(value)]),
        };
        let text =
            Column { name: "machine".to_owned(), values: Values::Text(vec!["m".to_owned()]) };
        let mut columns = vec![text, number("ns_per_burst", nth as f64)];
        // Columns that only some tables have, and that appear late.
        columns.push(number(&format!("parameters.p{}", nth % 3), 1.0));
        if nth > 500 {
            columns.push(number("programs.late.bursts", 2.0));
        }
        batch(columns)
    }

    #[test]
    fn tables_are_joined_to_the_same_bytes_all_at_once_or_as_they_come() {
        let tables: Vec<RecordBatch> = (0..1000).map(table).collect();
        let mut joined = Joined::default();
        tables.iter().cloned().for_each(|table| joined.push(table));
        let (one, other) = (joined.finish(), join(&tables));
        assert_eq!(one, other);
        assert_eq!(to_parquet(&one), to_parquet(&other));
        assert_eq!(one.num_rows(), 1000);
        let names: Vec<&str> =
            one.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        let expected = [
            "machine",
            "parameters.p0",
            "parameters.p1",
            "parameters.p2",
            "ns_per_burst",
            "programs.late.bursts",
        ];
        assert_eq!(names, expected);
    }
}
