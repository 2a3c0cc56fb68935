//! The handle of a recorder, and how one is built.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use percid::Ring;

use crate::destination::Destination;
use crate::format::{self, Dumped, Format};
use crate::layer::FlightLayer;
use crate::layout::RECORD_BYTES;
use crate::on_panic;
#[cfg(unix)]
use crate::on_signal;
use crate::recording::Recording;
use crate::snapshot::Snapshot;

/// A flight recorder: a handle to what its [`FlightLayer`] has stored. Clones are handles to the
/// same records.
///
/// ```
/// use percid_tracing::{FlightRecorder, Format};
/// use tracing_subscriber::prelude::*;
///
/// let (layer, recorder) = FlightRecorder::builder().bytes_per_cpu(64 * 1024).build();
/// tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
///     tracing::info!(user = "ann", "logged in");
/// });
/// let mut out = Vec::new();
/// recorder.dump(Format::Text, &mut out)?;
/// assert!(String::from_utf8_lossy(&out).contains("logged in user=\"ann\""));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// * **Threads**: everything may be called by any number of threads, while others record. Dumps
///   wait for each other while they copy the records, not while they write.
/// * **Signals**: nothing here is async-signal-safe;
///   [`dump_on_signal`](FlightRecorder::dump_on_signal) is how a signal dumps.
/// * **Fork**: a child has a copy of the records, and may dump, unless another thread of its parent
///   was copying records at the time of the fork: then its dumps wait forever. In the child panics
///   dump as in its parent, to the same file; signals do not.
/// * **Memory**: `bytes_per_cpu` for every CPU that has recorded something, as much again from the
///   first dump on, and what all of it takes as a copy while a dump lasts. It is freed when layer
///   and handles are gone.
#[derive(Debug, Clone)]
pub struct FlightRecorder {
    recording: Arc<Recording>,
}

impl FlightRecorder {
    /// The fewest bytes for each CPU: 8 KiB.
    ///
    /// ```
    /// use percid_tracing::FlightRecorder;
    ///
    /// let (_layer, recorder) = FlightRecorder::builder().bytes_per_cpu(0).build();
    /// assert_eq!(recorder.bytes_per_cpu(), FlightRecorder::MIN_BYTES);
    /// ```
    pub const MIN_BYTES: usize = 8 * RECORD_BYTES;

    /// The most bytes for each CPU: 8 MiB, or 512 KiB where addresses have 32 bits.
    ///
    /// ```
    /// use percid_tracing::FlightRecorder;
    ///
    /// let (_layer, recorder) = FlightRecorder::builder().bytes_per_cpu(usize::MAX).build();
    /// assert_eq!(recorder.bytes_per_cpu(), FlightRecorder::MAX_BYTES);
    /// ```
    pub const MAX_BYTES: usize = Ring::MAX_BYTES;

    /// Begins to describe a recorder.
    ///
    /// ```
    /// use percid_tracing::FlightRecorder;
    ///
    /// let (layer, recorder) = FlightRecorder::builder().build();
    /// # drop((layer, recorder));
    /// ```
    pub fn builder() -> Builder {
        Builder { bytes_per_cpu: 1 << 20 }
    }

    /// How many bytes of records are kept for each CPU.
    ///
    /// ```
    /// use percid_tracing::FlightRecorder;
    ///
    /// let (_layer, recorder) = FlightRecorder::builder().bytes_per_cpu(100_000).build();
    /// assert_eq!(recorder.bytes_per_cpu(), 131_072);
    /// ```
    pub fn bytes_per_cpu(&self) -> usize {
        self.recording.bytes_per_cpu
    }

    /// Writes the records that are there, by time. They stay there for later dumps.
    ///
    /// Every record is in the dump that was stored before the call, in this thread or in one with
    /// which it has synchronised, unless newer ones have taken its place. Those that are stored
    /// meanwhile may be in it. It ends even if other threads record without a pause.
    ///
    /// Writing is buffered here. It takes one to three microseconds per record, and as much memory
    /// as the records and 32 bytes for each.
    ///
    /// ```
    /// use percid_tracing::{FlightRecorder, Format};
    ///
    /// let (_layer, recorder) = FlightRecorder::builder().build();
    /// let mut json = Vec::new();
    /// recorder.dump(Format::JsonLines, &mut json)?;
    /// assert!(json.starts_with(b"{"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the writer, which then has a part of the dump.
    pub fn dump(&self, format: Format, out: impl Write) -> io::Result<Dumped> {
        let snapshot = Snapshot::take(&self.recording);
        let mut out = BufWriter::new(out);
        format::write(format, &snapshot, &mut out)?;
        out.flush()?;
        Ok(snapshot.summary)
    }

    /// Dumps to a file whenever a thread panics from now on, also if the panic is caught or aborts
    /// the process.
    ///
    /// The hook that is installed calls the one before when the dump is written. Of several panics
    /// the file has the last: a dump is first written beside it, to a file whose name ends in
    /// `.partial`, and takes its place when it is complete. If it cannot be written, a line on
    /// standard error says why. The recorder is kept for as long as the hook is.
    ///
    /// Others who can write to the file's folder can lead the dump elsewhere by a link, so it
    /// should not be one that is shared, as `/tmp` is.
    ///
    /// To dump to something else than a file, call [`dump`](FlightRecorder::dump) in a hook of your
    /// own.
    ///
    /// ```
    /// use percid_tracing::{FlightRecorder, Format};
    ///
    /// let (_layer, recorder) = FlightRecorder::builder().build();
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("dump.txt");
    /// recorder.dump_on_panic(&path, Format::Text);
    /// let _ = std::panic::catch_unwind(|| panic!("something is wrong"));
    /// assert!(path.exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the calling thread is panicking: hooks cannot be installed then.
    pub fn dump_on_panic(&self, path: impl Into<PathBuf>, format: Format) {
        on_panic::install(self.clone(), Destination { path: path.into(), format });
    }

    /// Dumps to a file whenever the process gets a signal from now on (`SIGUSR1`, say). Only on
    /// Unix.
    ///
    /// The handler only wakes a thread named `flight-recorder`, which this starts, and which writes
    /// the file as [`dump_on_panic`](FlightRecorder::dump_on_panic) does. So the dump needs that
    /// thread to run, and comes some moments after the signal; signals that come while it writes
    /// are one. A handler that was there before is called too; what the signal does by default, it
    /// does not do any more. Thread and recorder stay as long as the process.
    ///
    /// ```
    /// use percid_tracing::{FlightRecorder, Format};
    /// use signal_hook::consts::{SIGKILL, SIGUSR1};
    ///
    /// let (_layer, recorder) = FlightRecorder::builder().build();
    /// recorder.dump_on_signal(SIGUSR1, "dump.json", Format::Chrome)?;
    /// assert!(recorder.dump_on_signal(SIGKILL, "dump.json", Format::Chrome).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the signal's number is none, or that of a
    /// signal that must not be handled so (`SIGKILL`, `SIGSTOP`, `SIGILL`, `SIGFPE`, `SIGSEGV`);
    /// what the system says if it refuses the handler, the pipe or the thread.
    #[cfg(unix)]
    pub fn dump_on_signal(
        &self,
        signal: i32,
        path: impl Into<PathBuf>,
        format: Format,
    ) -> io::Result<()> {
        on_signal::start(self.clone(), signal, Destination { path: path.into(), format })
    }
}

/// What a recorder is to be like.
///
/// ```
/// use percid_tracing::FlightRecorder;
///
/// let builder = FlightRecorder::builder().bytes_per_cpu(4 << 20);
/// let (layer, recorder) = builder.build();
/// # drop((layer, recorder));
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing before `build`"]
pub struct Builder {
    bytes_per_cpu: usize,
}

impl Builder {
    /// How many bytes of records are kept for each CPU: 1 MiB unless this says otherwise (512 KiB
    /// where addresses have 32 bits). It is rounded up to a power of two, and to
    /// [`MIN_BYTES`](FlightRecorder::MIN_BYTES) or down to
    /// [`MAX_BYTES`](FlightRecorder::MAX_BYTES).
    ///
    /// An event takes 48 bytes and its values: 10 for a number, 4 and its length for a string. When
    /// the room is full, the oldest eighth is given up at once.
    ///
    /// ```
    /// use percid_tracing::FlightRecorder;
    ///
    /// let (_layer, recorder) = FlightRecorder::builder().bytes_per_cpu(1 << 16).build();
    /// assert_eq!(recorder.bytes_per_cpu(), 1 << 16);
    /// ```
    pub fn bytes_per_cpu(self, bytes: usize) -> Builder {
        Builder { bytes_per_cpu: bytes }
    }

    /// Makes the layer, for a subscriber, and the handle, for dumps.
    ///
    /// It does what percid does once in a process, too, so that no event waits for it: see
    /// [`percid::init`].
    ///
    /// ```
    /// use percid_tracing::FlightRecorder;
    /// use tracing_subscriber::prelude::*;
    ///
    /// let (layer, recorder) = FlightRecorder::builder().build();
    /// tracing_subscriber::registry().with(layer).init();
    /// # drop(recorder);
    /// ```
    pub fn build(self) -> (FlightLayer, FlightRecorder) {
        // #[gamma::skip(stmt, reason = "it only takes work from the first event")]
        percid::init();
        let (min, max) = (FlightRecorder::MIN_BYTES, FlightRecorder::MAX_BYTES);
        let bytes = self.bytes_per_cpu.clamp(min, max).next_power_of_two();
        let recording = Arc::new(Recording::new(bytes));
        (FlightLayer { recording: recording.clone() }, FlightRecorder { recording })
    }
}

#[cfg(test)]
impl FlightRecorder {
    /// For tests that look at records, or damage them.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_rounded_to_what_a_ring_may_have() {
        let builder = FlightRecorder::builder;
        for (builder, bytes) in [
            (builder(), 1 << 20),
            (builder().bytes_per_cpu(0), 8 << 10),
            (builder().bytes_per_cpu(100_000), 1 << 17),
            (builder().bytes_per_cpu(1 << 17), 1 << 17),
            (builder().bytes_per_cpu(usize::MAX), FlightRecorder::MAX_BYTES),
        ] {
            let (layer, recorder) = builder.build();
            let bytes = bytes.min(FlightRecorder::MAX_BYTES);
            assert_eq!(recorder.bytes_per_cpu(), bytes);
            let said = format!("Recording {{ bytes_per_cpu: {bytes}, .. }} }}");
            assert!(format!("{layer:?}").ends_with(&said), "{layer:?}");
        }
    }
}
