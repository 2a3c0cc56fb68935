//! The forms of a dump, and what a dump says of itself.

use std::io::{self, Write};

use crate::snapshot::Snapshot;
use crate::{chrome, json_lines, text};

/// The form of a dump.
///
/// In each of them text from records cannot break the form: JSON is escaped, and text has one record
/// per line, with control characters escaped.
///
/// ```
/// use percid_tracing::{FlightRecorder, Format};
///
/// let (_layer, recorder) = FlightRecorder::builder().build();
/// for format in [Format::Text, Format::JsonLines, Format::Chrome] {
///     let mut out = Vec::new();
///     recorder.dump(format, &mut out)?;
///     assert!(!out.is_empty());
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Lines for people. The first says how many records there are, and how many are missing; each
    /// other line is a record: seconds since the recorder was built, thread, CPU, level, target, and
    /// what happened.
    Text,
    /// A JSON object per line, for programs. Each is a record; the last has the `kind` `"dump"` and
    /// says how many records there are and how many are missing.
    JsonLines,
    /// JSON of the trace event format, which <https://ui.perfetto.dev> and `chrome://tracing` open:
    /// spans are slices of the threads that were in them, events are instants.
    Chrome,
}

/// What a dump says of itself.
///
/// ```
/// use percid_tracing::{FlightRecorder, Format};
///
/// let (_layer, recorder) = FlightRecorder::builder().build();
/// let dumped = recorder.dump(Format::Text, std::io::sink())?;
/// assert_eq!((dumped.records, dumped.lost, dumped.damaged), (0, 0, 0));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Dumped {
    /// Records in the dump.
    pub records: u64,
    /// Records that are missing since the recorder was built: overwritten by newer ones, or not
    /// stored, for which [`percid::ring::AppendError`] has the reasons.
    pub lost: u64,
    /// Records that are missing since their bytes are not what was stored: some part of the program
    /// has written to memory that is not its own.
    pub damaged: u64,
}

/// Writes what a snapshot shows.
pub(crate) fn write(
    format: Format,
    snapshot: &Snapshot<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Text => text::write(snapshot, out),
        Format::JsonLines => json_lines::write(snapshot, out),
        Format::Chrome => chrome::write(snapshot, out),
    }
}
