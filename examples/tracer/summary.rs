//! The summary of a trace: printed, and written into the trace.

use std::fmt;
use std::io::{self, Write};

use percid::Ring;
use serde::Serialize;

use crate::collector::Found;
use crate::options::Options;

/// The figures of a trace.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) threads: usize,
    pub(crate) source: String,
    pub(crate) overflow: String,
    pub(crate) ring_bytes: usize,
    pub(crate) seconds: f64,
    /// Events that the threads recorded.
    pub(crate) recorded: u64,
    /// Events that the ring delivered.
    pub(crate) delivered: u64,
    /// Events that the ring counted as lost.
    pub(crate) lost: u64,
    /// Ends that were left out, since their begin was lost.
    pub(crate) ends_left_out: u64,
    /// Ends that were added, since they were lost.
    pub(crate) ends_added: u64,
    /// Records that were none of ours.
    pub(crate) unreadable: u64,
}

impl Summary {
    pub(crate) fn new(
        options: &Options,
        ring: &Ring,
        recorded: u64,
        found: Found,
        seconds: f64,
    ) -> Summary {
        Summary {
            threads: options.threads,
            source: percid::init().source.to_string(),
            overflow: options.overflow.to_string(),
            ring_bytes: options.ring,
            seconds,
            recorded,
            delivered: found.delivered,
            lost: ring.lost(),
            ends_left_out: found.lost_begins,
            ends_added: found.lost_ends,
            unreadable: found.unreadable,
        }
    }

    /// Returns the fault, if any: every event must be delivered or counted as lost.
    pub(crate) fn fault(&self) -> Option<String> {
        let Summary { recorded, delivered, lost, unreadable, .. } = self;
        (recorded != &(delivered + lost) || *unreadable != 0).then(|| {
            format!(
                "{recorded} events recorded, {delivered} delivered, {lost} lost, {unreadable} \
                 records unreadable"
            )
        })
    }

    /// Prints the figures to standard output.
    pub(crate) fn print(&self, json: bool) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if json {
            serde_json::to_writer_pretty(&mut stdout, self)?;
            writeln!(stdout)?;
        } else {
            writeln!(stdout, "{self}")?;
        }
        stdout.flush()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { threads, source, overflow, ring_bytes, .. } = self;
        let Summary { seconds, recorded, delivered, lost, .. } = self;
        write!(f, "{delivered} of {recorded} events written, {lost} lost, in {seconds:.3} s")?;
        write!(f, " (threads: {threads}, source: {source}, {overflow}, {ring_bytes} bytes per ID)")
    }
}
