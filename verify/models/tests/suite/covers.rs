//! The rules cover the generations: no generation has a step that the rules lack.

use percid_models::kernel::{Generation, Kernel, Memory, Role, Stalls};
use percid_models::rules::Rules;
use percid_models::rules::covers::uncovered;

const GENERATIONS: [Generation; 3] = [Generation::B, Generation::C, Generation::D];
const TWO_MOVES: &[Role] = &[Role::Mover, Role::Mover];
const SCAN: &[Role] = &[Role::Scanner];
const TWO_SCANS: &[Role] = &[Role::Scanner, Role::Scanner];
const SCAN_AND_MOVE: &[Role] = &[Role::Scanner, Role::Mover];

fn check(kernel: &Kernel) {
    let coverage = uncovered(kernel, &Rules::matching(kernel));
    println!(
        "{:?} {:?}: {} states, {} steps",
        kernel.generation, kernel.agents, coverage.states, coverage.steps
    );
    assert_eq!(coverage.gap, None, "{kernel:?}");
}

#[test]
fn two_moves_on_two_cpus() {
    for generation in GENERATIONS {
        for tagged in [false, true] {
            check(&Kernel { cpus: 2, threads: 2, tagged, ..Kernel::new(generation, TWO_MOVES) });
        }
    }
}

#[test]
fn a_scan_and_a_move_on_two_cpus() {
    for generation in GENERATIONS {
        let two_cpus =
            Kernel { cpus: 2, threads: 2, exits: false, ..Kernel::new(generation, SCAN_AND_MOVE) };
        check(&Kernel { stalls: Stalls::Short, ..two_cpus });
    }
}

#[test]
fn a_late_scan_on_two_cpus() {
    for generation in GENERATIONS {
        check(&Kernel { cpus: 2, threads: 2, exits: false, ..Kernel::new(generation, SCAN) });
    }
}

#[test]
fn two_moves_that_lock_the_source() {
    for generation in GENERATIONS {
        let two_cpus = Kernel { cpus: 2, threads: 2, ..Kernel::new(generation, TWO_MOVES) };
        check(&Kernel { locks_source: true, ..two_cpus });
    }
}

#[test]
fn with_a_store_buffer() {
    for barrier in [false, true] {
        let memory = Memory::Buffered { barrier };
        check(&Kernel { cpus: 2, threads: 2, memory, ..Kernel::new(Generation::B, TWO_MOVES) });
    }
}

#[test]
#[ignore = "long: a state space of minutes"]
fn two_late_scans_on_two_cpus() {
    for generation in GENERATIONS {
        check(&Kernel { cpus: 2, threads: 2, exits: false, ..Kernel::new(generation, TWO_SCANS) });
    }
}

#[test]
#[ignore = "long: a state space of minutes"]
fn two_moves_on_three_cpus() {
    for generation in GENERATIONS {
        check(&Kernel { tagged: true, ..Kernel::new(generation, TWO_MOVES) });
    }
}

/// Negative control: the rules with version tags do not cover a generation without.
#[test]
fn a_gap_is_found() {
    let kernel = Kernel {
        cpus: 2,
        threads: 3,
        stalls: Stalls::Short,
        ..Kernel::new(Generation::B, SCAN_AND_MOVE)
    };
    let coverage = uncovered(&kernel, &Rules { tagged: true, ..Rules::matching(&kernel) });
    assert!(coverage.gap.is_some(), "{coverage:?}");
}
