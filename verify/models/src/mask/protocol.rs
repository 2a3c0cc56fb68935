//! One configuration of the model, and its atomic steps.

use super::state::Id;
use crate::memory::Memory;

/// The order of the steps of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draining {
    /// The protocol: take the bits, membarrier, visit.
    Sound,
    /// Without membarrier, with a barrier in the markers; a negative control if they have none.
    Fenced,
    /// No barrier at all: the operation that takes the bits is enough on some machines, and a
    /// negative control on others.
    NoBarrier,
    /// Negative control: membarrier comes before the bits are taken.
    BarrierFirst,
    /// Negative control: the bits are cleared after the visits.
    VisitFirst,
    /// Negative control: the bits are taken by a load and a plain store.
    TornTake,
    /// Negative control: a drain is content with the first word that has members.
    OneWord,
}

/// The order of the steps of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// The protocol: publish, test, set if necessary. The drainer provides the barrier.
    Sound,
    /// Without membarrier: a full barrier between publication and test.
    Fenced,
    /// Negative control: the test comes first.
    TestFirst,
    /// Negative control: the bit is set by a plain store of the word that the test has loaded.
    TornSet,
}

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
    /// The way in which stores reach the other threads.
    pub memory: Memory,
    /// The order of the steps of a mark.
    pub marking: Marking,
    /// The order of the steps of a drain.
    pub draining: Draining,
    /// `true` if states that differ only by the names of IDs, markers and drainers count as one.
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
