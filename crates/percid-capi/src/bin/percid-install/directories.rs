//! Folders of the installed files, as paths of programs.

use std::path::{Path, PathBuf, absolute};

use crate::failure::Failure;
use crate::options::Options;

/// A folder for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folder {
    Bin,
    Include,
    Lib,
    PkgConfig,
    Cmake,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directories {
    pub(crate) prefix: PathBuf,
    pub(crate) bin: PathBuf,
    pub(crate) lib: PathBuf,
    pub(crate) include: PathBuf,
    pub(crate) pkg_config: PathBuf,
    pub(crate) cmake: PathBuf,
}

impl Directories {
    pub(crate) fn from_options(options: &Options) -> Result<Directories, Failure> {
        // The prefix must be absolute: percid.pc is read from any working directory.
        let prefix = absolute(&options.prefix)
            .map_err(|error| format!("--prefix {}: {error}", options.prefix.display()))?;
        let below = |directory: &Option<PathBuf>, default: &str| {
            prefix.join(directory.as_deref().unwrap_or(Path::new(default)))
        };
        let bin = below(&options.bindir, "bin");
        let lib = below(&options.libdir, "lib");
        let pkg_config = match &options.pkgconfigdir {
            Some(directory) => prefix.join(directory),
            None => lib.join("pkgconfig"),
        };
        let cmake = match &options.cmakedir {
            Some(directory) => prefix.join(directory),
            None => lib.join("cmake/percid"),
        };
        let include = below(&options.includedir, "include");
        for folder in [&prefix, &bin, &lib, &include, &pkg_config, &cmake] {
            can_be_told(folder)?;
        }
        Ok(Directories { prefix, bin, lib, include, pkg_config, cmake })
    }

    pub(crate) fn path(&self, folder: Folder) -> &Path {
        match folder {
            Folder::Bin => &self.bin,
            Folder::Include => &self.include,
            Folder::Lib => &self.lib,
            Folder::PkgConfig => &self.pkg_config,
            Folder::Cmake => &self.cmake,
        }
    }

    /// Returns the path of the list of installed files.
    pub(crate) fn manifest(&self) -> PathBuf {
        self.lib.join("percid/manifest")
    }
}

/// Checks that the files for pkg-config and CMake, and the list of the installation, can contain a
/// path.
fn can_be_told(path: &Path) -> Result<(), Failure> {
    let text = path.to_str().ok_or_else(|| format!("{}: expected UTF-8", path.display()))?;
    match text.chars().find(|&letter| letter.is_control() || "\"$\\;".contains(letter)) {
        Some(letter) => Err(format!("{text}: expected a path without {letter:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_directories_begin_at_the_prefix() {
        let options = Options {
            prefix: "/usr".into(),
            bindir: Some("libexec".into()),
            libdir: Some("lib64".into()),
            includedir: Some("/opt/include".into()),
            ..Options::default()
        };
        let found = Directories::from_options(&options).expect("good paths");
        assert_eq!(found.bin, Path::new("/usr/libexec"));
        assert_eq!(found.lib, Path::new("/usr/lib64"));
        assert_eq!(found.include, Path::new("/opt/include"));
        assert_eq!(found.pkg_config, Path::new("/usr/lib64/pkgconfig"));
        assert_eq!(found.cmake, Path::new("/usr/lib64/cmake/percid"));
        let elsewhere = Options {
            pkgconfigdir: Some("share/pkgconfig".into()),
            cmakedir: Some("share/percid".into()),
            ..options
        };
        let found = Directories::from_options(&elsewhere).expect("good paths");
        assert_eq!(found.pkg_config, Path::new("/usr/share/pkgconfig"));
        assert_eq!(found.cmake, Path::new("/usr/share/percid"));
    }

    #[test]
    fn a_relative_prefix_begins_here() {
        let options = Options { prefix: "stage".into(), ..Options::default() };
        let here = std::env::current_dir().expect("a current directory");
        let found = Directories::from_options(&options).expect("good paths");
        assert_eq!(found.include, here.join("stage/include"));
    }

    #[test]
    fn paths_that_other_files_cannot_hold_are_refused() {
        for prefix in ["/a\nb", "/a\"b", "/a$b"] {
            let options = Options { prefix: prefix.into(), ..Options::default() };
            assert!(Directories::from_options(&options).is_err(), "{prefix}");
        }
        let options = Options { prefix: "/a b".into(), ..Options::default() };
        assert!(Directories::from_options(&options).is_ok());
    }
}
