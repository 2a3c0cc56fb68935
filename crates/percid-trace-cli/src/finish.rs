//! Conversion of recorded events to the requested file.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::watch::watched;
use percid_trace::spool::{Source, Stored, store};

use crate::file;

/// Writes the Parquet file, and reports the progress.
pub(crate) fn finish(
    source: &(impl Source + Sync),
    to: &Path,
    interrupt: &Interrupt,
) -> Result<Stored, Failure> {
    let label = format!("writing {}", to.display());
    watched(&label, None, interrupt, |control| {
        file::replace(to, |to| store(source, to, &mut |done| control.done.store(done, Relaxed)))
    })
}
