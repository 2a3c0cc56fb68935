//! The file for the dumps of a hook or a signal.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::dump;
use crate::format::Format;
use crate::recording::Recording;

/// Held while a dump is written: hooks and signals may have the same path.
static WRITING: Mutex<()> = Mutex::new(());

#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

impl Destination {
    /// Dumps to the file. An error cannot be returned to a caller, so it is printed to standard
    /// error.
    pub(crate) fn write(&self, recording: &Recording) {
        if let Err(error) = self.try_write(recording) {
            let path = self.path.display();
            // Not by `eprintln`, which panics if standard error is closed.
            let _ = writeln!(io::stderr(), "flight recorder: no dump to {path}: {error}");
        }
    }

    /// Dumps to a new file, and renames it. If that fails, the previous dump remains.
    fn try_write(&self, recording: &Recording) -> io::Result<()> {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut partial = OsString::from(&self.path);
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        dump::dump(recording, self.format, File::create(&partial)?)?;
        fs::rename(&partial, &self.path)
    }
}
