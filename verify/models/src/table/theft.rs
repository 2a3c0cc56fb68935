//! Taking an ID away from a CPU: the sequence that threads in the slow path and remote agents
//! share.

use super::state::{CpuNr, Id, Read, State, Theft, TheftStep};

/// The order of the steps of a theft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The protocol: UNSET, fence, use, settle.
    Sound,
    /// Negative control: no fence.
    NoFence,
    /// Negative control: the fence before the store of UNSET.
    FenceFirst,
    /// Negative control: the ID goes to its new CPU before the fence (the thief itself does not use
    /// it).
    InstallFirst,
}

impl Order {
    fn steps(self) -> &'static [TheftStep] {
        use TheftStep::{Fence, Load, Settle, Unset};
        const STORE: TheftStep = TheftStep::Store { fresh: true };
        match self {
            Self::Sound => &[Unset, Fence, Load, STORE, Settle],
            Self::NoFence => &[Unset, Load, STORE, Settle],
            Self::FenceFirst => &[Fence, Unset, Load, STORE, Settle],
            Self::InstallFirst => &[Unset, Settle, Fence],
        }
    }

    fn position(self, step: TheftStep) -> usize {
        let same =
            |other: &TheftStep| std::mem::discriminant(other) == std::mem::discriminant(&step);
        self.steps().iter().position(same).expect("a theft is at one of its own steps")
    }

    fn has_passed(self, theft: &Theft, step: TheftStep) -> bool {
        self.position(theft.step) > self.position(step)
    }

    /// Returns a theft that has not begun.
    pub(super) fn begin(self, victim: CpuNr, id: Id, to: Option<CpuNr>) -> Theft {
        Theft { id, victim: Some(victim), to, step: self.steps()[0] }
    }

    /// Returns `true` if the ID is neither in the table nor free.
    pub(super) fn in_transit(self, theft: &Theft) -> bool {
        self.has_passed(theft, TheftStep::Unset) && !self.has_passed(theft, TheftStep::Settle)
    }

    /// Takes the next step; returns `false` if it was the last one. `theft` must be a copy: the
    /// state's own is outdated by stores.
    pub(super) fn advance(self, state: &mut State, theft: &mut Theft) -> bool {
        self.act(state, theft);
        let Some(&next) = self.steps().get(self.position(theft.step) + 1) else { return false };
        theft.step = next;
        if !self.needs_victim(theft) {
            theft.victim = None;
        }
        true
    }

    /// Returns `true` if the next step is a fence that may be refused, while no thread uses the ID
    /// yet.
    pub(super) fn can_be_refused(self, theft: &Theft) -> bool {
        self == Self::Sound && theft.step == TheftStep::Fence
    }

    /// Refuses the fence, as the kernel may do: the victim gets its ID back.
    pub(super) fn refuse(self, state: &mut State, theft: &Theft) {
        let victim = theft.victim.expect("the victim is known until it is fenced");
        state.install(victim, theft.id);
    }

    fn act(self, state: &mut State, theft: &Theft) {
        match (theft.step, theft.victim) {
            (TheftStep::Unset, Some(victim)) => *state.entry(victim) = None,
            (TheftStep::Fence, Some(victim)) => state.fence(victim),
            (TheftStep::Unset | TheftStep::Fence, None) => {
                unreachable!("the victim is known until it is done with")
            }
            // The value goes into a register, fresh by definition.
            (TheftStep::Load, _) => {}
            (TheftStep::Store { fresh }, _) => state.store(Read { id: theft.id, fresh }),
            (TheftStep::Settle, _) => match theft.to {
                Some(cpu) => state.install(cpu, theft.id),
                None => state.free |= 1 << theft.id,
            },
        }
    }

    fn needs_victim(self, theft: &Theft) -> bool {
        let rest = &self.steps()[self.position(theft.step)..];
        rest.iter().any(|step| matches!(step, TheftStep::Unset | TheftStep::Fence))
    }
}
