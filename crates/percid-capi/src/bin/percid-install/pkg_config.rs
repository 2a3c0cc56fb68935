//! The file that pkg-config reads.

use std::path::Path;

use crate::cmake::STAYS;
use crate::parts::LibraryType;
use crate::setting::Setting;

/// Returns the text of `percid.pc`.
pub(crate) fn file(setting: &Setting<'_>) -> String {
    let directories = setting.directories;
    let prefix = &directories.prefix;
    let needed = setting.native_libraries.join(" ");
    // Without a shared library every program is linked with the static one, and needs its
    // dependencies.
    let shared = setting.has(LibraryType::Cdylib);
    let (public, private) = if shared { ("", needed.as_str()) } else { (needed.as_str(), "") };
    let lines = [
        format!("prefix={}", prefix.display()),
        format!("libdir={}", from_prefix(&directories.lib, prefix)),
        format!("includedir={}", from_prefix(&directories.include, prefix)),
        // This option is not among the libraries, because Go refuses flags that it does not know.
        format!("module_libs={STAYS}"),
        String::new(),
        "Name: percid".to_owned(),
        "Description: Per-CPU data for user space".to_owned(),
        format!("Version: {}", env!("CARGO_PKG_VERSION")),
        format!("Libs: -L\"${{libdir}}\" -lpercid {public}"),
        format!("Libs.private: {private}"),
        "Cflags: -I\"${includedir}\"".to_owned(),
    ];
    lines.map(|line| line.trim_end().to_owned() + "\n").concat()
}

/// Returns a directory relative to the prefix if it is below, so that the installation can be
/// moved.
fn from_prefix(directory: &Path, prefix: &Path) -> String {
    match directory.strip_prefix(prefix) {
        Ok(rest) => format!("${{prefix}}/{}", rest.display()),
        Err(_) => directory.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directories::Directories;
    use crate::options::Options;
    use crate::parts::Parts;

    fn described(types: &[LibraryType]) -> String {
        let options = Options {
            prefix: "/usr".into(),
            includedir: Some("/opt/include".into()),
            ..Options::default()
        };
        file(&Setting {
            directories: &Directories::from_options(&options).expect("good paths"),
            parts: &Parts { libraries: types.to_vec(), benchmark: false },
            native_libraries: &["-lrt".to_owned(), "-lm".to_owned()],
        })
    }

    #[test]
    fn directories_below_the_prefix_move_with_it() {
        let text = described(&[LibraryType::Cdylib]);
        assert!(text.contains("prefix=/usr\nlibdir=${prefix}/lib\nincludedir=/opt/include\n"));
    }

    #[test]
    fn what_the_library_needs_is_private_unless_it_is_static_only() {
        let both = described(&[LibraryType::Cdylib, LibraryType::Staticlib]);
        let libs = "Libs: -L\"${libdir}\" -lpercid\nLibs.private: -lrt -lm\n";
        assert!(both.contains(libs));
        assert!(both.contains("\nmodule_libs=-Wl,-z,nodelete\n"));
        let only_static = described(&[LibraryType::Staticlib]);
        let libs = "Libs: -L\"${libdir}\" -lpercid -lrt -lm\nLibs.private:\n";
        assert!(only_static.contains(libs));
    }
}
