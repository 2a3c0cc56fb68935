//! The folder in which kernels and guest programs are kept between runs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};

/// The directories that outlive a run.
#[derive(Debug, Clone)]
pub struct Cache {
    kernels: PathBuf,
    guest: PathBuf,
}

impl Cache {
    /// Kernels go to `$XDG_CACHE_HOME/percid-vm` if that is set and otherwise,
    /// like everything that is built for the guest, below the cargo target
    /// directory that this very program was built into.
    pub fn find() -> Self {
        let target = target_dir().unwrap_or_else(|| env::temp_dir().join("percid-vm-target"));
        let kernels = match env::var_os("XDG_CACHE_HOME") {
            Some(home) if !home.is_empty() => PathBuf::from(home).join("percid-vm"),
            _ => target.join("vm-kernels"),
        };
        Self { kernels, guest: target.join("vm-guest") }
    }

    /// Makes a cache below `root`, for tests.
    pub fn below(root: &Path) -> Self {
        Self { kernels: root.join("vm-kernels"), guest: root.join("vm-guest") }
    }

    /// Returns the directory of the kernels.
    pub fn kernels(&self) -> &Path {
        &self.kernels
    }

    /// Returns the cargo target directory of the guest's programs: static builds must not share one
    /// with the host's, whose flags differ.
    pub fn guest(&self) -> &Path {
        &self.guest
    }
}

/// Cargo's notes about the compiler, in every target directory. Its other mark, the tag of a cache,
/// is missing if another program made the directory.
const MARK: &str = ".rustc_info.json";

/// Finds Cargo's target directory among the ancestors of this binary, with any profile, target
/// triple or `CARGO_TARGET_DIR`.
fn target_dir() -> Option<PathBuf> {
    let exe = env::current_exe().ok()?;
    let dir = exe.ancestors().find(|dir| dir.join(MARK).is_file())?;
    Some(dir.to_path_buf())
}

/// A directory of our own that disappears with the value.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new, empty directory in `parent`.
    pub fn new_in(parent: &Path) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("percid-vm-{}-{number}", process::id()));
        fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
        Ok(Self(dir))
    }

    /// Makes a new, empty directory among the system's temporary files.
    pub fn new() -> Result<Self> {
        Self::new_in(&env::temp_dir())
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // No thread is left to hear of a failure, and the next run does not care.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_directories_are_distinct_and_temporary() {
        let first = Scratch::new().expect("temporary directory");
        let second = Scratch::new().expect("temporary directory");
        assert_ne!(first.path(), second.path());
        let path = first.path().to_path_buf();
        assert!(path.is_dir());
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn the_test_binary_finds_its_target_directory() {
        let dir = target_dir().expect("tests are built by cargo");
        assert!(dir.join(MARK).is_file());
    }
}
