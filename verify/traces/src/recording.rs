//! Recordings of the workload.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid_trace::record::{Backend, Options, Recorded, Refusal, Target, record};

use crate::workload::{self, Notes};

/// Longer than the workload takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

/// For each CPU. Machines of many CPUs have little memory.
const KERNEL_BUFFER_KIB: u32 = 1024;

/// A recording, and the workload's notes about itself.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) recorded: Recorded,
    pub(crate) notes: Notes,
    /// `true` if everything was recorded, not only the workload.
    pub(crate) is_of_system: bool,
}

/// The limitations of a recording, if it must not be as good as possible.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handicap {
    /// The buffer of each CPU.
    pub(crate) kernel_buffer_kib: u32,
    /// `true` if nothing is read until the workload has written its notes, which it does last.
    pub(crate) reads_late: bool,
}

impl Handicap {
    /// None.
    pub(crate) const NONE: Handicap =
        Handicap { kernel_buffer_kib: KERNEL_BUFFER_KIB, reads_late: false };
}

/// Records the workload, started as a command.
pub(crate) fn of_command(backend: Backend, handicap: Handicap) -> Result<Recording, String> {
    let path = notes_path();
    let words = words(&path)?;
    let options = options(Target::Command(words), backend, handicap);
    let pause = |_| {
        if handicap.reads_late {
            wait_for(&path)
        }
    };
    let recorded = record(&options, &AtomicBool::new(false), pause);
    let recorded = whole(recorded)?;
    match recorded.status {
        Some(status) if status.success() => {}
        status => return Err(format!("the workload ended with {status:?}")),
    }
    Ok(Recording { recorded, notes: read_notes(&path)?, is_of_system: false })
}

/// Waits until a file exists. A workload that never writes it has failed, which the recording
/// reports: the limit only ends what hangs.
fn wait_for(path: &Path) {
    let end = Instant::now() + LIMIT;
    while !path.exists() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Records everything while the workload runs.
pub(crate) fn of_system(backend: Backend) -> Result<Recording, String> {
    let path = notes_path();
    let words = words(&path)?;
    let options = options(Target::System, backend, Handicap::NONE);
    let (stop, mut running) = (AtomicBool::new(false), Running::Not);
    // The first look at the progress comes after the recording has begun.
    let recorded = record(&options, &stop, |_| {
        running.go_on(&words);
        stop.store(matches!(running, Running::Over(_)), Relaxed);
    });
    let recorded = whole(recorded)?;
    match running {
        Running::Over(Ok(())) => {}
        running => return Err(format!("the workload: {running:?}")),
    }
    Ok(Recording { recorded, notes: read_notes(&path)?, is_of_system: true })
}

/// The workload beside a recording.
#[derive(Debug)]
enum Running {
    Not,
    Begun(Child),
    Over(Result<(), String>),
}

impl Running {
    fn go_on(&mut self, words: &[OsString]) {
        let next = match self {
            Running::Not => {
                let begun = Command::new(&words[0]).args(&words[1..]).spawn();
                begun.map_or_else(|error| Running::Over(Err(error.to_string())), Running::Begun)
            }
            Running::Begun(child) => match child.try_wait() {
                Ok(None) => return,
                Ok(Some(status)) if status.success() => Running::Over(Ok(())),
                Ok(Some(status)) => Running::Over(Err(status.to_string())),
                Err(error) => Running::Over(Err(error.to_string())),
            },
            Running::Over(_) => return,
        };
        *self = next;
    }
}

fn options(target: Target, backend: Backend, handicap: Handicap) -> Options {
    Options {
        backend: Some(backend),
        kernel_buffer_kib: handicap.kernel_buffer_kib,
        limit: Some(LIMIT),
        ..Options::new(target)
    }
}

/// Returns a recording that was complete.
fn whole(recorded: Result<Recorded, Refusal>) -> Result<Recorded, String> {
    let recorded = recorded.map_err(|refusal| refusal.to_string())?;
    match recorded.broken {
        Some(why) => Err(why),
        None => Ok(recorded),
    }
}

fn notes_path() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nr = NEXT.fetch_add(1, Relaxed);
    std::env::temp_dir().join(format!("percid-traces-{}-{nr}", std::process::id()))
}

/// This program again, as the one that is recorded.
fn words(notes: &Path) -> Result<Vec<OsString>, String> {
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    Ok(vec![this.into(), workload::NAME.into(), notes.into()])
}

fn read_notes(path: &Path) -> Result<Notes, String> {
    let notes = Notes::read(path);
    // A file that stays does no harm.
    let _ = fs::remove_file(path);
    notes
}
