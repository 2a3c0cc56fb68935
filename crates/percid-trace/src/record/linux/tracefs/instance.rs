//! A trace of our own beside whatever else is traced: a folder in `instances`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::place;
use crate::event::{Cpu, Tid};

/// Prefix of the folders' names, followed by the number of the recording process.
const PREFIX: &str = "percid-";

/// Ends with this value. All its pipes must have been closed by then.
#[derive(Debug)]
pub(super) struct Instance(PathBuf);

impl Instance {
    /// A trace that has not begun.
    pub(super) fn new(tracefs: &Path) -> Result<Instance, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let instances = tracefs.join("instances");
        remove_stale(&instances);
        let nr = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = instances.join(format!("{PREFIX}{}-{nr}", std::process::id()));
        fs::create_dir(&path).map_err(|error| place::missing(&path, &error))?;
        let instance = Instance(path);
        instance.write("tracing_on", "0")?;
        Ok(instance)
    }

    /// Its folder.
    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(file);
        let mut open = OpenOptions::new();
        open.write(true).truncate(true);
        let written = open.open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| place::missing(&path, &error))
    }

    /// Writes, without taking away what has been written before.
    pub(super) fn append(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(file);
        let opened = OpenOptions::new().append(true).open(&path);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| place::missing(&path, &error))
    }

    pub(super) fn read(&self, file: &str) -> Result<String, String> {
        let path = self.0.join(file);
        // The kernel hands out some of its files to the first call only.
        let mut text = vec![0; MAX_FILE_BYTES];
        let read = File::open(&path).and_then(|mut file| fill(&mut file, &mut text));
        text.truncate(read.map_err(|error| place::missing(&path, &error))?);
        String::from_utf8(text).map_err(|_| format!("{}: no text", path.display()))
    }

    /// The pipe of each CPU that may ever exist.
    pub(super) fn pipes(&self) -> Result<Vec<(Cpu, File)>, String> {
        let mut pipes = Vec::new();
        for cpu in self.cpus()? {
            let path = self.0.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let mut open = OpenOptions::new();
            open.read(true).custom_flags(libc::O_NONBLOCK);
            pipes.push((cpu, open.open(&path).map_err(|error| place::missing(&path, &error))?));
        }
        Ok(pipes)
    }

    fn cpus(&self) -> Result<Vec<Cpu>, String> {
        let path = self.0.join("per_cpu");
        let entries = fs::read_dir(&path).map_err(|error| place::missing(&path, &error))?;
        let number = |entry: io::Result<fs::DirEntry>| {
            entry.ok()?.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()
        };
        let mut cpus: Vec<Cpu> = entries.filter_map(number).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// Returns the number of events that the kernel could not keep, by its own count.
    pub(super) fn lost(&self) -> u64 {
        let cpus = self.cpus().unwrap_or_default();
        let stats = |cpu| self.read(&format!("per_cpu/cpu{cpu}/stats")).unwrap_or_default();
        cpus.into_iter().map(stats).map(|stats| lost_by(&stats)).sum()
    }
}

/// More bytes than a file has that is read whole.
const MAX_FILE_BYTES: usize = 1 << 17;

fn fill(file: &mut File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    loop {
        match file.read(&mut bytes[filled..])? {
            0 => return Ok(filled),
            more => filled += more,
        }
    }
}

fn lost_by(stats: &str) -> u64 {
    let count = |line: &str| {
        let (what, count) = line.split_once(": ")?;
        let lost = matches!(what, "overrun" | "commit overrun" | "dropped events");
        lost.then(|| count.trim().parse::<u64>().ok())?
    };
    stats.lines().filter_map(count).sum()
}

impl Drop for Instance {
    fn drop(&mut self) {
        // An error here leaves a folder behind, which the next recording removes.
        let _ = self.write("tracing_on", "0");
        for _ in 0..ATTEMPTS {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    thread::sleep(Duration::from_millis(10));
                }
                _ => break,
            }
        }
    }
}

/// The kernel may take a moment to give up the pipes.
const ATTEMPTS: u32 = 10;

/// Removes what recordings have left behind that were killed. The kernel keeps those in use.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(owner);
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The process that made the instance of this name.
fn owner(name: &str) -> Option<Tid> {
    let (owner, nr) = name.strip_prefix(PREFIX)?.split_once('-')?;
    nr.parse::<u32>().ok()?;
    owner.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_recordings_have_an_owner() {
        assert_eq!(owner("percid-12-0"), Some(12));
        for other in ["percid-12", "percid-x-0", "percid-12-0-a", "perf-12-0", "percid-"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn the_kernels_counts_of_lost_events_are_added() {
        let stats = "entries: 5\noverrun: 7\ncommit overrun: 1\nbytes: 9\noldest event ts:  1.0\n\
                     dropped events: 2\nread events: 3\n";
        assert_eq!(lost_by(stats), 10);
    }
}
