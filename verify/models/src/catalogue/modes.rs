//! The ownership modes.

use super::{Case, Size, System, case};
use crate::explore::DRAINS;
use crate::kernel::LEAK;
use crate::modes::{BORROWED, Flaw, Modes};

/// Returns the cases of the unchanged protocol.
pub(super) fn sound() -> Vec<Case> {
    let [new, scarce] = [Modes::new(), Modes::scarce(2)];
    let four = |modes| Modes { threads: 4, ..modes };
    cases! { Modes:
        "e", Quick, new, None, "2 of 4 CPUs, 3 threads";
        "e/four-threads", Quick, four(new), None, "2 of 4 CPUs, 4 threads";
        "e/three-cpus", Quick, four(Modes { cpus: 3, ..new }), None, "3 of 4 CPUs, 4 threads";
        "e/scarce", Quick, scarce, None, "2 IDs for 2 CPUs, 3 threads";
        "e/scarce/four-threads", Quick, four(scarce), None, "2 IDs for 2 CPUs, 4 threads";
        "e/scarce/three-cpus", Quick, four(Modes::scarce(3)), None, "3 IDs for 3 CPUs, 4 threads";
    }
}

/// Returns the flaws that the protocol does not survive.
pub(super) fn controls() -> Vec<Case> {
    let with = |flaw, modes| Modes { flaw: Some(flaw), ..modes };
    let [new, scarce] = [Modes::new(), Modes::scarce(2)];
    cases! { Modes:
        "e/two-words", Quick, with(Flaw::TwoWords, scarce), Some(DRAINS),
            "the mode seen before the transition bit: a CPU spins forever";
        "e/no-transit", Quick, with(Flaw::NoTransit, scarce), Some(DRAINS),
            "without transitions, too";
        "e/kept-in-transit", Quick, with(Flaw::KeptInTransit, scarce), Some(DRAINS),
            "and if IDs are kept while owners change";
        "e/unlocked", Quick, with(Flaw::Unlocked, new), Some(BORROWED),
            "without the run-queue lock a fix-up frees an ID in use";
        "e/marked-at-exit", Quick, with(Flaw::MarkedAtExit, new), Some(LEAK),
            "an exit must know an ID in transit for one";
    }
}
