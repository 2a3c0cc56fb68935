//! The file that pkg-config reads.

use std::path::Path;

use crate::directories::Directories;
use crate::options::{LibraryType, Options};

/// The text of `percid.pc`.
pub(crate) fn file(
    directories: &Directories,
    native_libraries: &[String],
    options: &Options,
) -> String {
    let prefix = &directories.prefix;
    let needed = native_libraries.join(" ");
    // Without a shared library every program is linked with the static one and needs what that
    // needs.
    let shared = options.library_types.contains(&LibraryType::Cdylib);
    let (public, private) = if shared { ("", needed.as_str()) } else { (needed.as_str(), "") };
    let lines = [
        format!("prefix={}", prefix.display()),
        format!("libdir={}", from_prefix(&directories.lib, prefix)),
        format!("includedir={}", from_prefix(&directories.include, prefix)),
        String::new(),
        "Name: percid".to_owned(),
        "Description: Per-CPU data for user space".to_owned(),
        format!("Version: {}", env!("CARGO_PKG_VERSION")),
        format!("Libs: -L${{libdir}} -lpercid {public}"),
        format!("Libs.private: {private}"),
        "Cflags: -I${includedir}".to_owned(),
    ];
    lines.map(|line| line.trim_end().to_owned() + "\n").concat()
}

/// A directory by way of the prefix where it lies below, so that the installation can be moved.
fn from_prefix(directory: &Path, prefix: &Path) -> String {
    match directory.strip_prefix(prefix) {
        Ok(rest) => format!("${{prefix}}/{}", rest.display()),
        Err(_) => directory.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(types: &[LibraryType]) -> String {
        let options = Options {
            prefix: "/usr".into(),
            includedir: Some("/opt/include".into()),
            library_types: types.to_vec(),
            ..Options::default()
        };
        file(&Directories::of(&options), &["-lrt".to_owned(), "-lm".to_owned()], &options)
    }

    #[test]
    fn directories_below_the_prefix_move_with_it() {
        let text = described(&[LibraryType::Cdylib]);
        assert!(text.contains("prefix=/usr\nlibdir=${prefix}/lib\nincludedir=/opt/include\n"));
    }

    #[test]
    fn what_the_library_needs_is_private_unless_it_is_static_only() {
        let both = described(&[LibraryType::Cdylib, LibraryType::Staticlib]);
        assert!(both.contains("Libs: -L${libdir} -lpercid\nLibs.private: -lrt -lm\n"));
        let only_static = described(&[LibraryType::Staticlib]);
        assert!(only_static.contains("Libs: -L${libdir} -lpercid -lrt -lm\nLibs.private:\n"));
    }
}
