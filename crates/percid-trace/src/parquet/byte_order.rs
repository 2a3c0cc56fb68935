//! The byte order of the machine, on which Parquet depends.

use std::io;

use crate::error::Error;

/// Checks that traces can be stored as Parquet on this machine, and read. That is impossible on
/// big-endian machines: the library takes a machine's numbers for those of the format, which are
/// little-endian, and reports every file as damaged.
///
/// # Errors
///
/// [`io::ErrorKind::Unsupported`] on big-endian machines.
pub fn supported() -> Result<(), Error> {
    if cfg!(target_endian = "little") {
        return Ok(());
    }
    let why = "Parquet files can be read and written on little-endian machines only: convert them \
               there, to Perfetto's format for instance";
    Err(Error::Io(io::Error::new(io::ErrorKind::Unsupported, why)))
}
