//! The list of an installation's files, which is one of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::destination::Destination;
use crate::failure::Failure;
use crate::fingerprint::fingerprint;

/// The installed files. Paths are those that programs use.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The prefix of the installation. A copy of the tree contains a copy of the list.
    pub(crate) prefix: PathBuf,
    pub(crate) files: Vec<Installed>,
    /// Folders that were created for them, outer ones first.
    pub(crate) folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed {
    pub(crate) path: PathBuf,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// Its fingerprint.
    File(u64),
    /// The target of the link.
    Link(String),
}

/// The state of an installed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    Unchanged,
    Changed,
    Missing,
}

const TITLE: &str = "# What percid-install has put here, for percid-install uninstall.";

impl Manifest {
    /// Reads the list of an installation; `None` if there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Manifest>, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let wrong = |line| format!("{}:{line}: expected a line of percid-install", path.display());
        Manifest::parse(&text).map(Some).map_err(wrong)
    }

    /// # Errors
    ///
    /// Returns the number of the first invalid line.
    fn parse(text: &str) -> Result<Manifest, usize> {
        let mut manifest = Manifest::default();
        // `lines` would remove a carriage return at the end of a path as part of the line ending.
        let mut lines = (1_usize..).zip(text.split_terminator('\n'));
        if lines.next().map(|(_, line)| line) != Some(TITLE) {
            return Err(1);
        }
        for (number, line) in lines {
            manifest.take(line).ok_or(number)?;
        }
        Ok(manifest)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let what = match kind {
            "prefix" => {
                self.prefix = absolute(rest)?;
                return Some(());
            }
            "folder" => {
                self.folders.push(absolute(rest)?);
                return Some(());
            }
            "file" => What::File(u64::from_str_radix(rest.split_once(' ')?.0, 16).ok()?),
            "link" => What::Link(rest.split_once(' ')?.0.to_owned()),
            _ => return None,
        };
        self.files.push(Installed { path: absolute(rest.split_once(' ')?.1)?, what });
        Some(())
    }

    pub(crate) fn text(&self) -> String {
        let files = self.files.iter().map(|file| {
            let path = file.path.display();
            match &file.what {
                What::File(fingerprint) => format!("file {fingerprint:016x} {path}\n"),
                What::Link(target) => format!("link {target} {path}\n"),
            }
        });
        let folders = self.folders.iter().map(|path| format!("folder {}\n", path.display()));
        let first = format!("{TITLE}\nprefix {}\n", self.prefix.display());
        std::iter::once(first).chain(files).chain(folders).collect()
    }

    /// Adds created folders, unless an earlier installation has listed them.
    pub(crate) fn add_folders(&mut self, made: &[PathBuf]) {
        let new = made.iter().filter(|folder| !self.folders.contains(folder));
        let new: Vec<PathBuf> = new.cloned().collect();
        self.folders.extend(new);
        // A path sorts after its prefixes.
        self.folders.sort();
    }

    pub(crate) fn lists(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.path == path)
    }
}

impl Installed {
    pub(crate) fn state(&self, destination: Destination<'_>) -> Result<FileState, Failure> {
        let path = destination.real(&self.path);
        let unchanged = match &self.what {
            What::Link(target) => fs::read_link(&path).map(|found| found == Path::new(target)),
            // A link to a file of the same content was not installed.
            What::File(_) if path.is_symlink() => Ok(false),
            What::File(installed) => fs::read(&path).map(|found| fingerprint(&found) == *installed),
        };
        match unchanged {
            Ok(true) => Ok(FileState::Unchanged),
            Ok(false) => Ok(FileState::Changed),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(FileState::Missing),
                io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => Ok(FileState::Changed),
                _ => Err(format!("cannot read {}: {error}", path.display())),
            },
        }
    }
}

fn absolute(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(path)).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let manifest = Manifest {
            prefix: "/a b".into(),
            files: vec![
                Installed { path: "/a b/c d".into(), what: What::File(7) },
                Installed { path: "/a b/return\r".into(), what: What::File(8) },
                Installed { path: "/a b/e".into(), what: What::Link("c d".replace(' ', "-")) },
            ],
            folders: vec!["/a b".into()],
        };
        assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
    }

    #[test]
    fn outer_folders_come_first() {
        let mut manifest = Manifest { folders: vec!["/a/b".into()], ..Manifest::default() };
        manifest.add_folders(&["/a".into(), "/a/b".into(), "/a/b-c".into()]);
        assert_eq!(manifest.folders, ["/a", "/a/b", "/a/b-c"].map(PathBuf::from));
    }

    #[test]
    fn what_is_wrong_is_found() {
        assert_eq!(Manifest::parse(""), Err(1));
        for line in ["", "file", "file x /a", "file 1 a", "link b", "socket 1 /a"] {
            assert_eq!(Manifest::parse(&format!("{TITLE}\nfile 1 /a\n{line}\n")), Err(3), "{line}");
        }
    }
}
