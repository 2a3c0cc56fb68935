//! The optional parts of an installation.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LibraryType {
    Cdylib,
    Staticlib,
}

impl LibraryType {
    pub(crate) const ALL: [LibraryType; 2] = [LibraryType::Cdylib, LibraryType::Staticlib];

    pub(crate) fn name(self) -> &'static str {
        match self {
            LibraryType::Cdylib => "cdylib",
            LibraryType::Staticlib => "staticlib",
        }
    }

    /// Returns the library with this name, in any case.
    pub(crate) fn named(name: &str) -> Option<LibraryType> {
        LibraryType::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }
}

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
