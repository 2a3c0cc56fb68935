//! The optional parts of an installation.

use crate::options::LibraryType;

/// A part that not every installation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Library(LibraryType),
    /// `percid-bench-c`.
    Benchmark,
}

/// The parts to build or to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) libraries: Vec<LibraryType>,
    pub(crate) benchmark: bool,
}

impl Parts {
    pub(crate) fn have(&self, part: Part) -> bool {
        match part {
            Part::Library(library) => self.libraries.contains(&library),
            Part::Benchmark => self.benchmark,
        }
    }
}
