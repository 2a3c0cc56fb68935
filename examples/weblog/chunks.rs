//! A stream cut into chunks of whole lines.

use std::io::{self, Read};

/// Cuts a stream at line ends. It needs no seeking, so a pipe will do, and what is done for a chunk
/// under the callers' lock is little: fill a buffer, find the last line end.
pub(crate) struct Chunks<R> {
    input: R,
    size: usize,
    /// Data that was read beyond the last chunk. Always shorter than a chunk.
    rest: Vec<u8>,
    number: usize,
    ended: bool,
}

/// The contents of a filled buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Chunks are numbered from 0 in the order of the stream.
    pub(crate) number: usize,
    /// It is the beginning of one line that is longer than a chunk; the rest of the line was
    /// skipped.
    pub(crate) cut: bool,
}

impl<R: Read> Chunks<R> {
    /// Chunks of `size` bytes at most.
    pub(crate) fn new(input: R, size: usize) -> Chunks<R> {
        Chunks { input, size, rest: Vec::new(), number: 0, ended: false }
    }

    /// Fills `buffer` with the next chunk. `None` at the end of the stream, and after an error.
    pub(crate) fn next(&mut self, buffer: &mut Vec<u8>) -> io::Result<Option<Chunk>> {
        buffer.clear();
        buffer.append(&mut self.rest);
        if !self.ended {
            self.fill(buffer)?;
        }
        if buffer.is_empty() {
            return Ok(None);
        }
        let end = if self.ended { Some(buffer.len()) } else { after_last_line_end(buffer) };
        match end {
            Some(end) => {
                self.rest.extend_from_slice(&buffer[end..]);
                buffer.truncate(end);
            }
            None => self.skip_line()?,
        }
        let chunk = Chunk { number: self.number, cut: end.is_none() };
        self.number += 1;
        Ok(Some(chunk))
    }

    /// Reads until the buffer is a chunk or the stream ends.
    fn fill(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let missing = self.size - buffer.len();
        buffer.reserve(missing);
        let read = (&mut self.input).take(missing as u64).read_to_end(buffer);
        // After an error no other thread shall go on behind the hole.
        self.ended = !matches!(read, Ok(read) if read == missing);
        read.map(|_| ())
    }

    /// Skips the rest of a line; what was read behind its end becomes the rest of the stream.
    fn skip_line(&mut self) -> io::Result<()> {
        let mut buffer = Vec::new();
        while !self.ended {
            buffer.clear();
            self.fill(&mut buffer)?;
            if let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
                self.rest.extend_from_slice(&buffer[end + 1..]);
                break;
            }
        }
        Ok(())
    }
}

fn after_last_line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a text byte by byte, with interruptions; fails at its end if `fails` is set.
    struct Slow<'t> {
        text: &'t [u8],
        interrupted: bool,
        fails: bool,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if self.text.is_empty() && self.fails {
                return Err(io::Error::other("on purpose"));
            }
            let read = self.text.len().min(1).min(buffer.len());
            buffer[..read].copy_from_slice(&self.text[..read]);
            self.text = &self.text[read..];
            Ok(read)
        }
    }

    fn chunks(text: &[u8], size: usize) -> Vec<(bool, Vec<u8>)> {
        let mut chunks = Chunks::new(Slow { text, interrupted: false, fails: false }, size);
        let mut buffer = Vec::new();
        let mut all = Vec::new();
        while let Some(chunk) = chunks.next(&mut buffer).expect("no error") {
            assert_eq!(chunk.number, all.len());
            all.push((chunk.cut, buffer.clone()));
        }
        all
    }

    #[test]
    fn chunks_are_whole_lines_and_add_up_to_the_stream() {
        let text: String = (0..60).map(|n| format!("{}\n", "x".repeat(n % 7))).collect();
        for end in 0..text.len() {
            for size in 8..20 {
                let chunks = chunks(&text.as_bytes()[..end], size);
                let joined: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
                assert_eq!(joined, &text.as_bytes()[..end]);
                assert!(chunks.iter().all(|(cut, bytes)| !cut && !bytes.is_empty()));
                let mut whole = chunks.iter().rev().skip(1);
                assert!(whole.all(|(_, bytes)| bytes.ends_with(b"\n") && bytes.len() <= size));
            }
        }
    }

    #[test]
    fn a_line_longer_than_a_chunk_is_cut() {
        let chunk = |cut, text: &str| (cut, text.as_bytes().to_vec());
        let cut = [chunk(false, "a\n"), chunk(true, "bbbb"), chunk(false, "c\n")];
        assert_eq!(chunks(b"a\nbbbbbbbbbbbb\nc\n", 4), cut);
        assert_eq!(chunks(b"a\nbbbbbbbbbbbb", 4), cut[..2]);
    }

    #[test]
    fn after_an_error_there_is_nothing_more() {
        let input = Slow { text: b"a\nb\nc", interrupted: false, fails: true };
        let mut chunks = Chunks::new(input, 4);
        let mut buffer = Vec::new();
        assert_eq!(chunks.next(&mut buffer).ok(), Some(Some(Chunk { number: 0, cut: false })));
        assert!(chunks.next(&mut buffer).is_err());
        assert_eq!(chunks.next(&mut buffer).ok(), Some(None));
    }
}
