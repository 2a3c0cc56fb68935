//! Publishing and marking.

use super::protocol::{Marking, Mask};
use super::state::{Data, Id, Mark, MarkStep, Publication, Set, State};
use crate::memory::Memory;

impl Marking {
    fn steps(self) -> &'static [MarkStep] {
        use MarkStep::{Fence, Publish, Set, Store, Test};
        match self {
            Self::Sound => &[Publish, Test, Set],
            Self::Fenced => &[Publish, Fence, Test, Set],
            Self::TestFirst => &[Test, Publish, Set],
            Self::TornSet => &[Publish, Test, Store],
        }
    }

    /// Returns a mark before its first step.
    pub(super) fn first(self, id: Id) -> Mark {
        Mark { id, step: self.steps()[0], found: 0 }
    }

    /// Returns the bits whose loaded values matter to the steps after the test.
    fn matter(self, mask: &Mask, id: Id) -> Set {
        if self == Self::TornSet { mask.word_of(id) } else { 1 << id }
    }

    /// Returns the step of `mark` after this one; `None` if it is over.
    fn after(self, mark: &Mark) -> Option<MarkStep> {
        let at = self.steps().iter().position(|&step| step == mark.step);
        let rest = &self.steps()[at.expect("a mark is at one of its own steps") + 1..];
        let is_set = mark.found & 1 << mark.id != 0;
        rest.iter()
            .copied()
            .find(|step| !(is_set && matches!(step, MarkStep::Set | MarkStep::Store)))
    }
}

/// Returns `true` if a marker can begin to mark: publishing needs space in the buffer.
pub(super) fn can_begin(mask: &Mask, state: &State, nr: usize) -> bool {
    state.markers[nr].mark.is_none() && has_room(state, nr, mask.marking.steps()[0])
}

/// Begins a mark with its first step.
pub(super) fn begin(mask: &Mask, state: &mut State, nr: usize, id: Id) {
    state.markers[nr].mark = Some(mask.marking.first(id));
    step(mask, state, nr);
}

/// Returns `true` if a marker can take its next step.
pub(super) fn can_step(state: &State, nr: usize) -> bool {
    state.markers[nr].mark.is_some_and(|mark| has_room(state, nr, mark.step))
}

/// Returns `true` if the load of a marker's next test may be performed. It is sufficient to permit
/// that between two marks: later, it would not differ from the test.
pub(super) fn can_load_early(mask: &Mask, state: &State, nr: usize) -> bool {
    let marker = &state.markers[nr];
    mask.memory == Memory::Unordered && marker.mark.is_none() && marker.early.is_none()
}

fn has_room(state: &State, nr: usize, step: MarkStep) -> bool {
    step != MarkStep::Publish || !state.markers[nr].buffer.is_full()
}

/// Takes the next step of a mark.
pub(super) fn step(mask: &Mask, state: &mut State, nr: usize) {
    let mut mark = state.markers[nr].mark.expect("only marks in progress take steps");
    match mark.step {
        MarkStep::Publish => publish(mask, state, nr, mark.id),
        MarkStep::Fence => state.markers[nr].barrier(),
        MarkStep::Test => {
            let word = state.markers[nr].early.take().unwrap_or(state.mask);
            mark.found = word & mask.marking.matter(mask, mark.id);
        }
        MarkStep::Set => {
            state.mask |= 1 << mark.id;
            state.markers[nr].early = None;
            if mask.memory == Memory::Fifo {
                state.markers[nr].flush_all();
            }
        }
        MarkStep::Store => {
            state.mask &= !mask.word_of(mark.id);
            state.mask |= mark.found | 1 << mark.id;
        }
    }
    match mask.marking.after(&mark) {
        Some(step) => state.markers[nr].mark = Some(Mark { step, ..mark }),
        None => returns(state, nr, mark.id),
    }
}

fn publish(mask: &Mask, state: &mut State, nr: usize, id: Id) {
    let publication = Publication { id, data: Data::NEW };
    let marker = &mut state.markers[nr];
    match mask.memory {
        Memory::Sequential => marker.show(publication),
        Memory::Fifo | Memory::Unordered => marker.buffer.push(publication),
    }
}

/// Ends the mark; a visit may have taken the announced data already.
fn returns(state: &mut State, nr: usize, id: Id) {
    let marker = &mut state.markers[nr];
    marker.mark = None;
    if let Some(data) = marker.newest(id) {
        data.returned = true;
    }
}
