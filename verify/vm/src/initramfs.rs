//! The guest's root file system: an uncompressed "newc" cpio archive.
//!
//! The kernel documents the format in `initramfs/buffer-format`: per entry a
//! magic, thirteen numbers of eight hexadecimal digits, the name with its
//! terminating zero and the contents, name and contents each padded to four
//! bytes; the entry `TRAILER!!!` ends it.

/// An archive in the making.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

/// What an entry is; values of `st_mode`.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// Longer contents cannot be told in eight digits.
const MAX_LEN: usize = u32::MAX as usize;

impl Archive {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory. Parents come first: the kernel creates none by itself.
    pub fn directory(&mut self, path: &str) -> &mut Self {
        self.entry(path, DIRECTORY | 0o755, (0, 0), &[])
    }

    /// Adds a file that everybody may read and execute.
    pub fn executable(&mut self, path: &str, contents: &[u8]) -> &mut Self {
        self.entry(path, REGULAR | 0o755, (0, 0), contents)
    }

    /// Adds a file that everybody may read.
    pub fn file(&mut self, path: &str, contents: &[u8]) -> &mut Self {
        self.entry(path, REGULAR | 0o644, (0, 0), contents)
    }

    /// Adds a character device for its owner only.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) -> &mut Self {
        self.entry(path, CHARACTER_DEVICE | 0o600, (major, minor), &[])
    }

    /// Ends the archive and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, rdev: (u32, u32), contents: &[u8]) -> &mut Self {
        assert!(contents.len() <= MAX_LEN, "{path} is too long for cpio");
        let name = path.trim_start_matches('/');
        self.entries += 1;
        // Inode numbers must differ: the kernel takes equal ones for hard links.
        let inode = self.entries;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let header = [
            inode,
            mode,
            0, // user
            0, // group
            links,
            0, // modification time: none, so that equal inputs give equal archives
            contents.len() as u32,
            0, // device the archive was made on, major
            0, // … and minor
            rdev.0,
            rdev.1,
            name.len() as u32 + 1,
            0, // checksum: not in this variant
        ];
        self.bytes.extend_from_slice(b"070701");
        for number in header {
            self.bytes.extend_from_slice(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
        self
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
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
    fn headers_have_the_documented_form() {
        let bytes = sample();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&bytes[..6], b"070701");
        // 6 + 13 * 8 = 110 bytes of header, then the name without its slash.
        assert_eq!(&bytes[110..114], b"dev\0");
        assert_eq!(&bytes[14..22], b"000041ed", "a directory, 0755");
        let trailer = bytes.windows(10).position(|w| w == b"TRAILER!!!");
        assert!(trailer.is_some_and(|at| at % 4 == 2 && at + 12 >= bytes.len() - 4));
    }

    #[test]
    fn equal_inputs_give_equal_archives() {
        assert_eq!(sample(), sample());
    }

    #[test]
    fn cpio_reads_back_what_we_wrote() {
        if !CPIO.is_installed() {
            println!("skipped: cpio is not installed");
            return;
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
