//! Packets that zstd compressed.

use std::io::{self, Read};

/// Maximum memory that a zstd frame may request, as a power of two: that of the largest packet.
const WINDOW_LOG: u32 = 24;

/// Returns a reader that decompresses zstd.
pub(super) fn zstd_reader(compressed: &[u8]) -> io::Result<impl Read + '_> {
    let mut plain = zstd::stream::read::Decoder::with_buffer(compressed)?;
    plain.window_log_max(WINDOW_LOG)?;
    Ok(plain)
}
