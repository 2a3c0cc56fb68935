//! The rows of a comparison as Parquet, where the library for it is built in.

use std::path::Path;

use percid_command::exit::Failure;

use super::figures::Results;

/// Whether there will be a file. Asked before anything is simulated.
pub(super) fn expect_support() -> Result<(), Failure> {
    if cfg!(not(feature = "trace")) {
        let expected = "--parquet: expected a percid with the feature trace (cargo install \
                        percid-cli --features trace); this one can write --csv";
        return Err(Failure::Usage(expected.to_owned()));
    }
    if cfg!(not(target_endian = "little")) {
        let expected = "--parquet: expected a little-endian machine; here --csv can be written";
        return Err(Failure::Usage(expected.to_owned()));
    }
    Ok(())
}

#[cfg(feature = "trace")]
pub(super) use built_in::write;

/// Never asked for: see [`expect_support`].
#[cfg(not(feature = "trace"))]
pub(super) fn write(_results: &Results, _path: &Path) -> Result<(), Failure> {
    expect_support()
}

#[cfg(feature = "trace")]
mod built_in {
    use std::fs::File;
    use std::io;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
    use parquet::arrow::ArrowWriter;

    use super::{Failure, Path, Results};
    use crate::sim::run::columns::{Column, Values, columns};

    /// Writes the table to a file.
    pub(in crate::sim::run) fn write(results: &Results, path: &Path) -> Result<(), Failure> {
        let written = batch(columns(results)).and_then(|batch| {
            let file = File::create(path)?;
            let mut writer =
                ArrowWriter::try_new(file, batch.schema(), None).map_err(io::Error::other)?;
            writer.write(&batch).map_err(io::Error::other)?;
            writer.close().map_err(io::Error::other)
        });
        let cannot = || format!("cannot write Parquet to {}", path.display());
        written.map(drop).map_err(|cause| Failure::new(cannot(), cause))
    }

    fn batch(table: Vec<Column>) -> io::Result<RecordBatch> {
        let columns = table.into_iter().map(|Column { name, values }| {
            // What may be missing may be so in the next file, too.
            let may_lack = !matches!(values, Values::Text(_));
            let array: ArrayRef = match values {
                Values::Text(values) => Arc::new(StringArray::from(values)),
                Values::Count(values) => Arc::new(UInt64Array::from(values)),
                Values::Number(values) => Arc::new(Float64Array::from(values)),
            };
            (name, array, may_lack)
        });
        RecordBatch::try_from_iter_with_nullable(columns).map_err(io::Error::other)
    }
}
