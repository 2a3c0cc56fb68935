//! Draining: taking the bits, then visiting the members.

use super::protocol::{Draining, Mask};
use super::state::{DrainStep, Drainer, Id, Set, State};
use crate::memory::Memory;

impl Draining {
    fn steps(self) -> &'static [DrainStep] {
        use DrainStep::{Clear, Fence, Look, Membarrier, Take, Visit};
        match self {
            Self::Sound | Self::OneWord => &[Take, Membarrier, Visit],
            Self::Fenced => &[Take, Fence, Visit],
            Self::NoBarrier => &[Take, Visit],
            Self::BarrierFirst => &[Membarrier, Take, Visit],
            Self::VisitFirst => &[Look, Membarrier, Visit, Clear],
            Self::TornTake => &[Look, Clear, Membarrier, Visit],
        }
    }

    fn after(self, step: DrainStep) -> Option<DrainStep> {
        let at = self.steps().iter().position(|&other| other == step);
        self.steps().get(at.expect("a drain is at one of its own steps") + 1).copied()
    }
}

/// Begins a drain: it owes all data that was announced by a mark that has returned.
pub(super) fn begin(mask: &Mask, state: &mut State, nr: usize) {
    for marker in &mut state.markers {
        for data in marker.unvisited_mut().filter(|data| data.returned) {
            data.owed |= 1 << nr;
        }
    }
    state.drainers[nr].step = Some(mask.draining.steps()[0]);
}

/// Returns the remaining parts of the step in progress: words, markers or IDs, in any order.
pub(super) fn parts(mask: &Mask, drainer: &Drainer) -> Set {
    let all = match drainer.step {
        None => 0,
        Some(DrainStep::Take | DrainStep::Look | DrainStep::Clear) => (1 << mask.words) - 1,
        Some(DrainStep::Membarrier) => (1 << mask.markers) - 1,
        Some(DrainStep::Fence) => 1,
        // A visited ID is not left.
        Some(DrainStep::Visit) => return drainer.left,
    };
    all & !drainer.done
}

/// Does one part of the step in progress.
pub(super) fn step(mask: &Mask, state: &mut State, nr: usize, part: u8) {
    let now = state.drainers[nr].step.expect("only drains in progress take steps");
    act(mask, state, nr, now, part);
    let drainer = &mut state.drainers[nr];
    if now != DrainStep::Visit {
        drainer.done |= 1 << part;
    }
    let content = mask.draining == Draining::OneWord && drainer.left != 0;
    if parts(mask, drainer) != 0 && !(now == DrainStep::Take && content) {
        return;
    }
    drainer.done = 0;
    let found_nothing = matches!(now, DrainStep::Take | DrainStep::Look) && drainer.left == 0;
    match mask.draining.after(now) {
        Some(next) if !found_nothing => drainer.step = Some(next),
        _ => end(state, nr),
    }
}

fn act(mask: &Mask, state: &mut State, nr: usize, step: DrainStep, part: u8) {
    match step {
        DrainStep::Take => {
            state.drainers[nr].left |= state.mask & mask.word(part);
            state.mask &= !mask.word(part);
        }
        DrainStep::Look => state.drainers[nr].left |= state.mask & mask.word(part),
        DrainStep::Clear => state.mask &= !mask.word(part),
        DrainStep::Membarrier => {
            state.markers[usize::from(part)].barrier();
            // The caller runs a full barrier, too.
            state.drainers[nr].blind = 0;
        }
        DrainStep::Fence => state.drainers[nr].blind = 0,
        DrainStep::Visit => visit(state, nr, part),
    }
}

/// Reads an ID's data: what is visible is visited.
fn visit(state: &mut State, nr: usize, id: Id) {
    let drainer = &mut state.drainers[nr];
    drainer.left &= !(1 << id);
    if drainer.blind & 1 << id == 0 {
        state.markers.iter_mut().for_each(|marker| marker.visible[usize::from(id)] = None);
    }
}

/// Ends the drain. Everything that it owed must have been visited, unless another drain has taken
/// its bit and is under way.
fn end(state: &mut State, nr: usize) {
    state.drainers[nr] = Drainer::IDLE;
    let others = state.drainers.iter().fold(0, |left, other| left | other.left);
    for marker in &mut state.markers {
        let owes = marker.unvisited().any(|publication| {
            publication.data.owed & 1 << nr != 0 && others & 1 << publication.id == 0
        });
        state.owing |= owes;
        marker.unvisited_mut().for_each(|data| data.owed &= !(1 << nr));
    }
}

/// Returns the IDs whose data a drainer may read early: before it takes the bits. An early read
/// matters only if it finds nothing.
pub(super) fn early_reads(mask: &Mask, state: &State, nr: usize) -> impl Iterator<Item = Id> {
    let drainer = state.drainers[nr];
    let may = mask.memory == Memory::Unordered && drainer.step == Some(DrainStep::Take);
    let markers = state.markers;
    (0..mask.ids).filter(move |&id| {
        may && drainer.blind & 1 << id == 0
            && markers.iter().all(|marker| marker.visible[usize::from(id)].is_none())
    })
}
