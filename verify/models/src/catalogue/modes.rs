//! The ownership modes.

use super::{Case, Size, System, case};
use crate::explore::DRAINS;
use crate::kernel::LEAK;
use crate::modes::{BORROWED, Flaw, Modes};

/// The protocol as it is.
pub(super) fn sound() -> Vec<Case> {
    let [new, scarce] = [Modes::new(), Modes::scarce(2)];
    let four = |modes| Modes { threads: 4, ..modes };
    let named = |name, size, modes, claim| case(name, size, System::Modes(modes), None, claim);
    vec![
        named("e", Size::Quick, new, "2 of 4 CPUs, 3 threads"),
        named("e/four-threads", Size::Quick, four(new), "2 of 4 CPUs, 4 threads"),
        named(
            "e/three-cpus",
            Size::Quick,
            four(Modes { cpus: 3, ..new }),
            "3 of 4 CPUs, 4 threads",
        ),
        named("e/scarce", Size::Quick, scarce, "2 IDs for 2 CPUs, 3 threads"),
        named("e/scarce/four-threads", Size::Quick, four(scarce), "2 IDs for 2 CPUs, 4 threads"),
        named(
            "e/scarce/three-cpus",
            Size::Quick,
            four(Modes::scarce(3)),
            "3 IDs for 3 CPUs, 4 threads",
        ),
    ]
}

/// What it does not survive.
pub(super) fn controls() -> Vec<Case> {
    let with = |flaw, modes| Modes { flaw: Some(flaw), ..modes };
    let [new, scarce] = [Modes::new(), Modes::scarce(2)];
    let named = |name, modes, breaks, claim| {
        case(name, Size::Quick, System::Modes(modes), Some(breaks), claim)
    };
    vec![
        named(
            "e/two-words",
            with(Flaw::TwoWords, scarce),
            DRAINS,
            "the mode seen before the transition bit: a CPU spins forever",
        ),
        named("e/no-transit", with(Flaw::NoTransit, scarce), DRAINS, "without transitions, too"),
        named(
            "e/kept-in-transit",
            with(Flaw::KeptInTransit, scarce),
            DRAINS,
            "and if IDs are kept while owners change",
        ),
        named(
            "e/unlocked",
            with(Flaw::Unlocked, new),
            BORROWED,
            "without the run-queue lock a fix-up frees an ID in use",
        ),
        named(
            "e/marked-at-exit",
            with(Flaw::MarkedAtExit, new),
            LEAK,
            "an exit must know an ID in transit for one",
        ),
    ]
}
