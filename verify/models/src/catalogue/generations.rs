//! The kernel's slot protocol: can an agent that is late free an ID in use?

use super::{Case, Size, System, case};
use crate::kernel::{Generation, Kernel, Role, SHARED_ID, Stalls, Undelayed};

const MOVE: &[Role] = &[Role::Mover];
const SCAN: &[Role] = &[Role::Scanner];
const TWO_MOVES: &[Role] = &[Role::Mover, Role::Mover];
const SCAN_AND_MOVE: &[Role] = &[Role::Scanner, Role::Mover];

/// Returns the cases of every generation.
pub(super) fn all() -> Vec<Case> {
    let generations = [(Generation::B, "b"), (Generation::C, "c"), (Generation::D, "d")];
    let one = |(generation, name)| {
        [one_late(generation, name), remedies(generation, name), two_late(generation, name)]
    };
    generations.into_iter().flat_map(one).flatten().collect()
}

fn named(
    (generation, suffix): (&str, &str),
    size: Size,
    kernel: Kernel,
    breaks: Option<&'static str>,
    claim: &'static str,
) -> Case {
    case(&format!("{generation}/{suffix}"), size, System::Kernel(kernel), breaks, claim)
}

/// Returns the configuration in which one agent is late, and nothing else: all other scans, and all
/// switches, are whole.
const fn among_scans(generation: Generation, agents: &'static [Role]) -> Kernel {
    let undelayed = Undelayed { moves: false, ..Undelayed::ALL };
    Kernel { undelayed, exits: false, ..Kernel::new(generation, agents) }
}

/// Returns the cases that show that one late agent is enough.
fn one_late(generation: Generation, name: &str) -> Vec<Case> {
    let broken = |suffix, agents, claim| {
        let kernel = among_scans(generation, agents);
        named((name, suffix), Size::Quick, kernel, Some(SHARED_ID), claim)
    };
    vec![
        broken("late-move", MOVE, "one late migration, and scans that are not late"),
        broken("late-scan", SCAN, "one late scan, and scans that are not late"),
    ]
}

/// Makes a precaution part of a configuration.
type Remedy = fn(Kernel) -> Kernel;

/// Returns the cases of precautions that make one late agent harmless.
fn remedies(generation: Generation, name: &str) -> Vec<Case> {
    let remedies: [(_, Remedy, _); 3] = [
        ("tagged", |kernel| Kernel { tagged: true, ..kernel }, "a version tag removes it"),
        ("locked", |kernel| Kernel { locks_source: true, ..kernel }, "the source's lock, too"),
        ("unweighed", |kernel| Kernel { weighs: false, ..kernel }, "it takes the weight scan"),
    ];
    let [of_move, of_scan] = match generation {
        Generation::B => [Size::Quick, Size::Standard],
        Generation::C | Generation::D => [Size::Standard, Size::Full],
    };
    let mut cases = Vec::new();
    for (remedy, with, claim) in remedies {
        let mut holds = |suffix: &str, size, kernel, claim| {
            cases.push(named((name, suffix), size, with(kernel), None, claim));
        };
        let few = |agents| among_scans(generation, agents);
        let all = |agents| Kernel { undelayed: Undelayed::ALL, exits: true, ..few(agents) };
        let among_all = "also among migrations and exits";
        holds(&format!("late-move/{remedy}"), of_move, few(MOVE), claim);
        holds(&format!("late-move/{remedy}/all"), Size::Full, all(MOVE), among_all);
        holds(&format!("late-scan/{remedy}"), of_scan, few(SCAN), claim);
        if generation == Generation::B {
            holds(&format!("late-scan/{remedy}/all"), Size::Full, all(SCAN), among_all);
        }
    }
    cases
}

/// Returns the cases in which two agents are late by moments, which need no scan.
fn two_late(generation: Generation, name: &str) -> Vec<Case> {
    let new = |agents| Kernel::new(generation, agents);
    let short = |agents| Kernel { stalls: Stalls::Short, ..new(agents) };
    let tagged = Kernel { tagged: true, ..new(TWO_MOVES) };
    let locked = Kernel { locks_source: true, ..new(TWO_MOVES) };
    let large = if generation == Generation::B { Size::Standard } else { Size::Full };
    let named =
        |suffix, size, kernel, breaks, claim| named((name, suffix), size, kernel, breaks, claim);
    vec![
        named(
            "two-moves",
            Size::Quick,
            short(TWO_MOVES),
            Some(SHARED_ID),
            "ABA between two migrations",
        ),
        named(
            "scan+move",
            Size::Standard,
            short(SCAN_AND_MOVE),
            Some(SHARED_ID),
            "ABA between a scan and a migration",
        ),
        named("two-moves/tagged", large, tagged, None, "a version tag removes it"),
        named("two-moves/locked", large, locked, None, "the source's run-queue lock, too"),
        named("one-move", large, new(MOVE), None, "one migration at a time is safe"),
    ]
}
