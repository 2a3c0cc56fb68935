//! What a dump shows: a copy of the records, by time.

use std::ops::Range;
use std::time::Duration;

use crate::callsites::Callsites;
use crate::decode::Record;
use crate::format::Dumped;
use crate::recording::Recording;

#[derive(Debug)]
pub(crate) struct Snapshot<'r> {
    callsites: &'r Callsites,
    bytes: Vec<u8>,
    /// In the order of time.
    entries: Vec<Entry>,
    pub(crate) summary: Dumped,
    /// When the recorder was built, since 1970.
    pub(crate) started_at: Duration,
    /// The number of the process; 0 on systems without processes.
    pub(crate) process: u32,
}

#[derive(Debug)]
struct Entry {
    time: u64,
    id: Option<u32>,
    range: Range<usize>,
}

impl<'r> Snapshot<'r> {
    pub(crate) fn take(recording: &'r Recording) -> Snapshot<'r> {
        let (bytes, mut entries, lost) = recording.look(|held, lost| {
            let mut bytes = Vec::new();
            let mut entries = Vec::new();
            for (id, record) in held.iter() {
                let start = bytes.len();
                bytes.extend_from_slice(record);
                // #[gamma::skip(literal, reason = "the time is set below")]
                entries.push(Entry { time: 0, id, range: start..bytes.len() });
            }
            (bytes, entries, lost)
        });
        let callsites = &recording.callsites;
        let all = entries.len();
        entries.retain_mut(|entry| {
            let record = Record::decode(&bytes[entry.range.clone()], callsites);
            record.map(|record| entry.time = record.time).is_some()
        });
        // Stable: what has the same time stays in the order of its ID.
        entries.sort_by_key(|entry| entry.time);
        let (records, damaged) = (entries.len() as u64, (all - entries.len()) as u64);
        let started_at = recording.clock.started_at;
        let summary = Dumped { records, lost, damaged };
        Snapshot { callsites, bytes, entries, summary, started_at, process: process() }
    }

    /// The records, each with the ID in whose ring it was.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Option<u32>, Record<'_>)> {
        // #[gamma::skip(try, reason = "they were decoded before")]
        self.entries.iter().filter_map(|entry| {
            let record = Record::decode(&self.bytes[entry.range.clone()], self.callsites)?;
            Some((entry.id, record))
        })
    }
}

/// The standard library panics where there are no processes.
fn process() -> u32 {
    // #[gamma::skip(cond, literal, reason = "of a platform that the tests are not run on")]
    if cfg!(target_family = "wasm") { 0 } else { std::process::id() }
}
