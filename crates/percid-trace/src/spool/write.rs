//! Writing a spool.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;

use super::encode::Content;
use super::frame::{Frame, Framer, MAGIC};
use super::layout::MIN_FULL_FRAME_BYTES;
use super::lock::lock;
use crate::origin_pairs::pairs;
use crate::record::{Piece, Sink};
use crate::trace::Origin;

/// A spool that is written while something is recorded.
#[derive(Debug)]
pub struct Spool {
    file: File,
    /// The end of what is whole.
    written: u64,
    most: Option<u64>,
    is_full: bool,
    /// Number of lost events in the last frame.
    lost: u64,
    failed: bool,
    frames: Frames,
}

impl Spool {
    /// A spool in an empty file, which is kept from growing beyond `most` bytes.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn new(file: File, most: Option<u64>) -> io::Result<Spool> {
        if !lock(&file)? {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another one writes it"));
        }
        let frames = Frames::new()?;
        Ok(Spool { file, written: 0, most, is_full: false, lost: 0, failed: false, frames })
    }

    /// Returns `true` if the recording was stopped because there would have been too many bytes.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Appends the end of the recording, unless it ended because nothing could be written. If the
    /// disk is full by now, the end is missing.
    pub fn finish(mut self) {
        if !self.failed {
            let end = self.frames.end();
            let _ = self.append(&end);
        }
    }

    /// Appends all or nothing, if the system permits that.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let appended = self.file.write_all(bytes);
        match appended {
            Ok(()) => self.written += bytes.len() as u64,
            // A reader would leave out the beginning of a frame by itself.
            Err(_) => {
                self.failed = true;
                let _ = self.file.set_len(self.written);
            }
        }
        appended
    }
}

fn cannot_write(cause: io::Error) -> String {
    format!("cannot write what is recorded: {cause}")
}

impl Sink for Spool {
    fn begin(&mut self, origin: &Origin) -> Result<(), String> {
        let mut bytes = MAGIC.to_vec();
        let lines = pairs(origin).into_iter().map(|(key, value)| {
            let value = value.replace(['\n', '\t'], " ");
            format!("{key}\t{value}\n")
        });
        let lines: String = lines.collect();
        self.frames.framer.put(&mut bytes, Frame::Origin(lines.as_bytes()));
        self.append(&bytes).map_err(cannot_write)
    }

    fn take(&mut self, piece: &Piece<'_>) -> Result<ControlFlow<()>, String> {
        if piece.is_empty() && piece.lost == self.lost {
            return Ok(ControlFlow::Continue(()));
        }
        let bytes = self.frames.encode(piece);
        let end = self.written + (bytes.len() + self.frames.end().len()) as u64;
        if self.most.is_some_and(|most| end > most) {
            self.is_full = true;
            return Ok(ControlFlow::Break(()));
        }
        self.append(&bytes).map_err(cannot_write)?;
        self.lost = piece.lost;
        Ok(ControlFlow::Continue(()))
    }
}

/// Makes frames of pieces.
#[derive(Debug)]
pub(super) struct Frames {
    content: Content,
    framer: Framer,
}

impl Frames {
    pub(super) fn new() -> io::Result<Frames> {
        Ok(Frames { content: Content::default(), framer: Framer::new()? })
    }

    /// The frames of a piece.
    fn encode(&mut self, piece: &Piece<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.each(piece, |frame| bytes.extend_from_slice(frame));
        bytes
    }

    /// Hands out the frames of a piece, each by itself.
    pub(super) fn each(&mut self, piece: &Piece<'_>, mut take: impl FnMut(&[u8])) {
        let mut frame = Vec::new();
        let mut pass_on = |content: &mut Content| {
            frame.clear();
            self.framer.put(&mut frame, Frame::Events(&content.take(piece.lost)));
            take(&frame);
        };
        for event in piece.events {
            self.content.push(event, piece.texts);
            if self.content.len() >= MIN_FULL_FRAME_BYTES {
                pass_on(&mut self.content);
            }
        }
        for event in piece.numa {
            self.content.push_numa(event);
            if self.content.len() >= MIN_FULL_FRAME_BYTES {
                pass_on(&mut self.content);
            }
        }
        for turn in piece.counted {
            self.content.push_counted(turn, piece.counters);
            if self.content.len() >= MIN_FULL_FRAME_BYTES {
                pass_on(&mut self.content);
            }
        }
        pass_on(&mut self.content);
    }

    fn end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.framer.put(&mut bytes, Frame::End);
        bytes
    }
}
