//! One configuration of the model, and its atomic steps.

use super::drainer::Draining;
use super::marker::Marking;
use super::state::Id;
use crate::memory::Memory;

/// One configuration of the model.
#[derive(Debug, Clone, Copy)]
pub struct Mask {
    /// Number of IDs.
    pub ids: u8,
    /// Number of words that the mask has: one, or one for each ID.
    pub words: u8,
    /// Number of markers.
    pub markers: u8,
    /// Number of drainers.
    pub drainers: u8,
    /// How stores reach the others.
    pub memory: Memory,
    /// The order of the steps of a mark.
    pub marking: Marking,
    /// The order of the steps of a drain.
    pub draining: Draining,
    /// Whether states that differ by the names of IDs, markers and drainers count as one.
    pub symmetric: bool,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A marker begins to publish for an ID and to mark it, with its first step.
    Mark(usize, Id),
    /// A marker takes its next step.
    Marker(usize),
    /// The load of a marker's next test is performed.
    Early(usize),
    /// One of a marker's waiting publications becomes visible.
    Flush(usize, usize),
    /// A drainer begins.
    Drain(usize),
    /// A drainer does one part of its next step: a word, a marker, an ID.
    Drainer(usize, u8),
    /// A drainer's load of an ID's data is performed, before it is due.
    Read(usize, Id),
}
