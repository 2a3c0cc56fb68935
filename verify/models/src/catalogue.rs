//! What the crate claims: every configuration that is explored, and the verdict that it must have.

use crate::explore::{DRAINS, Report, Verdict, explore};
use crate::kernel::{Generation, Kernel, Memory, Role, SHARED_ID, Stalls};
use crate::rules::Rules;
use crate::table::{LOST, Lock, Order, SOLO, Table};

/// How long a configuration takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Seconds: part of the tests.
    Quick,
    /// A minute or two.
    Standard,
    /// Longer, and up to some gigabytes of memory.
    Full,
}

/// A model in one configuration.
#[derive(Debug, Clone, Copy)]
pub enum System {
    /// A generation of the kernel's protocol.
    Kernel(Kernel),
    /// The rules that the generations share.
    Rules(Rules),
    /// percid's table.
    Table(Table),
}

/// A configuration and what must come out of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name on the command line.
    pub name: String,
    /// What its verdict says.
    pub claim: &'static str,
    /// How long it takes.
    pub size: Size,
    /// The configuration.
    pub system: System,
    /// The property that must break; none if all must hold.
    pub breaks: Option<&'static str>,
}

impl Case {
    /// Explores the configuration.
    #[must_use]
    pub fn run(&self) -> Report {
        match &self.system {
            System::Kernel(kernel) => explore(kernel),
            System::Rules(rules) => explore(rules),
            System::Table(table) => explore(table),
        }
    }

    /// Whether `verdict` is the one that the case must have.
    #[must_use]
    pub fn accepts(&self, verdict: &Verdict) -> bool {
        verdict.broken() == self.breaks
    }
}

/// All cases.
#[must_use]
pub fn catalogue() -> Vec<Case> {
    let mut cases = Vec::new();
    for (generation, name) in [(Generation::B, "b"), (Generation::C, "c"), (Generation::D, "d")] {
        cases.extend(of_generation(generation, name));
    }
    cases.extend(of_rules());
    cases.extend(of_table());
    cases.extend(negative_controls());
    cases
}

fn case(
    name: &str,
    size: Size,
    system: System,
    breaks: Option<&'static str>,
    claim: &'static str,
) -> Case {
    Case { name: name.into(), claim, size, system, breaks }
}

const MOVE: &[Role] = &[Role::Mover];
const TWO_MOVES: &[Role] = &[Role::Mover, Role::Mover];
const SCAN_AND_MOVE: &[Role] = &[Role::Scanner, Role::Mover];

/// The ABA question, for one generation.
fn of_generation(generation: Generation, name: &str) -> Vec<Case> {
    let new = |agents| Kernel::new(generation, agents);
    let short = |agents| Kernel { stalls: Stalls::Short, ..new(agents) };
    let tagged = Kernel { tagged: true, ..new(TWO_MOVES) };
    let large = if generation == Generation::B { Size::Standard } else { Size::Full };
    let named = |suffix: &str, size, kernel, breaks, claim| {
        case(&format!("{name}/{suffix}"), size, System::Kernel(kernel), breaks, claim)
    };
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
        named("one-move", large, new(MOVE), None, "one migration at a time is safe"),
    ]
}

/// What all generations have in common.
fn of_rules() -> Vec<Case> {
    let new = |agents, tagged| Rules::new(agents, tagged);
    let two_cpus = Rules { cpus: 2, ..new(2, true) };
    let after = Rules { sharing_ends: false, ..new(2, false) };
    let buffered = |barrier| Rules { memory: Memory::Buffered { barrier }, ..new(1, false) };
    let buffered_tagged = Rules { memory: Memory::Buffered { barrier: true }, ..two_cpus };
    let named =
        |name, size, rules, breaks, claim| case(name, size, System::Rules(rules), breaks, claim);
    vec![
        named(
            "rules/one-agent",
            Size::Quick,
            new(1, false),
            None,
            "b, c, d: one remote agent at a time is safe",
        ),
        named(
            "rules/two-agents",
            Size::Quick,
            new(2, false),
            Some(SHARED_ID),
            "b, c, d: the ABA at its barest",
        ),
        named(
            "rules/two-agents/ownership",
            Size::Full,
            after,
            None,
            "even so, no bit is freed twice or leaks",
        ),
        named(
            "rules/two-agents/tagged/2-cpus",
            Size::Quick,
            two_cpus,
            None,
            "b, c, d: a version tag removes it (2 CPUs)",
        ),
        named(
            "rules/two-agents/tagged",
            Size::Standard,
            new(2, true),
            None,
            "b, c, d: a version tag removes it",
        ),
        named(
            "rules/three-agents/tagged/2-cpus",
            Size::Standard,
            Rules { agents: 3, ..two_cpus },
            None,
            "b, c, d: also among three agents (2 CPUs)",
        ),
        named(
            "rules/barrier",
            Size::Standard,
            buffered(true),
            None,
            "rule 5: the barrier makes a store buffer harmless",
        ),
        named(
            "rules/barrier/tagged/2-cpus",
            Size::Standard,
            buffered_tagged,
            None,
            "rule 5, two agents, tagged (2 CPUs)",
        ),
        named(
            "rules/no-barrier",
            Size::Quick,
            buffered(false),
            Some(SHARED_ID),
            "rule 5: without the barrier one agent is enough",
        ),
    ]
}

/// percid's protocol must come out clean.
fn of_table() -> Vec<Case> {
    let new = Table::new();
    let pair = Table { threads: 2, handlers: 2, ..new };
    let open = Table { threads: 2, handlers: 1, blocks_signals: false, ..new };
    let named = |name, size, table, claim| case(name, size, System::Table(table), None, claim);
    vec![
        named("table", Size::Quick, new, "3 CPUs, 3 threads, 2 agents, 2 IDs"),
        named(
            "table/one-id",
            Size::Quick,
            Table { ids: 1, ..new },
            "one ID, which every other CPU must steal",
        ),
        named("table/three-ids", Size::Quick, Table { ids: 3, ..new }, "as many IDs as CPUs"),
        named("table/two-handlers", Size::Quick, pair, "2 threads, both with signal handlers"),
        named("table/exits", Size::Quick, Table { exits: true, ..new }, "threads exit"),
        named(
            "table/one-handler",
            Size::Standard,
            Table { handlers: 1, ..new },
            "3 threads, one with a signal handler",
        ),
        named(
            "table/all-handlers",
            Size::Full,
            Table { handlers: 3, exits: true, ..new },
            "3 threads, all with handlers, exits",
        ),
        named(
            "table/open-signals",
            Size::Quick,
            open,
            "the shared slot alone keeps handlers from deadlock",
        ),
    ]
}

/// What must not come out clean.
fn negative_controls() -> Vec<Case> {
    let new = Table { threads: 2, ..Table::new() };
    let order = |order| Table { order, ..new };
    let waiting = Table { lock: Lock::Wait, ..new };
    let deadlock = Table { handlers: 1, blocks_signals: false, checks_solo: false, ..waiting };
    let no_deadlock = Table { blocks_signals: true, ..deadlock };
    let named =
        |name, table, breaks, claim| case(name, Size::Quick, System::Table(table), breaks, claim);
    vec![
        named(
            "table/no-fence",
            order(Order::NoFence),
            Some(LOST),
            "without the fence increments are lost",
        ),
        named(
            "table/fence-first",
            order(Order::FenceFirst),
            Some(LOST),
            "with the fence before the store of UNSET, too",
        ),
        named(
            "table/install-first",
            order(Order::InstallFirst),
            Some(LOST),
            "with the ID given on before the fence, too",
        ),
        named(
            "table/cpu-outside",
            Table { cpu_inside: false, ..new },
            Some(LOST),
            "with the CPU number read outside, too",
        ),
        named("table/waiting", waiting, Some(SOLO), "a lock that is waited for makes adds wait"),
        named(
            "table/waiting/deadlock",
            deadlock,
            Some(DRAINS),
            "and deadlocks with a handler in the slow path",
        ),
        named(
            "table/waiting/blocked",
            no_deadlock,
            None,
            "which blocking signals alone would prevent",
        ),
    ]
}
