//! Stores in local folders.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::plan::{DESCRIPTION, FAILURES, Plan, RUNS, TABLE};

/// A folder with the runs of one sweep. Several processes may use it at the same time, on several
/// machines if they share the folder. Files appear completely or not at all, and two processes that
/// write the same file write the same bytes.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Opens the store of a plan, or creates it.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder has the runs of another sweep or other contents, or if a
    /// system call fails.
    pub fn open(path: &Path, plan: &Plan) -> Result<Directory, Error> {
        let store = Directory { path: path.to_owned() };
        if let Some(text) = store.read(DESCRIPTION)? {
            let text = String::from_utf8_lossy(&text);
            let named = |fault| match fault {
                Error::OtherSweep(why) => Error::OtherSweep(format!("{}: {why}", path.display())),
                other => other,
            };
            plan.expect_same(&text).map_err(named)?;
            return Ok(store);
        }
        let mut entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                store.write(DESCRIPTION, plan.description().as_bytes())?;
                return Ok(store);
            }
            Err(cause) => return Err(cannot("read", path, cause)),
        };
        if entries.next().is_some() {
            return Err(Error::OtherSweep(format!(
                "{}: expected a new or empty folder, or one with a {DESCRIPTION}",
                path.display()
            )));
        }
        store.write(DESCRIPTION, plan.description().as_bytes())?;
        Ok(store)
    }

    /// Opens an existing store, with the plan in its description.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is not a store, or is one of another version.
    pub fn existing(path: &Path) -> Result<(Directory, Plan), Error> {
        let store = Directory { path: path.to_owned() };
        let text = store.read(DESCRIPTION)?.ok_or_else(|| {
            Error::OtherSweep(format!("{}: expected a {DESCRIPTION}", path.display()))
        })?;
        let plan = Plan::described_by(&String::from_utf8_lossy(&text))?;
        Ok((store, plan))
    }

    /// Returns the names of all files with runs, below [`RUNS`].
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn runs(&self) -> Result<Vec<String>, Error> {
        self.list(RUNS)
    }

    /// Returns the names of all failed units, below [`FAILURES`].
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn failures(&self) -> Result<Vec<String>, Error> {
        self.list(FAILURES)
    }

    fn list(&self, below: &str) -> Result<Vec<String>, Error> {
        let root = self.path.join(below);
        let mut names = Vec::new();
        let mut folders = vec![(root, String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
                Err(cause) => return Err(cannot("read", &folder, cause)),
            };
            for entry in entries {
                let entry = entry.map_err(|cause| cannot("read", &folder, cause))?;
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push((entry.path(), name + "/")),
                    // The unfinished file of a process that ended has another extension.
                    _ if name.ends_with(".parquet") => names.push(name),
                    _ => {}
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns the bytes of a file with runs, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn read_runs(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.read(&format!("{RUNS}/{name}"))
    }

    /// Writes a file with runs, and removes an earlier failure of the unit.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails; then the file is not replaced.
    pub fn write_runs(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write(&format!("{RUNS}/{name}"), bytes)?;
        let _ = fs::remove_file(self.path.join(FAILURES).join(name));
        Ok(())
    }

    /// Writes the reason why a unit could not be computed.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn write_failure(&self, name: &str, why: &str) -> Result<(), Error> {
        self.write(&format!("{FAILURES}/{name}"), why.as_bytes())
    }

    /// Returns the reason why a unit could not be computed.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn read_failure(&self, name: &str) -> Result<String, Error> {
        let bytes = self.read(&format!("{FAILURES}/{name}"))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes the table of all runs.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn write_table(&self, bytes: &[u8]) -> Result<(), Error> {
        self.write(TABLE, bytes)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(cannot("read", &path, cause)),
        }
    }

    /// Writes to a temporary file in the same folder, and renames it.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let path = self.path.join(name);
        let nth = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_extension(format!("{}-{nth}.part", process::id()));
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            let mut file = File::create(&beside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&beside, &path)
        });
        written.map_err(|cause| {
            let _ = fs::remove_file(&beside);
            cannot("write", &path, cause)
        })
    }
}

fn cannot(do_what: &str, path: &Path, cause: io::Error) -> Error {
    Error::Io { what: format!("cannot {do_what} {}", path.display()), cause }
}
