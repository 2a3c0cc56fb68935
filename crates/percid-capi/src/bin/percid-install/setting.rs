//! The data for the installed files that describe an installation.

use crate::directories::Directories;
use crate::parts::{LibraryType, Part, Parts};

/// The installed parts and their folders.
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
