//! Files that were compressed as a whole, by gzip or zstd.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use crate::error::Error;
use crate::limits::LARGEST_RATIO;

/// Magic bytes of files that gzip, zstd and xz write.
const GZIP: &[u8] = b"\x1f\x8b\x08";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const XZ: &[u8] = b"\xfd7zXZ\0";

/// Size to which a file of any length may expand.
const SHORT: u64 = 1 << 20;

/// Returns `true` if a file with this beginning is compressed.
pub(super) fn is_compressed(beginning: &[u8]) -> bool {
    [GZIP, ZSTD, XZ].iter().any(|magic| beginning.starts_with(magic))
}

/// Decompresses a file, to at most `most` bytes.
///
/// # Errors
///
/// The file is damaged, becomes too long, or is compressed by an unknown program.
pub(super) fn unpack(bytes: &[u8], most: u64) -> Result<Vec<u8>, Error> {
    let allowed = most.min((bytes.len() as u64).saturating_mul(LARGEST_RATIO as u64).max(SHORT));
    // One byte more, to distinguish the end from the limit.
    let mut plain = Vec::new();
    let decompressed = match bytes {
        _ if bytes.starts_with(GZIP) => {
            MultiGzDecoder::new(bytes).take(allowed + 1).read_to_end(&mut plain)
        }
        _ if bytes.starts_with(ZSTD) => zstd::stream::read::Decoder::with_buffer(bytes)
            .and_then(|decoder| decoder.take(allowed + 1).read_to_end(&mut plain)),
        _ => {
            let what = "this is compressed by xz: expected was gzip or zstd (xz --decompress --stdout FILE | percid trace \
                        info -)";
            return Err(Error::at_byte(0, what));
        }
    };
    if let Err(error) = decompressed {
        let what = format!("it is compressed, and damaged or not whole: {error}");
        return Err(Error::in_file(what));
    }
    if plain.len() as u64 > allowed {
        let what = format!(
            "it is compressed, and would become more than {allowed} bytes, {LARGEST_RATIO} times as many or too many \
             for memory: decompress it first"
        );
        return Err(Error::in_file(what));
    }
    Ok(plain)
}
