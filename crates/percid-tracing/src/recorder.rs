//! The handle of a recorder, and its builder.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use percid::Ring;

use crate::destination::Destination;
use crate::dump;
use crate::format::Format;
use crate::layer::FlightLayer;
use crate::layout::RECORD_BYTES;
use crate::on_panic;
#[cfg(unix)]
use crate::on_signal;
use crate::recording::Recording;
use crate::snapshot::Dumped;

/// A flight recorder: a handle to the records of its [`FlightLayer`]. Clones are handles to the
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
/// * **Threads**: any number of threads may call everything, while others record. Dumps wait for
///   each other while they copy the records, not while they write.
/// * **Signals**: nothing here is async-signal-safe. To dump on a signal, use
///   [`dump_on_signal`](FlightRecorder::dump_on_signal).
/// * **Fork**: a child has a copy of the records, and may dump. If another thread of the parent was
///   copying records at the time of the fork, the child's dumps wait forever. Panics in the child
///   dump to the same file as in the parent; signals do not dump.
/// * **Memory**: `bytes_per_cpu` for every CPU that has recorded something, and the same again from
///   the first dump on. During a dump, a copy of all records takes memory too. The memory is freed
///   when layer and handles are dropped.
#[derive(Debug, Clone)]
pub struct FlightRecorder {
    recording: Arc<Recording>,
}

impl FlightRecorder {
    /// The minimum number of bytes for each CPU: 8 KiB.
    ///
    /// ```
    /// use percid_tracing::FlightRecorder;
    ///
    /// let (_layer, recorder) = FlightRecorder::builder().bytes_per_cpu(0).build();
    /// assert_eq!(recorder.bytes_per_cpu(), FlightRecorder::MIN_BYTES);
    /// ```
    pub const MIN_BYTES: usize = 8 * RECORD_BYTES;

    /// The maximum number of bytes for each CPU: 8 MiB, or 512 KiB if addresses have 32 bits.
    ///
    /// ```
    /// use percid_tracing::FlightRecorder;
    ///
    /// let (_layer, recorder) = FlightRecorder::builder().bytes_per_cpu(usize::MAX).build();
    /// assert_eq!(recorder.bytes_per_cpu(), FlightRecorder::MAX_BYTES);
    /// ```
    pub const MAX_BYTES: usize = Ring::MAX_BYTES;

    /// Returns a builder with the default settings.
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

    /// Returns the number of bytes of records that are kept for each CPU.
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

    /// Writes the current records, ordered by time. Later dumps contain them, too.
    ///
    /// The dump contains every record that was stored before the call, in this thread or in one
    /// that has synchronised with it. Newer records may have overwritten some of these. The dump
    /// may contain records that are stored during the call. It ends even if other threads record
    /// without a pause.
    ///
    /// Writing is buffered here. It takes one to three microseconds per record. The memory is that
    /// of the records plus 32 bytes for each.
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
    /// The error of the writer. Then a part of the dump has been written.
    pub fn dump(&self, format: Format, out: impl Write) -> io::Result<Dumped> {
        dump::dump(&self.recording, format, out)
    }

    /// Dumps to a file whenever a thread panics from now on, also if the panic is caught or aborts
    /// the process.
    ///
    /// The installed hook writes the dump and then calls the previous hook. After several panics,
    /// the file has the dump of the last one. A dump is first written to a file beside it whose
    /// name ends in `.partial`. It replaces the previous dump when it is complete. If it cannot be
    /// written, a line on standard error has the reason. The hook holds the recorder.
    ///
    /// Users who can write to the file's folder can redirect the dump by a link. So the folder
    /// should not be a shared one such as `/tmp`.
    ///
    /// To dump to something other than a file, call [`dump`](FlightRecorder::dump) in your own
    /// hook.
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
        on_panic::install(self.recording.clone(), Destination { path: path.into(), format });
    }

    /// Dumps to a file whenever the process gets a signal from now on (`SIGUSR1`, for example).
    /// Only on Unix.
    ///
    /// The handler only wakes a thread named `flight-recorder`, which this call starts. It writes
    /// the file as [`dump_on_panic`](FlightRecorder::dump_on_panic) does. So the dump needs that
    /// thread to run, and follows some moments after the signal. Signals that arrive while it
    /// writes cause one dump. A previous handler is called too; the signal's default action is not.
    /// Thread and recorder exist as long as the process.
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
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the number is not a signal's, or that of a
    /// signal that must not be handled so (`SIGKILL`, `SIGSTOP`, `SIGILL`, `SIGFPE`, `SIGSEGV`).
    /// The system's error if it refuses the handler, the pipe or the thread.
    #[cfg(unix)]
    pub fn dump_on_signal(
        &self,
        signal: i32,
        path: impl Into<PathBuf>,
        format: Format,
    ) -> io::Result<()> {
        on_signal::start(self.recording.clone(), signal, Destination { path: path.into(), format })
    }
}

/// A builder of a recorder.
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
    /// Sets the number of bytes of records that are kept for each CPU. The default is 1 MiB (512
    /// KiB if addresses have 32 bits). It is rounded up to a power of two, and to
    /// [`MIN_BYTES`](FlightRecorder::MIN_BYTES) or down to
    /// [`MAX_BYTES`](FlightRecorder::MAX_BYTES).
    ///
    /// An event takes 48 bytes and its values: 10 for a number, 4 and its length for a string. When
    /// the memory is full, the oldest eighth is dropped at once.
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

    /// Creates the layer, for a subscriber, and the handle, for dumps.
    ///
    /// It also runs percid's initialization of the process, so that no event waits for it: see
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
    /// Returns the recording, for tests that read or damage records.
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
