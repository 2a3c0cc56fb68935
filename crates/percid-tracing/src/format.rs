//! The forms of a dump, and what a dump says of itself.

use std::io::{self, Write};

use crate::snapshot::Snapshot;
use crate::{chrome, json_lines, text};

/// The form of a dump.
///
/// In each of them text from records cannot break the form: JSON is escaped, and text has one
/// record per line, with control characters escaped.
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
    /// other line is a record: seconds since the recorder was built, thread, CPU, level, target,
    /// and what happened.
    Text,
    /// A JSON object per line, for programs. What has no value is not there.
    ///
    /// | name | what |
    /// |---|---|
    /// | `kind` | `event`, `new_span`, `record`, `enter`, `exit`, `close`, `follows_from` |
    /// | `time` | nanoseconds since the recorder was built |
    /// | `level`, `target`, `name` | of the event or span, as `tracing` has them |
    /// | `thread`, `thread_name` | a number that no other thread of the process has, its name |
    /// | `tid` | the thread's number in the system (Linux) |
    /// | `cpu` | the CPU's number (Linux with glibc) |
    /// | `id` | the concurrency ID of percid in whose ring the record was |
    /// | `span` | the span's number: `tracing` may use it again when the span is closed |
    /// | `parent`, `follows` | number (`span`) and `name` of the other span |
    /// | `fields` | the values by name; numbers that JSON does not have are strings |
    /// | `cut` | the names of those that were too long |
    /// | `fields_left_out` | `true` if some had no room |
    ///
    /// The last line has the `kind` `dump`: how many `records` there are, how many are `lost` and
    /// `damaged`, the number of the `process`, and when the recorder was built (`started_at`, in
    /// seconds since 1970).
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
