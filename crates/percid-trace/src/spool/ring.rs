//! The last events only, in memory: a flight recorder.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::decode::decode;
use super::frame::{Frame, Frames};
use super::population::Population;
use super::source::{Part, Source, Tail};
use super::write;
use crate::error::Error;
use crate::record::{Piece, Sink};
use crate::subject::Subject;
use crate::trace::{Origin, Trace};

/// Keeps the last frames.
#[derive(Debug)]
pub struct Ring {
    frames: write::Frames,
    most: usize,
    kept: usize,
    state: RingSnapshot,
}

/// The content of a ring at one time.
#[derive(Debug, Clone, Default)]
pub struct RingSnapshot {
    origin: Origin,
    frames: VecDeque<Arc<[u8]>>,
    /// The threads that live when those begin, and the processes that the recording is about then.
    population: Population,
    subject: Subject,
    lost: u64,
}

impl Ring {
    /// A ring of this many bytes.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn new(most: usize) -> io::Result<Ring> {
        Ok(Ring { frames: write::Frames::new()?, most, kept: 0, state: RingSnapshot::default() })
    }

    /// Returns the current content. Later events do not change it. The shared frames are not
    /// copied.
    pub fn snapshot(&self) -> RingSnapshot {
        let mut state = self.state.clone();
        if !state.origin.subject.is_empty() {
            state.origin.subject = state.subject.still_living(&state.population.processes());
        }
        state
    }
}

impl Sink for Ring {
    fn begin(&mut self, origin: &Origin) -> Result<(), String> {
        self.state.origin = origin.clone();
        self.state.subject = Subject::new(&origin.subject);
        Ok(())
    }

    fn take(&mut self, piece: &Piece<'_>) -> Result<ControlFlow<()>, String> {
        let Ring { frames, most, kept, state } = self;
        state.lost = piece.lost;
        if !piece.is_empty() {
            frames.each(piece, |frame| {
                *kept += frame.len();
                state.frames.push_back(frame.into());
            });
        }
        while *kept > *most && state.frames.len() > 1 {
            *kept -= state.forget_first().map_err(|error| error.to_string())?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl RingSnapshot {
    /// Drops the oldest frame, and updates the living threads and the subject by its events.
    /// Returns its length.
    fn forget_first(&mut self) -> io::Result<usize> {
        let Some(first) = self.frames.pop_front() else { return Ok(0) };
        let mut forgotten = Trace::default();
        add(&first, &mut forgotten)?;
        for event in &forgotten.events {
            self.subject.take(event, |thread| self.population.process_of(thread));
            self.population.take(event, &forgotten.texts);
        }
        Ok(first.len())
    }
}

impl Source for RingSnapshot {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn each(&self, take: &mut dyn FnMut(&Trace) -> Result<(), Error>) -> Result<Tail, Error> {
        let mut part = Part::default();
        self.population.tell(&mut part.0);
        for frame in &self.frames {
            add(frame, &mut part.0)?;
            part.pass_on(false, take)?;
        }
        part.pass_on(true, take)?;
        Ok(Tail { lost: self.lost, ..Tail::default() })
    }
}

/// Adds the events of a frame of our own.
fn add(frame: &[u8], trace: &mut Trace) -> io::Result<()> {
    let added = match Frames::new(frame, 0)?.next()? {
        Some(Frame::Events(content)) => decode(content, trace),
        _ => None,
    };
    added.ok_or_else(|| io::Error::other("the ring is damaged"))
}
