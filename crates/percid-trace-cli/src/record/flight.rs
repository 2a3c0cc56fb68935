//! A flight recorder: the last events, written on request.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use percid_command::exit::{Failure, complain};
use percid_trace::record::{Piece, Sink};
use percid_trace::spool::{Ring, RingSnapshot, Stored, store};
use percid_trace::trace::Origin;

use super::signals::Signals;
use crate::file;

/// A ring, and what was written of it on the way.
pub(super) struct Flight<'a> {
    ring: Ring,
    signals: &'a Signals,
    output: PathBuf,
    /// Time at which SIGUSR1 was noticed, until all events before it have been taken.
    asked: Option<u64>,
    /// The file that is being written.
    dump: Option<(PathBuf, JoinHandle<Result<Stored, Failure>>)>,
    dumps: Vec<PathBuf>,
}

impl Flight<'_> {
    /// Makes a ring of this size, for a file.
    pub(super) fn new<'a>(
        size: u64,
        output: &Path,
        signals: &'a Signals,
    ) -> Result<Flight<'a>, Failure> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let ring = Ring::new(size).map_err(|cause| Failure::new("cannot record", cause))?;
        let output = output.to_owned();
        Ok(Flight { ring, signals, output, asked: None, dump: None, dumps: Vec::new() })
    }

    /// Waits for the current dump. Returns the final content of the ring, and the dumps written
    /// before.
    pub(super) fn finish(mut self) -> (RingSnapshot, Vec<PathBuf>) {
        self.end_dump();
        (self.ring.snapshot(), self.dumps)
    }

    /// Begins to write the current content. The recording must not wait for that.
    fn begin_dump(&mut self) {
        let path = free_name(&self.output);
        let (snapshot, to) = (self.ring.snapshot(), path.clone());
        let write = move || file::replace(&to, |to| store(&snapshot, to, &mut |_| {}));
        self.dump = Some((path, thread::spawn(write)));
    }

    fn end_dump(&mut self) {
        let Some((path, dump)) = self.dump.take() else { return };
        let failed = || Failure::new("cannot write", io::Error::other("its thread has ended"));
        match dump.join().unwrap_or_else(|_| Err(failed())) {
            Ok(stored) => {
                let seconds = stored.duration_ns as f64 / 1e9;
                let events = stored.events;
                complain(format_args!("{}: {events} events in {seconds:.3} s", path.display()));
                self.dumps.push(path);
            }
            Err(failure) => complain(format_args!("error: {failure}")),
        }
    }
}

impl Sink for Flight<'_> {
    fn begin(&mut self, origin: &Origin) -> Result<(), String> {
        self.ring.begin(origin)
    }

    fn take(&mut self, piece: &Piece<'_>) -> Result<ControlFlow<()>, String> {
        let flow = self.ring.take(piece)?;
        if self.dump.as_ref().is_some_and(|(_, dump)| dump.is_finished()) {
            self.end_dump();
        }
        if self.signals.dump() {
            self.asked = self.asked.or(Some(piece.asked));
        }
        if self.dump.is_none() && self.asked.is_some_and(|asked| asked <= piece.until) {
            self.asked = None;
            self.begin_dump();
        }
        Ok(flow)
    }
}

/// `trace.1.parquet` for `trace.parquet`, or the next one that is not there.
fn free_name(output: &Path) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default();
    let named = |nr: u32| {
        let mut name = stem.to_owned();
        name.push(format!(".{nr}"));
        if let Some(extension) = output.extension() {
            name.push(".");
            name.push(extension);
        }
        output.with_file_name(name)
    };
    (1..u32::MAX).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(u32::MAX))
}
