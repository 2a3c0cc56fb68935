//! The frames of which a spool consists.

use std::fmt;
use std::io::{self, ErrorKind, Read};

use flate2::Crc;
use zstd::bulk::{Compressor, Decompressor};

use super::layout::{MAX_FRAME_BYTES, TIMES};

/// Magic bytes at the beginning of a spool.
pub const MAGIC: [u8; 8] = *b"PERCIDSP";

const ORIGIN: u8 = 1;
const COMPRESSED: u8 = 2;
const STORED: u8 = 3;
const END: u8 = 4;

/// Length, checksum and kind.
const HEAD: usize = 4 + 4 + 1;

/// Compression level: the one that takes the recorder the least time.
const LEVEL: i32 = 1;

/// A decoded frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// The origin of the trace.
    Origin(&'a [u8]),
    /// Events: the content.
    Events(&'a [u8]),
    /// The recording has ended.
    End,
}

/// Makes frames.
pub(super) struct Framer {
    compressor: Compressor<'static>,
    compressed: Vec<u8>,
}

impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framer").finish_non_exhaustive()
    }
}

impl Framer {
    pub(super) fn new() -> io::Result<Framer> {
        Ok(Framer { compressor: Compressor::new(LEVEL)?, compressed: Vec::new() })
    }

    /// Appends a frame.
    pub(super) fn put(&mut self, to: &mut Vec<u8>, frame: Frame<'_>) {
        match frame {
            Frame::Origin(content) => put(to, ORIGIN, content),
            Frame::End => put(to, END, &[]),
            Frame::Events(content) if self.compress(content) => {
                put(to, COMPRESSED, &self.compressed);
            }
            Frame::Events(content) => put(to, STORED, content),
        }
    }

    /// Compresses the content. Returns `true` if that succeeded and readers accept the ratio.
    fn compress(&mut self, content: &[u8]) -> bool {
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(content.len()));
        let done = self.compressor.compress_to_buffer(content, &mut self.compressed);
        done.is_ok() && content.len() <= most_from(self.compressed.len())
    }
}

fn put(to: &mut Vec<u8>, kind: u8, content: &[u8]) {
    to.extend((content.len() as u32).to_le_bytes());
    to.extend(checksum(kind, content).to_le_bytes());
    to.push(kind);
    to.extend_from_slice(content);
}

fn checksum(kind: u8, content: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&[kind]);
    crc.update(content);
    crc.sum()
}

/// The longest content that so many compressed bytes may have.
fn most_from(compressed: usize) -> usize {
    compressed.saturating_mul(TIMES).min(MAX_FRAME_BYTES)
}

/// Reads frames until one is not whole.
pub(super) struct Frames<R> {
    from: R,
    /// The end of the last frame that was whole.
    pub(super) at: u64,
    frame: Vec<u8>,
    decompressor: Decompressor<'static>,
    content: Vec<u8>,
}

impl<R: Read> Frames<R> {
    /// Frames that begin at byte `at` of a file.
    pub(super) fn new(from: R, at: u64) -> io::Result<Frames<R>> {
        let decompressor = Decompressor::new()?;
        Ok(Frames { from, at, frame: Vec::new(), decompressor, content: Vec::new() })
    }

    /// The next frame; `None` if there is none that is whole.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let mut head = [0; HEAD];
        if !fill(&mut self.from, &mut head)? {
            return Ok(None);
        }
        let [l0, l1, l2, l3, c0, c1, c2, c3, kind] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if length > MAX_FRAME_BYTES {
            return Ok(None);
        }
        self.frame.resize(length, 0);
        if !fill(&mut self.from, &mut self.frame)?
            || checksum(kind, &self.frame) != u32::from_le_bytes([c0, c1, c2, c3])
        {
            return Ok(None);
        }
        self.at += (HEAD + length) as u64;
        Ok(self.meaning(kind))
    }

    fn meaning(&mut self, kind: u8) -> Option<Frame<'_>> {
        match kind {
            ORIGIN => Some(Frame::Origin(&self.frame)),
            STORED => Some(Frame::Events(&self.frame)),
            END => Some(Frame::End),
            COMPRESSED => {
                self.content.clear();
                self.content.reserve(most_from(self.frame.len()));
                let done = self.decompressor.decompress_to_buffer(&self.frame, &mut self.content);
                done.ok().map(|_| Frame::Events(&self.content))
            }
            _ => None,
        }
    }
}

/// Returns `true` if there were enough bytes.
fn fill(from: &mut impl Read, to: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(contents: &[&[u8]]) -> Vec<u8> {
        let (mut framer, mut bytes) = (Framer::new().expect("memory"), Vec::new());
        contents.iter().for_each(|content| framer.put(&mut bytes, Frame::Events(content)));
        bytes
    }

    /// Returns the number of whole frames, and the offset at which they end.
    fn whole(bytes: &[u8]) -> (usize, u64) {
        let mut frames = Frames::new(bytes, 0).expect("memory");
        let mut count = 0;
        while frames.next().expect("bytes").is_some() {
            count += 1;
        }
        (count, frames.at)
    }

    #[test]
    fn what_compresses_too_well_is_stored_and_comes_back() {
        let same = vec![7; 1 << 20];
        let bytes = framed(&[b"abcabcabcabcabcabc", &same, b""]);
        assert!(bytes.len() > same.len(), "what is as short as it can be looks like a bomb");
        let mut frames = Frames::new(&bytes[..], 0).expect("memory");
        for content in [&b"abcabcabcabcabcabc"[..], &same, b""] {
            assert_eq!(frames.next().expect("bytes"), Some(Frame::Events(content)));
        }
        assert_eq!(frames.next().expect("bytes"), None);
    }

    #[test]
    fn reading_ends_with_the_first_frame_that_is_not_whole() {
        let bytes = framed(&[b"first", b"second", b"third"]);
        let (_, two) = (framed(&[b"first"]).len(), framed(&[b"first", b"second"]).len());
        assert_eq!(whole(&bytes), (3, bytes.len() as u64));
        for end in two..bytes.len() {
            assert_eq!(whole(&bytes[..end]), (2, two as u64), "cut off at {end}");
        }
        for at in two..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(whole(&damaged), (2, two as u64), "damaged at {at}");
        }
        let zeros = [&bytes[..two], &[0; 4096]].concat();
        assert_eq!(whole(&zeros), (2, two as u64), "room that nothing was written into");
    }

    #[test]
    fn a_bomb_is_no_frame() {
        let bomb =
            zstd::bulk::compress(&vec![0; MAX_FRAME_BYTES], 19).expect("zeros are compressed");
        assert!(bomb.len() < MAX_FRAME_BYTES / TIMES);
        let mut bytes = Vec::new();
        put(&mut bytes, COMPRESSED, &bomb);
        assert_eq!(whole(&bytes).0, 0);
    }
}
