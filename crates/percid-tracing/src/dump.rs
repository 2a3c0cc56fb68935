//! The writing of a dump.

use std::io::{self, BufWriter, Write};

use crate::format::{self, Format};
use crate::recording::Recording;
use crate::snapshot::{Dumped, RecorderSnapshot};

/// Writes the current records, ordered by time, and returns the summary.
pub(crate) fn dump(recording: &Recording, format: Format, out: impl Write) -> io::Result<Dumped> {
    let snapshot = RecorderSnapshot::take(recording);
    let mut out = BufWriter::new(out);
    format::write(format, &snapshot, &mut out)?;
    out.flush()?;
    Ok(snapshot.summary)
}
