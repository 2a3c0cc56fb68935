//! Visiting the memory of all IDs, from wherever the visitor runs.

use super::state::{CpuNr, Hold, Id, Set, State, Visit, Visitor};
use super::{Protocol, Structure};

impl<P: Protocol> Structure<P> {
    /// Begins a visit.
    pub(super) fn begin_visit(&self, state: &mut State<P>, nr: usize, drains: bool) {
        let owed = P::owed(self, state);
        let at = if self.flaw == Some(P::NO_TURNS) { Visit::Mask } else { Visit::Turn };
        state.visitors[nr] = Visitor { at, drains, left: 0, owed };
    }

    /// Returns `true` if a visitor can take its next step without a choice. It waits for its turn.
    pub(super) fn can_visit(&self, state: &State<P>, at: Visit<P>) -> bool {
        match at {
            Visit::Idle | Visit::Choose => false,
            Visit::Turn => !state.turn,
            Visit::Mask | Visit::End => true,
            Visit::At(hold) => !P::visitor_waits(self, state, hold),
        }
    }

    /// Takes the next step of a visitor.
    pub(super) fn visit(&self, state: &mut State<P>, nr: usize) {
        match state.visitors[nr].at {
            Visit::Turn => {
                state.turn = true;
                state.visitors[nr].at = Visit::Mask;
            }
            Visit::Mask => {
                state.visitors[nr].left = state.mask;
                state.visitors[nr].at = next(state.mask);
            }
            Visit::At(hold) => {
                let then = P::act(self, state, nr, hold);
                let visitor = &mut state.visitors[nr];
                visitor.at = then.map_or(next(visitor.left), Visit::At);
            }
            Visit::End => self.end_visit(state, nr),
            Visit::Idle | Visit::Choose => unreachable!("not a step without a choice"),
        }
    }

    /// Begins to visit one of the IDs that are left.
    pub(super) fn choose(&self, state: &mut State<P>, nr: usize, id: Id) {
        let visitor = &mut state.visitors[nr];
        visitor.left &= !(1 << id);
        visitor.at = Visit::At(self.first(id));
    }

    /// Returns the first step of a visit to an ID.
    pub(crate) fn first(&self, id: Id) -> Hold<P> {
        Hold { id, step: P::steps(self)[0], known: P::NOTHING, reached: 0 }
    }

    /// Returns the step after the one that was taken.
    pub(crate) fn after(&self, mut hold: Hold<P>, drains: bool) -> Option<Hold<P>> {
        let steps = P::steps(self);
        let at = steps.iter().position(|&step| step == hold.step);
        let at = at.expect("a visit is at one of its own steps");
        steps[at + 1..].iter().find_map(|&step| {
            hold.step = step;
            (!P::passes_over(&mut hold, drains)).then_some(hold)
        })
    }

    /// Lets membarrier reach a CPU.
    pub(super) fn reach(&self, state: &mut State<P>, nr: usize, cpu: CpuNr) {
        if self.flaw == Some(P::PLAIN_MEMBARRIER) {
            self.flush_all(state, cpu);
        } else {
            self.fence(state, cpu);
        }
        let Visit::At(mut hold) = state.visitors[nr].at else { unreachable!("nothing to fence") };
        hold.reached |= 1 << cpu;
        if hold.reached == (1 << self.cpus) - 1 {
            hold.reached = 0;
            hold = self.after(hold, state.visitors[nr].drains).expect("a visit ends later");
        }
        state.visitors[nr].at = Visit::At(hold);
    }

    /// Ends the visit. It must have had what it owed.
    fn end_visit(&self, state: &mut State<P>, nr: usize) {
        if state.visitors[nr].owed & !P::excused(self, state) != 0 {
            state.fault = Some(P::OWING);
        }
        if self.flaw != Some(P::NO_TURNS) {
            state.turn = false;
        }
        state.visitors[nr] = Visitor::IDLE;
    }
}

fn next<P: Protocol>(left: Set) -> Visit<P> {
    if left == 0 { Visit::End } else { Visit::Choose }
}
