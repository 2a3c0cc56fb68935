//! The contents of a dump: a copy of the records, ordered by time, and their summary.

use std::ops::Range;
use std::time::Duration;

use crate::callsites::Callsites;
use crate::decode::Record;
use crate::recording::Recording;

/// The summary of a dump.
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
    /// Number of records in the dump.
    pub records: u64,
    /// Number of missing records since the recorder was built. They were overwritten by newer ones,
    /// or not stored for one of the reasons in [`percid::ring::AppendError`].
    pub lost: u64,
    /// Number of records whose bytes are not those that were stored: a part of the program has
    /// written to memory that is not its own.
    pub damaged: u64,
}

#[derive(Debug)]
pub(crate) struct RecorderSnapshot<'r> {
    callsites: &'r Callsites,
    bytes: Vec<u8>,
    /// Ordered by time.
    entries: Vec<RecordEntry>,
    pub(crate) summary: Dumped,
    /// Time from 1970 until the recorder was built.
    pub(crate) started_at: Duration,
    /// The number of the process; 0 on systems without processes.
    pub(crate) process: u32,
}

#[derive(Debug)]
struct RecordEntry {
    time: u64,
    id: Option<u32>,
    range: Range<usize>,
}

impl<'r> RecorderSnapshot<'r> {
    pub(crate) fn take(recording: &'r Recording) -> RecorderSnapshot<'r> {
        let (bytes, mut entries, lost) = recording.look(|held, lost| {
            let mut bytes = Vec::new();
            let mut entries = Vec::new();
            for (id, record) in held.iter() {
                let start = bytes.len();
                bytes.extend_from_slice(record);
                // #[gamma::skip(literal, reason = "the time is set below")]
                entries.push(RecordEntry { time: 0, id, range: start..bytes.len() });
            }
            (bytes, entries, lost)
        });
        let callsites = &recording.callsites;
        let all = entries.len();
        entries.retain_mut(|entry| {
            let record = Record::decode(&bytes[entry.range.clone()], callsites);
            record.map(|record| entry.time = record.time).is_some()
        });
        // Stable: records of the same time stay in the order of their ID.
        entries.sort_by_key(|entry| entry.time);
        let (records, damaged) = (entries.len() as u64, (all - entries.len()) as u64);
        let started_at = recording.clock.started_at;
        let summary = Dumped { records, lost, damaged };
        RecorderSnapshot { callsites, bytes, entries, summary, started_at, process: process() }
    }

    /// Returns the records, each with the ID of its ring.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Option<u32>, Record<'_>)> {
        // #[gamma::skip(try, reason = "they were decoded before")]
        self.entries.iter().filter_map(|entry| {
            let record = Record::decode(&self.bytes[entry.range.clone()], self.callsites)?;
            Some((entry.id, record))
        })
    }
}

/// Returns the process number, or 0 on platforms without processes, where the standard library
/// panics.
fn process() -> u32 {
    // #[gamma::skip(cond, literal, reason = "of a platform that the tests are not run on")]
    if cfg!(target_family = "wasm") { 0 } else { std::process::id() }
}
