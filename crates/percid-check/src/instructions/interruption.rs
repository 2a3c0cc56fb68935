//! The events at an interrupted instruction.

use std::fmt;

use percid::Source;

/// An event while a thread is interrupted at an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// Nothing but the signal.
    Nothing,
    /// The signal handler operates.
    Handler,
    /// Another thread of this CPU operates, with the same ID.
    Neighbour,
    /// The thread goes on on another CPU, and another thread operates on this one.
    Move,
    /// Another thread visits.
    Visit,
    /// Another CPU steals this one's ID and operates with it.
    Steal,
    /// This CPU's ID is evicted, and another CPU operates.
    Evict,
}

impl Interruption {
    /// Returns those that are possible with a source, and with or without a second CPU.
    pub(super) fn all(source: Source, second_cpu: bool) -> Vec<Interruption> {
        use Interruption::{Evict, Handler, Move, Neighbour, Nothing, Steal, Visit};
        let all = [Nothing, Handler, Neighbour, Visit, Move, Steal, Evict];
        let possible = |interruption: &Interruption| match interruption {
            Move => second_cpu,
            Steal => second_cpu && source == Source::Table,
            Evict => source == Source::Table,
            _ => true,
        };
        all.into_iter().filter(possible).collect()
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interruption::Nothing => "a signal",
            Interruption::Handler => "a signal handler that operated",
            Interruption::Neighbour => "another thread, which operated on the same CPU",
            Interruption::Move => "a move to another CPU while another thread operated on this one",
            Interruption::Visit => "a visit by another thread",
            Interruption::Steal => "a steal of its ID by another CPU, which operated with it",
            Interruption::Evict => "an eviction of its ID",
        })
    }
}
