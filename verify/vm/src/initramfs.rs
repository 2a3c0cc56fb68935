//! The guest's root file system: an uncompressed "newc" cpio archive.

use std::io::Write;

use cpio::newc::{Builder, trailer};

/// An archive in the making.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

/// Types of entries; values of `st_mode`.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

impl Archive {
    /// Makes an empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory. Parents come first: the kernel creates none by itself.
    pub fn directory(&mut self, path: &str) -> &mut Self {
        self.entry(path, DIRECTORY | 0o755, (0, 0), &[])
    }

    /// Adds a file that all users may read and execute.
    pub fn executable(&mut self, path: &str, contents: &[u8]) -> &mut Self {
        self.entry(path, REGULAR | 0o755, (0, 0), contents)
    }

    /// Adds a file that all users may read.
    pub fn file(&mut self, path: &str, contents: &[u8]) -> &mut Self {
        self.entry(path, REGULAR | 0o644, (0, 0), contents)
    }

    /// Adds a character device for its owner only.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) -> &mut Self {
        self.entry(path, CHARACTER_DEVICE | 0o600, (major, minor), &[])
    }

    /// Ends the archive and returns its bytes.
    pub fn finish(self) -> Vec<u8> {
        trailer(self.bytes).expect("memory can be written to")
    }

    fn entry(
        &mut self,
        path: &str,
        mode: u32,
        (major, minor): (u32, u32),
        contents: &[u8],
    ) -> &mut Self {
        self.entries += 1;
        // Inode numbers must differ: the kernel takes equal ones for hard links. No times, so that
        // equal inputs give equal archives.
        let entry = Builder::new(path.trim_start_matches('/')).ino(self.entries).mode(mode);
        let entry = entry.rdev_major(major).rdev_minor(minor);
        let length = u32::try_from(contents.len()).expect("a file for a guest is small");
        let mut writer = entry.write(&mut self.bytes, length);
        writer
            .write_all(contents)
            .and_then(|()| writer.finish())
            .expect("memory can be written to");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Tool;

    const CPIO: Tool = Tool { name: "cpio", package: "cpio" };

    fn sample() -> Vec<u8> {
        let mut archive = Archive::new();
        archive
            .directory("/dev")
            .device("/dev/console", 5, 1)
            .executable("/init", b"#!/nothing\n")
            .file("/empty", b"")
            .file("/odd", b"12345");
        archive.finish()
    }

    #[test]
    fn equal_inputs_give_equal_archives() {
        assert_eq!(sample(), sample());
    }

    #[test]
    fn cpio_reads_back_what_we_wrote() {
        if !CPIO.is_installed() {
            return percid_skips::not_checked("archives by cpio", "it is not installed");
        }
        let list = CPIO
            .filter(CPIO.command().arg("-itv").arg("--quiet"), &sample(), "list")
            .expect("cpio accepts the archive");
        let list = String::from_utf8(list).expect("names are ASCII");
        let entries: Vec<Vec<&str>> =
            list.lines().map(|line| line.split_whitespace().collect()).collect();
        let shown: Vec<(&str, &str)> =
            entries.iter().map(|words| (words[0], *words.last().expect("a name"))).collect();
        assert_eq!(
            shown,
            [
                ("drwxr-xr-x", "dev"),
                ("crw-------", "dev/console"),
                ("-rwxr-xr-x", "init"),
                ("-rw-r--r--", "empty"),
                ("-rw-r--r--", "odd"),
            ]
        );
        let odd = CPIO
            .filter(
                CPIO.command().args(["-i", "--quiet", "--to-stdout", "odd"]),
                &sample(),
                "extract",
            )
            .expect("cpio extracts");
        assert_eq!(odd, b"12345");
    }
}
