//! What the crate claims: every configuration that is explored, and the verdict that it must have.

use crate::explore::{DRAINS, Report, Verdict, explore};
use crate::kernel::{Generation, Kernel, Memory, Role, SHARED_ID, Stalls};
use crate::local::{self, Local, OVERTAKEN, REVIVED, STARVED};
use crate::mask::{self, Draining, FORGOTTEN, Marking, Mask};
use crate::memory::Memory::{Fifo, Sequential, Unordered};
use crate::rules::Rules;
use crate::seizure::{self, Flaw, INTRUDED, Seizure, TWICE, UNMARKED};
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
    /// The active mask.
    Mask(Mask),
    /// Seizing a block.
    Seizure(Seizure),
    /// The lock of a value.
    Local(Local),
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
            System::Mask(mask) => explore(mask),
            System::Seizure(seizure) => explore(seizure),
            System::Local(local) => explore(local),
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
    cases.extend(of_mask());
    cases.extend(mask_controls());
    cases.extend(of_seizure());
    cases.extend(seizure_controls());
    cases.extend(of_local());
    cases.extend(local_controls());
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

/// The active mask must never lose a member.
fn of_mask() -> Vec<Case> {
    let new = Mask::new();
    let one = Mask { drainers: 1, ..new };
    let arm = |mask| Mask { memory: Unordered, ..mask };
    let fences = Mask { marking: Marking::Fenced, draining: Draining::Fenced, ..new };
    let no_barrier = |mask| Mask { draining: Draining::NoBarrier, ..mask };
    let named = |name, size, mask, claim| case(name, size, System::Mask(mask), None, claim);
    vec![
        named("mask", Size::Quick, new, "x86-64: 2 markers, 2 drainers, 1 ID"),
        named("mask/two-ids", Size::Quick, Mask { ids: 2, ..one }, "2 IDs in one word, 1 drainer"),
        named(
            "mask/two-words",
            Size::Standard,
            Mask { ids: 2, words: 2, ..one },
            "2 IDs in two words, 1 drainer",
        ),
        named(
            "mask/two-ids/two-drainers",
            Size::Full,
            Mask { ids: 2, ..new },
            "2 IDs in one word, 2 drainers",
        ),
        named(
            "mask/three-markers",
            Size::Quick,
            Mask { markers: 3, ..one },
            "3 markers, 1 drainer, 1 ID",
        ),
        named(
            "mask/three-markers/two-drainers",
            Size::Full,
            Mask { markers: 3, ..new },
            "3 markers, 2 drainers, 1 ID",
        ),
        named("mask/arm", Size::Quick, arm(one), "Arm: 2 markers, 1 drainer, 1 ID"),
        named("mask/arm/two-drainers", Size::Standard, arm(new), "Arm: 2 markers, 2 drainers"),
        named(
            "mask/arm/three-markers",
            Size::Standard,
            arm(Mask { markers: 3, ..one }),
            "Arm: 3 markers, 1 drainer",
        ),
        named(
            "mask/arm/two-ids",
            Size::Full,
            arm(Mask { ids: 2, ..one }),
            "Arm: 2 IDs in one word, 1 drainer",
        ),
        named(
            "mask/fences",
            Size::Quick,
            fences,
            "x86-64 without membarrier: fences on both sides",
        ),
        named("mask/fences/arm", Size::Quick, arm(fences), "Arm without membarrier: the same"),
        named(
            "mask/fences/marker-only",
            Size::Quick,
            no_barrier(fences),
            "on x86-64 the drainer's swap is its fence",
        ),
        named(
            "mask/no-barrier/sequential",
            Size::Quick,
            Mask { memory: Sequential, ..no_barrier(new) },
            "nothing but the memory asks for a barrier",
        ),
    ]
}

/// What the mask does not survive.
fn mask_controls() -> Vec<Case> {
    let new = Mask::new();
    let two_ids = Mask { ids: 2, drainers: 1, ..new };
    let marking = |mask, marking| Mask { marking, ..mask };
    let draining = |mask, draining| Mask { draining, ..mask };
    let marker_only =
        Mask { marking: Marking::Fenced, memory: Unordered, ..draining(new, Draining::NoBarrier) };
    let one_word = Mask { words: 2, ..draining(two_ids, Draining::OneWord) };
    let named = |name, mask, breaks, claim| {
        case(name, Size::Quick, System::Mask(mask), Some(breaks), claim)
    };
    vec![
        named(
            "mask/no-membarrier",
            draining(new, Draining::Fenced),
            FORGOTTEN,
            "a fence of the drainer's own is not enough",
        ),
        named(
            "mask/membarrier-first",
            draining(new, Draining::BarrierFirst),
            FORGOTTEN,
            "nor is membarrier before the bits are taken",
        ),
        named(
            "mask/visit-first",
            draining(new, Draining::VisitFirst),
            FORGOTTEN,
            "visits come after the bits are cleared",
        ),
        named(
            "mask/test-first",
            marking(new, Marking::TestFirst),
            FORGOTTEN,
            "the test comes after the publication",
        ),
        named(
            "mask/torn-take",
            draining(two_ids, Draining::TornTake),
            FORGOTTEN,
            "bits are taken by one atomic step",
        ),
        named(
            "mask/torn-set",
            marking(two_ids, Marking::TornSet),
            FORGOTTEN,
            "a bit is set by one atomic step",
        ),
        named("mask/one-word", one_word, mask::OWED, "a drain takes all words"),
        named(
            "mask/fences/marker-only/arm",
            marker_only,
            FORGOTTEN,
            "on Arm the drainer needs a fence, too",
        ),
    ]
}

/// Seizing a block must not lose an item.
fn of_seizure() -> Vec<Case> {
    let [stack, moving_stack] = [Seizure::new(), Seizure::with_theft()];
    let two_ids = Seizure { ids: 2, items: 1, ..moving_stack };
    let x86 = |model| Seizure { memory: Fifo, ..model };
    let arm = |model| Seizure { memory: Unordered, ..model };
    let three = |model| Seizure { threads: 3, ..model };
    let named = |name, size, model, claim| case(name, size, System::Seizure(model), None, claim);
    vec![
        named("seizure/stack", Size::Quick, stack, "1 CPU, 2 threads, 2 drainers"),
        named("seizure/stack/x86", Size::Quick, x86(stack), "the same with a store buffer"),
        named("seizure/stack/arm", Size::Standard, arm(stack), "the same, stores in any order"),
        named("seizure/stack/three-threads", Size::Standard, three(stack), "3 threads"),
        named(
            "seizure/stack/theft",
            Size::Quick,
            moving_stack,
            "2 CPUs, the ID moves; 2 threads, 1 drainer",
        ),
        named(
            "seizure/stack/theft/x86",
            Size::Standard,
            x86(moving_stack),
            "the same with store buffers",
        ),
        named(
            "seizure/stack/theft/arm",
            Size::Standard,
            arm(moving_stack),
            "the same, stores in any order",
        ),
        named(
            "seizure/stack/theft/three-threads",
            Size::Standard,
            x86(three(moving_stack)),
            "3 threads, store buffers",
        ),
        named("seizure/stack/two-ids", Size::Standard, two_ids, "2 CPUs, 2 IDs that move"),
        named(
            "seizure/stack/two-ids/x86",
            Size::Standard,
            x86(two_ids),
            "the same with store buffers",
        ),
    ]
}

/// What a seizure does not survive.
fn seizure_controls() -> Vec<Case> {
    let stack = Seizure::new();
    let with = |flaw, model| Seizure { flaw: Some(flaw), ..model };
    let items = |flaw, model| Seizure { items_only: true, ..with(flaw, model) };
    let theft = Seizure::with_theft();
    let named = |name, model, breaks, claim| {
        case(name, Size::Quick, System::Seizure(model), Some(breaks), claim)
    };
    vec![
        named(
            "seizure/stack/no-membarrier",
            with(Flaw::NoMembarrier, stack),
            INTRUDED,
            "without membarrier a section commits late",
        ),
        named(
            "seizure/stack/no-membarrier/items",
            items(Flaw::NoMembarrier, stack),
            seizure::LOST,
            "and an item is lost by that",
        ),
        named(
            "seizure/stack/plain-membarrier",
            with(Flaw::PlainMembarrier, stack),
            INTRUDED,
            "membarrier must abort sections",
        ),
        named(
            "seizure/stack/membarrier-first",
            with(Flaw::MembarrierFirst, stack),
            INTRUDED,
            "and after the word is marked",
        ),
        named(
            "seizure/stack/no-confirmation",
            with(Flaw::NoConfirmation, stack),
            UNMARKED,
            "a section may have committed over the mark",
        ),
        named(
            "seizure/stack/no-confirmation/items",
            items(Flaw::NoConfirmation, stack),
            seizure::LOST,
            "and an item is lost by that",
        ),
        named(
            "seizure/stack/plain-seizure",
            with(Flaw::PlainSeizure, stack),
            seizure::LOST,
            "the mark must not overwrite a commit",
        ),
        named(
            "seizure/stack/no-lock",
            with(Flaw::NoLock, stack),
            seizure::SHARED,
            "two drainers take each other's mark for their own",
        ),
        named(
            "seizure/stack/gives-up",
            with(Flaw::GivesUp, stack),
            seizure::OWED,
            "who lost his mark must begin again",
        ),
        named(
            "seizure/stack/release-first",
            with(Flaw::ReleaseFirst, stack),
            UNMARKED,
            "the bit is cleared before the word is released",
        ),
        named(
            "seizure/stack/mark-first",
            with(Flaw::MarkFirst, stack),
            UNMARKED,
            "and set after the word is owned",
        ),
        named(
            "seizure/stack/unprotected",
            with(Flaw::Unprotected, stack),
            seizure::SHARED,
            "an activation owns the word by a section",
        ),
        named(
            "seizure/stack/waits",
            with(Flaw::Waits, stack),
            seizure::SOLO,
            "who waits for a drainer waits for another thread",
        ),
        named(
            "seizure/stack/unfenced-theft",
            items(Flaw::UnfencedTheft, theft),
            TWICE,
            "an ID that moves without a fence",
        ),
    ]
}

/// A value has one owner at a time, and visitors get it.
fn of_local() -> Vec<Case> {
    let (new, moving, exchange) = (Local::new(), Local::with_theft(), Local::with_exchange());
    let x86 = |model| Local { memory: Fifo, ..model };
    let arm = |model| Local { memory: Unordered, ..model };
    let three = |model| Local { threads: 3, ..model };
    let one = |model| Local { visitors: 1, ..model };
    let with = |flaw, model| Local { flaw: Some(flaw), ..model };
    let named = |name, size, model, claim| case(name, size, System::Local(model), None, claim);
    vec![
        named("local", Size::Quick, new, "1 CPU, 2 threads, 2 visitors"),
        named("local/arm", Size::Quick, arm(new), "the same, stores in any order"),
        named("local/theft", Size::Quick, one(moving), "2 CPUs, the ID moves; 1 visitor"),
        named("local/theft/x86", Size::Quick, x86(one(moving)), "the same with store buffers"),
        named(
            "local/theft/arm",
            Size::Standard,
            arm(three(moving)),
            "3 threads, 2 visitors, stores in any order",
        ),
        named(
            "local/two-ids",
            Size::Full,
            x86(Local { ids: 2, ..moving }),
            "2 CPUs, 2 IDs that move, 2 visitors, store buffers",
        ),
        named("local/exchange", Size::Quick, exchange, "no sections: 2 CPUs, 2 threads"),
        named("local/exchange/x86", Size::Quick, x86(exchange), "the same with store buffers"),
        named(
            "local/exchange/three-threads",
            Size::Standard,
            x86(three(exchange)),
            "3 threads, store buffers",
        ),
        named(
            "local/no-exchange",
            Size::Quick,
            with(local::Flaw::NoExchange, new),
            "with sections, finding the lock free would do",
        ),
        named(
            "local/open-first",
            Size::Quick,
            with(local::Flaw::OpenFirst, new),
            "as the visitor holds the lock, it may open first",
        ),
        named(
            "local/exchange/open-first",
            Size::Quick,
            with(local::Flaw::OpenFirst, exchange),
            "and without sections, too",
        ),
    ]
}

/// What the local's lock does not survive.
fn local_controls() -> Vec<Case> {
    use local::Flaw;
    let (new, exchange) = (Local::new(), Local::with_exchange());
    let with = |flaw, model| Local { flaw: Some(flaw), ..model };
    let values = |flaw, model| Local { values_only: true, ..with(flaw, model) };
    let named = |name, model, breaks, claim| {
        case(name, Size::Quick, System::Local(model), Some(breaks), claim)
    };
    vec![
        named(
            "local/no-membarrier",
            values(Flaw::NoMembarrier, new),
            local::SHARED,
            "without membarrier a section commits over the visitor's token",
        ),
        named(
            "local/plain-membarrier",
            values(Flaw::PlainMembarrier, new),
            local::SHARED,
            "membarrier must abort sections",
        ),
        named(
            "local/membarrier-first",
            values(Flaw::MembarrierFirst, new),
            local::SHARED,
            "and after the copy is closed",
        ),
        named(
            "local/no-closing",
            values(Flaw::NoClosing, new),
            local::SHARED,
            "in a copy that is open sections begin after membarrier",
        ),
        named(
            "local/no-closing/progress",
            with(Flaw::NoClosing, new),
            OVERTAKEN,
            "and whoever comes is before the visitor",
        ),
        named(
            "local/state-first",
            with(Flaw::StateFirst, new),
            REVIVED,
            "a section looks whether the copy is closed, then at the lock",
        ),
        named(
            "local/no-turns",
            values(Flaw::NoTurns, new),
            local::SHARED,
            "one visitor opens what the other has closed",
        ),
        named(
            "local/open-first/no-exchange",
            values(Flaw::OpenFirstNoExchange, new),
            local::SHARED,
            "who only closes must open last",
        ),
        named(
            "local/clear-last",
            with(Flaw::ClearLast, new),
            local::UNMARKED,
            "the bit is cleared before the copy is given back",
        ),
        named(
            "local/skips-held",
            with(Flaw::SkipsHeld, new),
            local::OWED,
            "a holder must be waited for",
        ),
        named("local/waits", with(Flaw::Waits, new), local::SOLO, "but no visitor by a thread"),
        named(
            "local/unfenced-theft",
            values(Flaw::UnfencedTheft, Local { visitors: 1, ..Local::with_theft() }),
            local::SHARED,
            "an ID that moves without a fence",
        ),
        named(
            "local/exchange/no-exchange",
            with(Flaw::NoExchange, exchange),
            REVIVED,
            "a thread puts READY back after the value was taken out",
        ),
        named(
            "local/exchange/no-closing",
            with(Flaw::NoClosing, exchange),
            OVERTAKEN,
            "in a copy that is open others get the lock before the visitor",
        ),
        named(
            "local/exchange/no-first-look",
            with(Flaw::NoFirstLook, exchange),
            STARVED,
            "who does not look first keeps taking the lock for a moment",
        ),
        named(
            "local/exchange/no-second-look",
            with(Flaw::NoSecondLook, exchange),
            OVERTAKEN,
            "who does not look again gets a copy that was closed",
        ),
    ]
}
