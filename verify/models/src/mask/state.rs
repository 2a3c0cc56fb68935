//! The global state of the mask's protocol.

use crate::memory::{Buffer, Store};

/// A concurrency ID: one bit of the mask.
pub type Id = u8;
/// A set of IDs, of markers or of drainers, one bit each.
pub type Set = u8;

/// Markers in the largest configuration.
pub const MARKERS: usize = 3;
/// Drainers in the largest configuration.
pub const DRAINERS: usize = 2;
/// IDs in the largest configuration.
pub const IDS: usize = 2;
/// Publications of one marker that wait in its store buffer: one of an earlier mark, one of the
/// mark in progress.
pub const WAITING: usize = 2;

/// The data that one marker has published for one ID and no drain has visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Data {
    /// `true` if a mark that announces it has returned.
    pub returned: bool,
    /// The drains in progress that began after that.
    pub owed: Set,
}

impl Data {
    /// New data.
    pub const NEW: Self = Self { returned: false, owed: 0 };

    /// Combines both: a visit takes both.
    fn and(self, newer: Self) -> Self {
        Self { returned: self.returned | newer.returned, owed: self.owed | newer.owed }
    }
}

/// A publication that waits in a store buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Publication {
    /// The ID for which it is.
    pub id: Id,
    /// The published data.
    pub data: Data,
}

impl Store for Publication {
    type Place = Id;

    fn place(&self) -> Id {
        self.id
    }
}

/// One atomic step of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MarkStep {
    /// Store the data.
    Publish,
    /// A full barrier.
    Fence,
    /// Load the word of the mask. If the bit is set, setting it is left out.
    Test,
    /// Set the bit by an atomic read-modify-write.
    Set,
    /// Negative control: store the loaded word with the bit, by a plain store.
    Store,
}

/// A mark in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mark {
    /// The ID that is marked. It may have been the marker's own once, or never.
    pub id: Id,
    /// The next atomic step.
    pub step: MarkStep,
    /// The bits that the test has found set and that matter to later steps.
    pub found: Set,
}

/// A thread that publishes and marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Marker {
    /// The mark in progress.
    pub mark: Option<Mark>,
    /// The mask, if the load of the next test was performed early.
    pub early: Option<Set>,
    /// Publications that the others do not see yet.
    pub buffer: Buffer<Publication, WAITING>,
    /// Publications that a visit would find, by ID.
    pub visible: [Option<Data>; IDS],
}

/// One atomic step of a drain, or several of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DrainStep {
    /// Word by word: swap it with zero, and remember its bits.
    Take,
    /// Negative control, word by word: load it, and remember its bits.
    Look,
    /// Negative control, word by word: store zero.
    Clear,
    /// The kernel runs a full barrier on every marker, one after the other.
    Membarrier,
    /// A full barrier on the drainer.
    Fence,
    /// Read the data of each ID that was remembered.
    Visit,
}

/// A thread that drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Drainer {
    /// The next step of the drain in progress.
    pub step: Option<DrainStep>,
    /// The parts of that step which are done: words, or markers.
    pub done: Set,
    /// The IDs that will be visited.
    pub left: Set,
    /// The IDs whose data was read early, when there was none.
    pub blind: Set,
}

impl Drainer {
    /// Nothing in progress.
    pub const IDLE: Self = Self { step: None, done: 0, left: 0, blind: 0 };
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// The mask.
    pub mask: Set,
    /// The markers.
    pub markers: [Marker; MARKERS],
    /// The drainers.
    pub drainers: [Drainer; DRAINERS],
    /// `true` if a drain has ended without data that it owed.
    pub owing: bool,
}

impl Marker {
    /// A marker that has never marked.
    pub const NEW: Self =
        Self { mark: None, early: None, buffer: Buffer::EMPTY, visible: [None; IDS] };

    /// Makes a waiting publication visible.
    pub fn flush(&mut self, index: usize) {
        let publication = self.buffer.remove(index);
        self.show(publication);
    }

    /// Makes all waiting publications visible.
    pub fn flush_all(&mut self) {
        self.buffer.take().for_each(|publication| self.show(publication));
    }

    /// Performs a full barrier: earlier stores are visible, later loads have yet to be performed.
    pub fn barrier(&mut self) {
        self.flush_all();
        self.early = None;
    }

    /// Makes the data visible to others.
    pub fn show(&mut self, Publication { id, data }: Publication) {
        let visible = &mut self.visible[usize::from(id)];
        *visible = Some(visible.map_or(data, |older| older.and(data)));
    }

    /// Returns the last publication for `id`, unless it was visited.
    pub fn newest(&mut self, id: Id) -> Option<&mut Data> {
        let waiting = self.buffer.iter_mut().rev().find(|publication| publication.id == id);
        match waiting {
            Some(publication) => Some(&mut publication.data),
            None => self.visible[usize::from(id)].as_mut(),
        }
    }

    /// Returns everything that was published and not visited, visible or not.
    pub fn unvisited(&self) -> impl Iterator<Item = Publication> {
        let visible = (0..).zip(self.visible).filter_map(|(id, data)| {
            let data = data?;
            Some(Publication { id, data })
        });
        visible.chain(self.buffer.iter().copied())
    }

    /// Returns the same, mutably.
    pub fn unvisited_mut(&mut self) -> impl Iterator<Item = &mut Data> {
        let waiting = self.buffer.iter_mut().map(|publication| &mut publication.data);
        self.visible.iter_mut().flatten().chain(waiting)
    }
}
