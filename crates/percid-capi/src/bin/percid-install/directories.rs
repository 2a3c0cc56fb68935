//! Where the installed files will lie, as programs see it.

use std::path::{Path, PathBuf, absolute};

use crate::options::Options;

/// A place for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folder {
    Include,
    Lib,
    PkgConfig,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directories {
    pub(crate) prefix: PathBuf,
    pub(crate) lib: PathBuf,
    pub(crate) include: PathBuf,
    pub(crate) pkg_config: PathBuf,
}

impl Directories {
    pub(crate) fn of(options: &Options) -> Directories {
        // percid.pc is read from anywhere.
        let prefix = absolute(&options.prefix).unwrap_or_else(|_| options.prefix.clone());
        let below = |directory: &Option<PathBuf>, default: &str| {
            prefix.join(directory.as_deref().unwrap_or(Path::new(default)))
        };
        let lib = below(&options.libdir, "lib");
        let pkg_config = match &options.pkgconfigdir {
            Some(directory) => prefix.join(directory),
            None => lib.join("pkgconfig"),
        };
        Directories { lib, pkg_config, include: below(&options.includedir, "include"), prefix }
    }

    pub(crate) fn path(&self, folder: Folder) -> &Path {
        match folder {
            Folder::Include => &self.include,
            Folder::Lib => &self.lib,
            Folder::PkgConfig => &self.pkg_config,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_directories_begin_at_the_prefix() {
        let options = Options {
            prefix: "/usr".into(),
            libdir: Some("lib64".into()),
            includedir: Some("/opt/include".into()),
            ..Options::default()
        };
        let found = Directories::of(&options);
        assert_eq!(found.lib, Path::new("/usr/lib64"));
        assert_eq!(found.include, Path::new("/opt/include"));
        assert_eq!(found.pkg_config, Path::new("/usr/lib64/pkgconfig"));
        let elsewhere = Options { pkgconfigdir: Some("share/pkgconfig".into()), ..options };
        assert_eq!(Directories::of(&elsewhere).pkg_config, Path::new("/usr/share/pkgconfig"));
    }

    #[test]
    fn a_relative_prefix_begins_here() {
        let options = Options { prefix: "stage".into(), ..Options::default() };
        let here = std::env::current_dir().expect("a current directory");
        assert_eq!(Directories::of(&options).include, here.join("stage/include"));
    }
}
