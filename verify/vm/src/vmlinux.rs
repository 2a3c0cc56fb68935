//! Takes the uncompressed kernel out of a bzImage.
//!
//! An uncompressed image boots half a second faster: software emulation is slow at unpacking. The
//! image's own header contains the position of the compressed payload; the payload's first bytes
//! identify the program that can unpack it.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::tool::{self, Tool};

/// Offsets into the image, from the kernel's x86 boot protocol.
mod header {
    pub(super) const SETUP_SECTORS: usize = 0x1f1;
    pub(super) const MAGIC: usize = 0x202;
    pub(super) const VERSION: usize = 0x206;
    pub(super) const PAYLOAD_OFFSET: usize = 0x248;
    pub(super) const PAYLOAD_LENGTH: usize = 0x24c;
    /// The first version of the protocol with the payload's position.
    pub(super) const FIRST_WITH_PAYLOAD: u16 = 0x208;
    pub(super) const SECTOR: usize = 512;
}

/// Returns the compressed payload of a bzImage, or the reason why there is none.
pub fn payload(image: &[u8]) -> std::result::Result<&[u8], &'static str> {
    if image.get(header::MAGIC..header::MAGIC + 4) != Some(b"HdrS") {
        return Err("the magic HdrS at 0x202, as every bzImage has");
    }
    let version = little_endian(image, header::VERSION, 2)?;
    if version < usize::from(header::FIRST_WITH_PAYLOAD) {
        return Err("boot protocol 2.08 or newer");
    }
    // Zero stands for four, from times when the field did not exist.
    let sectors = match image.get(header::SETUP_SECTORS) {
        None => return Err("a setup header"),
        Some(0) => 4,
        Some(&sectors) => usize::from(sectors),
    };
    let protected_mode = (sectors + 1) * header::SECTOR;
    let start = protected_mode + little_endian(image, header::PAYLOAD_OFFSET, 4)?;
    let length = little_endian(image, header::PAYLOAD_LENGTH, 4)?;
    image.get(start..start.saturating_add(length)).ok_or("a payload inside the file")
}

fn little_endian(
    image: &[u8],
    offset: usize,
    bytes: usize,
) -> std::result::Result<usize, &'static str> {
    let field = image.get(offset..offset + bytes).ok_or("a setup header")?;
    Ok(field.iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte)))
}

/// Returns the program that unpacks a payload, determined by its first bytes.
pub fn unpacker(payload: &[u8]) -> Option<(Tool, &'static [&'static str])> {
    const MAGICS: [(&[u8], Tool, &[&str]); 4] = [
        (b"\x28\xb5\x2f\xfd", tool::ZSTD, &["-dcq"]),
        (b"\x02\x21\x4c\x18", tool::LZ4, &["-dcq"]),
        (b"\xfd7zXZ\0", tool::XZ, &["-dcq", "--single-stream"]),
        (b"\x1f\x8b\x08", tool::GZIP, &["-dcq"]),
    ];
    MAGICS
        .iter()
        .find(|(magic, ..)| payload.starts_with(magic))
        .map(|&(_, tool, args)| (tool, args))
}

/// Returns the uncompressed kernel inside the bzImage at `path`.
pub fn extract(path: &Path) -> Result<Vec<u8>> {
    let image = fs::read(path).map_err(Error::file("read", path))?;
    let bad = |expected| Error::BadImage { path: path.to_path_buf(), expected };
    let payload = payload(&image).map_err(bad)?;
    let (tool, args) =
        unpacker(payload).ok_or_else(|| bad("a payload packed by zstd, lz4, xz or gzip"))?;
    // The build appends the unpacked size to the payload. It is not part of the packed data and
    // confuses its tools; it is also the expected size.
    let (packed, size) = payload.split_at(payload.len().saturating_sub(4));
    let expected_len = little_endian(size, 0, 4).map_err(bad)?;
    let kernel = unpack(tool, args, packed, path)?;
    if kernel.len() != expected_len || !kernel.starts_with(b"\x7fELF") {
        return Err(bad("a payload that unpacks to an ELF file of the stated size"));
    }
    Ok(kernel)
}

fn unpack(tool: Tool, args: &[&str], packed: &[u8], path: &Path) -> Result<Vec<u8>> {
    let task = format!("unpack {}", path.display());
    tool.filter(tool.command().args(args), packed, &task)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Scratch;

    /// Returns the smallest image that has a payload: header, one setup sector.
    fn image_with(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[header::SETUP_SECTORS] = 1;
        image[header::MAGIC..header::MAGIC + 4].copy_from_slice(b"HdrS");
        image[header::VERSION..header::VERSION + 2].copy_from_slice(&0x20f_u16.to_le_bytes());
        image[header::PAYLOAD_OFFSET] = 8;
        let length = (payload.len() as u32).to_le_bytes();
        image[header::PAYLOAD_LENGTH..header::PAYLOAD_LENGTH + 4].copy_from_slice(&length);
        image.extend_from_slice(&[0xee; 8]);
        image.extend_from_slice(payload);
        image.extend_from_slice(&[0xee; 100]);
        image
    }

    fn packed(tool: Tool, contents: &[u8]) -> Vec<u8> {
        // The kernel's build packs with lz4's old format.
        let args: &[&str] = if tool == tool::LZ4 { &["-lc"] } else { &["-c"] };
        let mut packed =
            tool.filter(tool.command().args(args), contents, "pack").expect("the packer works");
        packed.extend_from_slice(&(contents.len() as u32).to_le_bytes());
        packed
    }

    #[test]
    fn finds_the_payload_by_the_header() {
        assert_eq!(payload(&image_with(b"payload")), Ok(&b"payload"[..]));
    }

    #[test]
    fn refuses_what_is_no_image() {
        assert!(payload(b"").is_err());
        assert!(payload(&[0; 4096]).is_err());
        let mut old = image_with(b"payload");
        old[header::VERSION] = 7;
        assert_eq!(payload(&old), Err("boot protocol 2.08 or newer"));
        let mut long = image_with(b"payload");
        long[header::PAYLOAD_LENGTH + 3] = 0xff;
        assert_eq!(payload(&long), Err("a payload inside the file"));
        let truncated = &image_with(b"payload")[..0x24a];
        assert!(payload(truncated).is_err());
    }

    #[test]
    fn unpacks_what_each_packer_made() {
        let kernel = [b"\x7fELF".as_slice(), &[0x90; 100_000]].concat();
        for tool in [tool::ZSTD, tool::LZ4, tool::XZ, tool::GZIP] {
            if !tool.is_installed() {
                percid_skips::not_checked(
                    &format!("kernels packed by {}", tool.name),
                    "it is not installed",
                );
                continue;
            }
            let scratch = Scratch::new().expect("temporary directory");
            let path = scratch.path().join("bzImage");
            fs::write(&path, image_with(&packed(tool, &kernel))).expect("write");
            assert_eq!(extract(&path).expect(tool.name), kernel, "{}", tool.name);
        }
    }

    #[test]
    fn a_payload_of_the_wrong_size_is_refused() {
        let mut payload = packed(tool::GZIP, b"\x7fELF and so on");
        let last = payload.len() - 4;
        payload[last] += 1;
        let scratch = Scratch::new().expect("temporary directory");
        let path = scratch.path().join("bzImage");
        fs::write(&path, image_with(&payload)).expect("write");
        assert!(matches!(extract(&path), Err(Error::BadImage { .. })));
    }
}
