//! What is known when the files that tell about an installation are written.

use crate::directories::Directories;
use crate::options::LibraryType;
use crate::parts::{Part, Parts};

/// What every module is linked with that uses percid: threads keep pointers to its critical
/// sections, so it has to stay loaded. To a program it means nothing.
pub(crate) const STAYS: &str = "-Wl,-z,nodelete";

/// What is installed where.
#[derive(Debug)]
pub(crate) struct Setting<'s> {
    pub(crate) directories: &'s Directories,
    pub(crate) parts: &'s Parts,
    /// The system's libraries that percid needs, as options of the linker.
    pub(crate) native_libraries: &'s [String],
}

impl Setting<'_> {
    pub(crate) fn has(&self, library: LibraryType) -> bool {
        self.parts.have(Part::Library(library))
    }
}
