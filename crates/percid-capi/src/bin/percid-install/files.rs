//! The installed files: one line for each.

use crate::directories::Folder::{self, Bin, Cmake, Include, Lib, PkgConfig};
use crate::parts::LibraryType::{Cdylib, Staticlib};
use crate::parts::{Part, Parts};
use crate::product_names::{BENCHMARK, SHARED, SONAME, STATIC};
use crate::setting::Setting;
use crate::{cmake, pkg_config};

/// Every file, in any order.
pub(crate) const FILES: &[File] = &[
    text(Include, "percid.h", include_str!("../../../include/percid.h")),
    text(Include, "percid_interface.h", include_str!("../../../include/percid_interface.h")),
    text(Include, "percid_inline.h", include_str!("../../../include/percid_inline.h")),
    text(Include, "percid_sections.h", include_str!("../../../include/percid_sections.h")),
    text(Include, "percid.hpp", include_str!("../../../include/percid.hpp")),
    text(Include, "percid.cppm", include_str!("../../../include/percid.cppm")),
    product(Lib, SHARED, 0o755).only_with(Part::Library(Cdylib)),
    link(Lib, SONAME, SHARED).only_with(Part::Library(Cdylib)),
    link(Lib, "libpercid.so", SONAME).only_with(Part::Library(Cdylib)),
    product(Lib, STATIC, 0o644).only_with(Part::Library(Staticlib)),
    product(Bin, BENCHMARK, 0o755).only_with(Part::Benchmark),
    text(Lib, "percid/valgrind.supp", include_str!("../../../valgrind/percid.supp")),
    written(PkgConfig, "percid.pc", pkg_config::file),
    written(Cmake, "percidConfig.cmake", cmake::config),
    written(Cmake, "percidConfigVersion.cmake", cmake::version),
];

/// An installed file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) folder: Folder,
    pub(crate) name: &'static str,
    pub(crate) content: Content,
    /// The part to which it belongs.
    with: Option<Part>,
}

/// The content of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    /// This text.
    Text(&'static str),
    /// A text that depends on the installed parts and their folders.
    Written(fn(&Setting<'_>) -> String),
    /// The product of the build with the file's name, installed with this mode.
    Product(u32),
    /// A symbolic link to a file next to it.
    Link(&'static str),
}

impl File {
    /// Returns `true` if it belongs to an installation of these parts.
    pub(crate) fn belongs_to(&self, parts: &Parts) -> bool {
        self.with.is_none_or(|part| parts.have(part))
    }

    const fn only_with(self, part: Part) -> File {
        File { with: Some(part), ..self }
    }
}

const fn text(folder: Folder, name: &'static str, text: &'static str) -> File {
    File { folder, name, content: Content::Text(text), with: None }
}

const fn written(folder: Folder, name: &'static str, text: fn(&Setting<'_>) -> String) -> File {
    File { folder, name, content: Content::Written(text), with: None }
}

const fn product(folder: Folder, name: &'static str, mode: u32) -> File {
    File { folder, name, content: Content::Product(mode), with: None }
}

const fn link(folder: Folder, name: &'static str, target: &'static str) -> File {
    File { folder, name, content: Content::Link(target), with: None }
}
