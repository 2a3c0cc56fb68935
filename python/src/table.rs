//! Tables that other libraries can use without a copy.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

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

    /// Returns all rows in one batch.
    fn joined(&self) -> PyResult<RecordBatch> {
        match &self.batches[..] {
            [batch] => Ok(batch.clone()),
            several => concat_batches(&self.schema, several).map_err(invalid),
        }
    }
}

fn invalid(fault: ArrowError) -> PyErr {
    PyValueError::new_err(fault.to_string())
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
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(invalid)?;
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

    /// Returns a row as a dictionary, with None for empty values.
    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        let mut at = index;
        for batch in &self.batches {
            if at >= batch.num_rows() {
                at -= batch.num_rows();
                continue;
            }
            let row = PyDict::new(py);
            for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                row.set_item(field.name(), value(py, column, at)?)?;
            }
            return Ok(row);
        }
        Err(PyIndexError::new_err(index))
    }

    /// Returns `length` rows from `offset` on, which must exist. Copies nothing.
    fn slice(&self, offset: usize, length: usize) -> Table {
        let (mut skipped, mut left) = (offset, length);
        let mut batches = Vec::new();
        for batch in &self.batches {
            let begin = skipped.min(batch.num_rows());
            let rows = left.min(batch.num_rows() - begin);
            skipped -= begin;
            left -= rows;
            if rows > 0 {
                batches.push(batch.slice(begin, rows));
            }
        }
        Table { schema: self.schema.clone(), batches }
    }

    /// Returns the columns with these names. Copies nothing.
    fn select(&self, names: Vec<String>) -> PyResult<Table> {
        let index = |name: &String| {
            self.schema.index_of(name).map_err(|_| PyKeyError::new_err(name.clone()))
        };
        let indices = names.iter().map(index).collect::<PyResult<Vec<usize>>>()?;
        let schema = self.schema.project(&indices).map_err(invalid)?;
        let batches = self.batches.iter().map(|batch| batch.project(&indices).map_err(invalid));
        Ok(Table { schema: schema.into(), batches: batches.collect::<PyResult<_>>()? })
    }

    /// Returns `true` if both tables have the same columns with the same values, bit for bit.
    fn equals(&self, other: &Table) -> PyResult<bool> {
        if self.column_names() != other.column_names() || self.num_rows() != other.num_rows() {
            return Ok(false);
        }
        Ok(self.joined()?.columns() == other.joined()?.columns())
    }

    /// Returns the bytes of an Arrow stream, which has all tables as they are.
    fn to_ipc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let written = py.detach(|| -> Result<Vec<u8>, ArrowError> {
            let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
            self.batches.iter().try_for_each(|batch| writer.write(batch))?;
            writer.into_inner()
        });
        Ok(PyBytes::new(py, &written.map_err(invalid)?))
    }

    /// Reads the table from the bytes that `to_ipc` returned.
    #[staticmethod]
    fn from_ipc(bytes: &[u8]) -> PyResult<Table> {
        let reader = StreamReader::try_new(bytes, None).map_err(invalid)?;
        let schema = reader.schema();
        let batches = reader.collect::<Result<Vec<RecordBatch>, _>>().map_err(invalid)?;
        Ok(Table { schema, batches })
    }

    /// Returns the bytes of a Parquet file.
    fn to_parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let batch = self.joined()?;
        let bytes = py.detach(|| percid_sweep::table::to_parquet(&batch));
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
