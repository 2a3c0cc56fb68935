//! Tables that other libraries can use without a copy.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};

/// An Arrow table, in one or several batches of rows.
#[pyclass(frozen, module = "percid._native")]
#[derive(Debug)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Table {
        Table { schema, batches }
    }

    pub(crate) fn of(batch: RecordBatch) -> Table {
        Table { schema: batch.schema(), batches: vec![batch] }
    }
}

#[pymethods]
impl Table {
    /// Returns the rows as an Arrow stream, by the PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may request another schema, and a producer may ignore the request.
        let _ = requested_schema;
        let batches: Vec<Result<RecordBatch, ArrowError>> =
            self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Returns the columns' names and types, by the same interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref())
            .map_err(|fault| PyValueError::new_err(fault.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns a column as a list, with None for empty values.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        if self.schema.field_with_name(name).is_err() {
            return Err(PyKeyError::new_err(name.to_owned()));
        }
        for batch in &self.batches {
            let Some(column) = batch.column_by_name(name) else { continue };
            for row in 0..column.len() {
                list.append(value(py, column, row)?)?;
            }
        }
        Ok(list)
    }

    /// Returns the bytes of a Parquet file.
    fn to_parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let [batch] = &self.batches[..] else {
            let found = self.batches.len();
            return Err(PyValueError::new_err(format!("expected one batch, found {found}")));
        };
        let bytes = py.detach(|| percid_sweep::table::to_parquet(batch));
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads the table from a Parquet file that `to_parquet` made.
    #[staticmethod]
    fn from_parquet(py: Python<'_>, bytes: &[u8]) -> PyResult<Table> {
        let owned = bytes.to_vec();
        let read = py.detach(|| percid_sweep::table::from_parquet(owned));
        read.map(Table::of).map_err(PyValueError::new_err)
    }
}

fn value<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::Boolean => {
            column.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any()
        }
        DataType::UInt64 => {
            column.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Int64 => {
            column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::UInt32 => {
            column.as_primitive::<UInt32Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Utf8 => column.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
        DataType::Dictionary(..) => {
            let words = column.as_dictionary::<Int32Type>();
            let at = words.keys().value(row) as usize;
            return value(py, words.values(), at);
        }
        other => return Err(PyValueError::new_err(format!("a column of {other}"))),
    })
}
