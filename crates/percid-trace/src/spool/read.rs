//! Reading a spool, also one whose recorder was killed.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use super::decode::decode;
use super::frame::{Frame, Frames, MAGIC};
use super::lock::lock;
use super::source::{Part, Source, Tail};
use crate::error::Error;
use crate::origin_pairs::from_pairs;
use crate::trace::{Origin, Trace};

/// A spool in a file.
#[derive(Debug)]
pub struct Spooled {
    file: File,
    origin: Origin,
    /// Offset at which the events begin.
    events: u64,
    size: u64,
}

impl Spooled {
    /// Opens a spool that is no longer being written.
    ///
    /// # Errors
    ///
    /// The system refuses, the spool is still being written, or the file is no spool.
    pub fn open(file: File) -> Result<Spooled, Error> {
        if !lock(&file)? {
            let what = "it is still being recorded";
            return Err(Error::Io(io::Error::new(io::ErrorKind::ResourceBusy, what)));
        }
        let size = file.metadata()?.len();
        let mut reader = &file;
        reader.seek(SeekFrom::Start(0))?;
        let (origin, frames) = begin(BufReader::new(reader))?;
        Ok(Spooled { origin, events: frames.at, size, file })
    }
}

impl Source for Spooled {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn each(&self, take: &mut dyn FnMut(&Trace) -> Result<(), Error>) -> Result<Tail, Error> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.events))?;
        let mut frames = Frames::new(BufReader::new(file), self.events)?;
        let mut part = Part::default();
        let tail =
            events(&mut frames, self.size, &mut part, &mut |part| part.pass_on(false, take))?;
        part.pass_on(true, take)?;
        Ok(tail)
    }
}

/// Reads a whole spool. While it is being written, reads the part that exists.
///
/// # Errors
///
/// The bytes are no spool.
pub fn read_bytes(bytes: &[u8]) -> Result<Trace, Error> {
    let (origin, mut frames) = begin(bytes)?;
    let mut whole = Part::default();
    let tail = events(&mut frames, bytes.len() as u64, &mut whole, &mut |_| Ok(()))?;
    let mut trace = whole.0;
    trace.origin = Origin { lost: tail.lost, ..origin };
    trace.origin.coverage.cut_off |= tail.cut_off;
    trace.events.sort_by_key(|event| (event.time, event.cpu));
    trace.numa.sort_by_key(|event| (event.time, event.cpu));
    trace.counted.sort_by_key(|turn| (turn.time, turn.cpu));
    Ok(trace)
}

/// Reads the part before the events.
fn begin<R: Read>(mut from: R) -> Result<(Origin, Frames<R>), Error> {
    let damaged = |at| Error::at_byte(at, "expected the beginning of a percid recording");
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic).map_err(|_| damaged(0))?;
    if magic != MAGIC {
        return Err(damaged(0));
    }
    let mut frames = Frames::new(from, MAGIC.len() as u64)?;
    let origin = match frames.next()? {
        Some(Frame::Origin(content)) => origin(content)?,
        _ => return Err(damaged(MAGIC.len() as u64)),
    };
    Ok((origin, frames))
}

fn origin(content: &[u8]) -> Result<Origin, Error> {
    let text = String::from_utf8_lossy(content);
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
        lines.find(|(found, _)| *found == key).map(|(_, value)| value.to_owned())
    };
    from_pairs(value)
}

/// Adds the events of all frames that are whole to a part, which is shown after each.
fn events<R: Read>(
    frames: &mut Frames<R>,
    size: u64,
    part: &mut Part,
    show: &mut dyn FnMut(&mut Part) -> Result<(), Error>,
) -> Result<Tail, Error> {
    let mut cut_off = true;
    let mut end = frames.at;
    loop {
        let Trace { events, numa, counted, .. } = &part.0;
        let (events, numa, counted) = (events.len(), numa.len(), counted.len());
        match frames.next()? {
            Some(Frame::Events(content)) if decode(content, &mut part.0).is_some() => {}
            Some(Frame::End) => {
                cut_off = false;
                end = frames.at;
                break;
            }
            _ => {
                part.0.events.truncate(events);
                part.0.numa.truncate(numa);
                part.0.counted.truncate(counted);
                break;
            }
        }
        end = frames.at;
        show(part)?;
    }
    Ok(Tail { lost: part.0.origin.lost, cut_off, left_out: size.saturating_sub(end) })
}
