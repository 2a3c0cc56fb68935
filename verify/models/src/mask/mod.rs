//! The active mask: testing a bit before setting it, with the barrier on the drainer's side.
//!
//! Markers publish data for an ID (an item in its list, a record in its ring) and then make sure
//! that the ID's bit is set: a load and a test, and an atomic read-modify-write only if the bit was
//! clear. Drainers take the bits and then visit the IDs. This is Dekker's problem: the marker
//! stores data and loads the bit, the drainer stores the bit and loads the data, and at least one
//! of the two must observe the store of the other. A barrier between store and load is needed on
//! both sides. The marker has none: the drainer makes the kernel run one on every processor that
//! runs the process (membarrier), after it has taken the bits and before it visits any ID.
//!
//! Markers mark forever, any ID at any time; drainers drain forever, and at the same time.
//! Executions are not bounded.
//!
//! # Representation of the data
//!
//! The model only records whether something was published and not visited. All data that one marker
//! has published for one ID is one flag in memory, with the data that waits in the marker's store
//! buffer beside it. A visit takes the visible data of all markers. Each publication also carries
//! information for the properties, on which no step depends: whether its mark has returned, and
//! which drains have begun since.
//!
//! # Assumptions
//!
//! 1. A marker has a store buffer of its own: the publication of the mark in progress and an
//!    earlier one may wait in it for as long as they like, up to the next barrier. A longer buffer
//!    would add nothing: what its marker does while a publication waits, another marker can do. The
//!    barrier of a context switch is left out, and a signal handler is a marker with a buffer of
//!    its own; both allow more than a machine does.
//! 2. [`Memory::Fifo`]: publications become visible in order, and the atomic read-modify-write
//!    makes them visible, too. [`Memory::Unordered`]: in any order, except for the same ID; the
//!    read-modify-write does nothing of the kind; the load of a test may be performed at any time
//!    after the marker's last access to the mask, also before the publication; a drainer may read
//!    data before it takes the bits.
//! 3. An atomic read-modify-write of a word is one step that all threads observe at once. There is
//!    one order of the values of a word, and loads of one word by one thread observe it in order,
//!    even if the requested bits differ. (So they are performed early only back to the last access
//!    to the whole mask, which is less than different words would allow.)
//! 4. Membarrier reaches the markers one by one, in any order. On each of them: what was stored
//!    becomes visible, and a load that was performed early is performed again. A thread that does
//!    not run had its barrier when it was scheduled out.
//! 5. A marker reads the ID, is preempted and moved, and marks an ID that is another CPU's by then:
//!    markers mark any ID here, and no ID has an owner.
//! 6. A drain that begins after a mark has returned observes the effect of that mark on the mask:
//!    the two are ordered by a synchronisation that both took part in, or by time on machines where
//!    that is the same.
//! 7. The separation of a visit from publications and other visits is the task of the data
//!    structure.

mod drainer;
mod marker;
mod narrate;
mod properties;
mod protocol;
mod renaming;
pub mod state;

use crate::explore::Model;
use crate::memory::Memory;
use state::{DRAINERS, Drainer, Id, MARKERS, Marker, Set, State};

pub use properties::{FORGOTTEN, OWED};
pub use protocol::{Action, Draining, Marking, Mask};

impl Mask {
    /// Returns the protocol with store buffers: two markers, two drainers, one ID.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ids: 1,
            words: 1,
            markers: 2,
            drainers: 2,
            memory: Memory::Fifo,
            marking: Marking::Sound,
            draining: Draining::Sound,
            symmetric: true,
        }
    }

    /// Returns the IDs in a word of the mask.
    fn word(&self, word: u8) -> Set {
        if self.words == 1 { (1 << self.ids) - 1 } else { 1 << word }
    }

    /// Returns the IDs in the word that has `id`.
    fn word_of(&self, id: Id) -> Set {
        self.word(if self.words == 1 { 0 } else { id })
    }

    fn marker_actions(&self, state: &State, nr: usize, out: &mut Vec<Action>) {
        let marker = &state.markers[nr];
        out.extend(marker.buffer.ready(self.memory).map(|index| Action::Flush(nr, index)));
        if marker::can_begin(self, state, nr) {
            out.extend((0..self.ids).map(|id| Action::Mark(nr, id)));
        }
        if marker::can_step(state, nr) {
            out.push(Action::Marker(nr));
        }
        if marker::can_load_early(self, state, nr) {
            out.push(Action::Early(nr));
        }
    }

    fn drainer_actions(&self, state: &State, nr: usize, out: &mut Vec<Action>) {
        let drainer = &state.drainers[nr];
        if drainer.step.is_none() {
            out.push(Action::Drain(nr));
        }
        let parts = drainer::parts(self, drainer);
        out.extend(
            (0..8).filter(|part| parts & 1 << part != 0).map(|part| Action::Drainer(nr, part)),
        );
        out.extend(drainer::early_reads(self, state, nr).map(|id| Action::Read(nr, id)));
    }
}

impl Default for Mask {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for Mask {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let (markers, drainers) = ([Marker::NEW; MARKERS], [Drainer::IDLE; DRAINERS]);
        vec![State { mask: 0, markers, drainers, owing: false }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        (0..self.markers.into()).for_each(|nr| self.marker_actions(state, nr, out));
        (0..self.drainers.into()).for_each(|nr| self.drainer_actions(state, nr, out));
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        match action {
            Action::Mark(nr, id) => marker::begin(self, &mut next, nr, id),
            Action::Marker(nr) => marker::step(self, &mut next, nr),
            Action::Early(nr) => next.markers[nr].early = Some(state.mask),
            Action::Flush(nr, index) => next.markers[nr].flush(index),
            Action::Drain(nr) => drainer::begin(self, &mut next, nr),
            Action::Drainer(nr, part) => drainer::step(self, &mut next, nr, part),
            Action::Read(nr, id) => next.drainers[nr].blind |= 1 << id,
        }
        next
    }

    fn canonical(&self, state: &State) -> State {
        if self.symmetric { renaming::representative(self, state) } else { *state }
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        properties::broken(state)
    }

    fn begins(&self, _: &State, action: Action) -> bool {
        matches!(action, Action::Mark(..) | Action::Drain(_))
    }

    fn at_rest(&self, state: &State) -> bool {
        state.markers.iter().all(|marker| marker.mark.is_none())
            && state.drainers.iter().all(|drainer| drainer.step.is_none())
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        narrate::narrate(self, before, action)
    }

    fn picture(&self, state: &State) -> String {
        narrate::picture(self, state)
    }
}
