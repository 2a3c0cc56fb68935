//! Files that tests write.

use std::path::{Path, PathBuf};

/// A file for one test, removed when the test has ended.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        Scratch(
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id())),
        )
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("the build directory has a name in UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
