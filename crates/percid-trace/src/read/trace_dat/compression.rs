//! Compressed sections of a file: pieces, each with its size before and after.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;

use crate::error::Error;
use crate::limits::LARGEST_RATIO;
use crate::read::bytes::Bytes;

/// A way to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Compression {
    /// The bytes of the number before a list of pieces.
    pub(super) const PREFIX: u64 = 4;

    /// Takes its name and version from the file.
    pub(super) fn take(data: &mut Bytes<'_>) -> Result<Compression, Error> {
        let place = *data;
        let compression = match data.text("the name of a compression")? {
            b"none" => Compression::None,
            b"zlib" => Compression::Zlib,
            b"zstd" => Compression::Zstd,
            other => {
                let name = String::from_utf8_lossy(other);
                let what = format!("it is compressed by {name:.16?}: expected none, zlib or zstd");
                return Err(place.error(what));
            }
        };
        data.text("the version of a compression")?;
        Ok(compression)
    }

    /// Takes one piece.
    pub(super) fn piece<'a>(self, data: &mut Bytes<'a>) -> Result<Cow<'a, [u8]>, Error> {
        let place = *data;
        let size = data.u32("the size of what is compressed")?;
        let becomes = data.u32("the size of what was compressed")? as usize;
        let compressed = data.take(size.into(), "what is compressed")?;
        if becomes > LARGEST_RATIO * (compressed.len() + LARGEST_RATIO) {
            let what =
                format!("{size} bytes would become {becomes}, over {LARGEST_RATIO} times as many");
            return Err(place.error(what));
        }
        let plain = match self {
            Compression::None => return Ok(compressed.into()),
            Compression::Zlib => {
                let mut plain = Vec::with_capacity(becomes);
                let decoder = ZlibDecoder::new(compressed).take(becomes as u64 + 1);
                { decoder }.read_to_end(&mut plain).map(|_| plain)
            }
            Compression::Zstd => zstd::bulk::decompress(compressed, becomes),
        };
        let plain =
            plain.map_err(|error| place.error(format!("it cannot be decompressed: {error}")))?;
        if plain.len() != becomes {
            let what = format!("{} bytes came out of it, {becomes} were expected", plain.len());
            return Err(place.error(what));
        }
        Ok(plain.into())
    }

    /// Takes all pieces of a list that begins with their number.
    pub(super) fn pieces<'a>(self, data: &mut Bytes<'a>) -> Result<Cow<'a, [u8]>, Error> {
        let number = data.u32("the number of compressed pieces")?;
        let mut all = Vec::new();
        for _ in 0..number {
            all.extend_from_slice(&self.piece(data)?);
        }
        Ok(all.into())
    }
}
