//! The lock of a value.

use super::{Case, Size, System, case};
use crate::local::{self, Local, OVERTAKEN, REVIVED, STARVED};
use crate::memory::Memory::{Fifo, Unordered};

/// A value has one owner at a time, and visitors get it.
pub(super) fn sound() -> Vec<Case> {
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
pub(super) fn controls() -> Vec<Case> {
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
