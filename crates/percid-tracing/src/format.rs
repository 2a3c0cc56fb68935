//! The formats of a dump.

use std::io::{self, Write};

use crate::snapshot::RecorderSnapshot;
use crate::{chrome, json_lines, text};

/// The format of a dump.
///
/// Text from records cannot break any format: JSON is escaped. The text format has one record per
/// line, with control characters escaped.
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
    /// Lines for people. The first line has the numbers of records and of missing records. Each
    /// other line is a record: seconds since the recorder was built, thread, CPU, level, target,
    /// and what happened.
    Text,
    /// A JSON object per line, for programs. Names without a value are left out.
    ///
    /// | name | value |
    /// |---|---|
    /// | `kind` | `event`, `new_span`, `record`, `enter`, `exit`, `close`, `follows_from` |
    /// | `time` | nanoseconds since the recorder was built |
    /// | `level`, `target`, `name` | those of the event or span in `tracing` |
    /// | `thread`, `thread_name` | a number that is unique in the process, and the thread's name |
    /// | `tid` | the thread's number in the system (Linux) |
    /// | `cpu` | the CPU's number (Linux with glibc) |
    /// | `id` | the concurrency ID of percid in whose ring the record was |
    /// | `span` | the span's number: `tracing` may use it again when the span is closed |
    /// | `parent`, `follows` | number (`span`) and `name` of the other span |
    /// | `fields` | the values by name; numbers that JSON does not have are strings |
    /// | `cut` | the names of the fields whose values were too long |
    /// | `fields_left_out` | `true` if there was no room for some fields |
    ///
    /// The last line has the `kind` `dump`. It has the numbers of `records`, of `lost` and of
    /// `damaged` ones, and the number of the `process`. `started_at` is the time when the recorder
    /// was built, in seconds since 1970.
    JsonLines,
    /// JSON of the trace event format, which <https://ui.perfetto.dev> and `chrome://tracing` open:
    /// spans are slices of the threads that were in them, events are instants.
    Chrome,
}

/// Writes a snapshot in a format.
pub(crate) fn write(
    format: Format,
    snapshot: &RecorderSnapshot<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Text => text::write(snapshot, out),
        Format::JsonLines => json_lines::write(snapshot, out),
        Format::Chrome => chrome::write(snapshot, out),
    }
}
