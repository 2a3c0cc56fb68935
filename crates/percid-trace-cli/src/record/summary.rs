//! Summary of a recording, for its user.

use std::fmt;
use std::path::Path;

use percid_command::exit::Exit;
use percid_command::interrupt::Interrupt;
use percid_trace::quality::Quality;
use percid_trace::record::Ended;
use percid_trace::spool::Stored;
use serde::Serialize;

use crate::recorder;

/// Summary of a recording.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// The conclusions that it permits.
    pub(super) quality: Quality,
    file: String,
    events: u64,
    /// Events of NUMA balancing.
    numa_events: u64,
    /// Turns of threads in which something was counted.
    counted_turns: u64,
    lost: u64,
    duration_ns: u64,
    backend: String,
    /// The processes that it is about, with all others beside them. None: everything is recorded, or nothing
    /// else.
    subject: Vec<u32>,
    /// The requested events that this kernel does not have.
    without: Vec<&'static str>,
    /// Exit status of the command.
    status: Option<u8>,
    /// The size at which it was stopped, if it was.
    pub(super) max_file_size: Option<u64>,
    /// The files that SIGUSR1 requested.
    pub(super) dumps: Vec<String>,
    /// The reason why the recording ended early.
    broken: Option<String>,
    /// The reason why the kernel scans nothing, if NUMA balancing was requested.
    pub(super) no_scan: Option<String>,
}

impl Summary {
    pub(super) fn new(stored: Stored, ended: Ended, output: &Path) -> Summary {
        let Ended { status, backend, without, no_scan, broken } = ended;
        Summary {
            quality: stored.quality,
            file: output.display().to_string(),
            events: stored.events,
            numa_events: stored.numa_events,
            counted_turns: stored.counted_turns,
            lost: stored.origin.lost,
            duration_ns: stored.duration_ns,
            backend: backend.to_string(),
            subject: stored.origin.subject,
            without,
            status: status.map(recorder::status_code),
            max_file_size: None,
            dumps: Vec::new(),
            broken,
            no_scan,
        }
    }

    /// The command's own status comes first, but for Ctrl-C without a command.
    pub(super) fn exit(&self, interrupt: &Interrupt) -> Exit {
        recorder::exit(self.status, self.broken.is_some(), interrupt)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, events, backend) = (&self.file, self.events, &self.backend);
        let seconds = self.duration_ns as f64 / 1e9;
        write!(f, "{file}: {events} events in {seconds:.3} s by {backend}, ")?;
        if self.numa_events > 0 {
            write!(f, "{} more of NUMA balancing, ", self.numa_events)?;
        }
        if self.counted_turns > 0 {
            write!(f, "{} turns counted, ", self.counted_turns)?;
        }
        match self.lost {
            0 => write!(f, "none lost")?,
            lost => write!(
                f,
                "{lost} LOST because buffers were full: try a larger --kernel-buffer-kib"
            )?,
        }
        if !self.subject.is_empty() {
            write!(f, "; other threads were recorded too (--only leaves them out)")?;
        }
        if !self.without.is_empty() {
            write!(f, "; without {}", self.without.join(", "))?;
        }
        if let Some(size) = self.max_file_size {
            write!(
                f,
                "; STOPPED because more than the {size} bytes of --max-file-size were needed"
            )?;
        }
        if let Some(why) = &self.broken {
            write!(f, "; THE RECORDING ENDED EARLY: {why}")?;
        }
        Ok(())
    }
}
