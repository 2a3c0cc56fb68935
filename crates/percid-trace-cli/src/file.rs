//! Traces as files: what was named is read, and what was made is written whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::watch::watched;
use percid_trace::{Error, Trace, parquet, read};

use crate::partial;

/// Interval at which a stop request is checked.
const LOOK: Duration = Duration::from_millis(10);

/// Reads a trace in any format; `-` is standard input.
pub(crate) fn load(path: &Path, interrupt: &Interrupt) -> Result<Trace, Failure> {
    let label = format!("reading {}", path.display());
    let trace = watched(&label, None, interrupt, |control| read_unless(path, &control.stop));
    let Some(trace) = trace.filter(|_| !interrupt.pressed()) else {
        return Err(Failure::Interrupted);
    };
    trace.map_err(|error| match error {
        Error::Io(cause) if cause.kind() == io::ErrorKind::NotFound => {
            Failure::Usage(format!("{}: {cause}{}", path.display(), instead(path)))
        }
        Error::Io(cause) => Failure::new(format!("cannot read {}", path.display()), cause),
        Error::Malformed(malformed) => Failure::Usage(format!("{}: {malformed}", path.display())),
    })
}

/// Returns a hint at the file that exists in place of a missing one.
fn instead(path: &Path) -> String {
    let partial = partial::path_of(path);
    match partial.exists() {
        true => format!(
            ", but {} is: its recording goes on, or was cut off and `percid trace recover` finishes it",
            partial.display()
        ),
        false => String::new(),
    }
}

/// Reads a trace until it is stopped. Reading a pipe without a writer blocks for ever. So a
/// separate thread reads, which ends with the program.
fn read_unless(path: &Path, stop: &AtomicBool) -> Option<Result<Trace, Error>> {
    let (to, from) = mpsc::channel();
    let path = path.to_owned();
    let read = move || match path.as_os_str() == "-" {
        true => read::read_stream(io::stdin()),
        false => read::read(&path),
    };
    thread::spawn(move || drop(to.send(read())));
    loop {
        match from.recv_timeout(LOOK) {
            Ok(trace) => return Some(trace),
            Err(RecvTimeoutError::Timeout) if stop.load(Relaxed) => return None,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let ended = io::Error::other("the thread that reads it has ended");
                return Some(Err(Error::Io(ended)));
            }
        }
    }
}

/// Refuses what cannot be written before minutes of work.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let missing = folder.is_some_and(|folder| !folder.is_dir());
    if missing || path.is_dir() || path.file_name().is_none() {
        let expected = "expected a file in a folder that exists";
        return Err(Failure::Usage(format!("{}: {expected}", path.display())));
    }
    if is_no_file(path) {
        return Ok(());
    }
    let target = target(path);
    let half = half(&target);
    let tried = create(&half, &target).and_then(|_| fs::remove_file(&half));
    tried.map_err(|cause| cannot_write(path, cause))
}

/// Refuses to overwrite the trace by a report, as the trace may be the only copy of the recorded
/// events.
pub(crate) fn spare(report: Option<&Path>, trace: &Path) -> Result<(), Failure> {
    let Some(page) = report else { return Ok(()) };
    let there = |path: &Path| fs::canonicalize(path).ok().filter(|path| path.is_file());
    if there(page).is_some() && there(page) == there(trace) {
        let expected = "this is the trace, expected another file";
        return Err(Failure::Usage(format!("--html {}: {expected}", page.display())));
    }
    Ok(())
}

/// Refuses Parquet where it cannot be written, before anything is recorded or read.
pub(crate) fn check_parquet() -> Result<(), Failure> {
    parquet::supported().map_err(|error| match error {
        Error::Io(cause) => Failure::new("cannot write Parquet", cause),
        Error::Malformed(malformed) => Failure::Usage(malformed.to_string()),
    })
}

/// Writes a file under a temporary name beside `path` and renames it, so that no reader sees half
/// of it. Pipes, devices and sockets, such as `/dev/stdout`, are written to directly.
pub(crate) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, Error>,
) -> Result<T, Failure> {
    let target = target(path);
    let (to, half) = if is_no_file(path) {
        (File::options().write(true).open(path), None)
    } else {
        let half = half(&target);
        (create(&half, &target), Some(half))
    };
    let written = to.map_err(Error::Io).and_then(|file| {
        let mut file = BufWriter::new(file);
        let written = write(&mut file)?;
        file.flush()?;
        half.as_ref().map_or(Ok(()), |half| fs::rename(half, &target))?;
        Ok(written)
    });
    written.map_err(|error| {
        if let Some(half) = half {
            let _ = fs::remove_file(half);
        }
        let cause = match error {
            Error::Io(cause) => cause,
            Error::Malformed(malformed) => io::Error::other(malformed.to_string()),
        };
        cannot_write(path, cause)
    })
}

fn cannot_write(path: &Path, cause: io::Error) -> Failure {
    Failure::new(format!("cannot write {}", path.display()), cause)
}

/// Makes the temporary file, which must not be there, with the rights of the file that it will
/// replace.
fn create(half: &Path, target: &Path) -> io::Result<File> {
    let file = File::options().write(true).create_new(true).open(half)?;
    if let Ok(replaced) = fs::metadata(target) {
        file.set_permissions(replaced.permissions())?;
    }
    Ok(file)
}

/// Returns `true` if it exists and is a device, a pipe or a socket.
fn is_no_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// Returns the target of a symbolic link, so that the file is replaced and not the link.
fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The temporary name.
fn half(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
