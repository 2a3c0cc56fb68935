//! The lock of a value.

use super::{Case, Size, System, case};
use crate::local::{self, Local, OVERTAKEN, REVIVED, STARVED};
use crate::memory::Memory::{Fifo, Unordered};

/// Returns the cases in which a value has one owner at a time, and visitors get it.
pub(super) fn sound() -> Vec<Case> {
    let (new, moving, exchange) =
        (Local::with_sections(), Local::with_theft(), Local::with_exchange());
    let x86 = |model| Local { memory: Fifo, ..model };
    let arm = |model| Local { memory: Unordered, ..model };
    let three = |model| Local { threads: 3, ..model };
    let one = |model| Local { visitors: 1, ..model };
    let with = |flaw, model| Local { flaw: Some(flaw), ..model };
    cases! { Local:
        "local", Quick, new, None, "1 CPU, 2 threads, 2 visitors";
        "local/arm", Quick, arm(new), None, "the same, stores in any order";
        "local/theft", Quick, one(moving), None, "2 CPUs, the ID moves; 1 visitor";
        "local/theft/x86", Quick, x86(one(moving)), None, "the same with store buffers";
        "local/theft/arm", Standard, arm(three(moving)), None,
            "3 threads, 2 visitors, stores in any order";
        "local/two-ids", Full, x86(Local { ids: 2, ..moving }), None,
            "2 CPUs, 2 IDs that move, 2 visitors, store buffers";
        "local/exchange", Quick, exchange, None, "no sections: 2 CPUs, 2 threads";
        "local/exchange/x86", Quick, x86(exchange), None, "the same with store buffers";
        "local/exchange/three-threads", Standard, x86(three(exchange)), None,
            "3 threads, store buffers";
        "local/no-exchange", Quick, with(local::Flaw::NoExchange, new), None,
            "with sections, finding the lock free would do";
        "local/open-first", Quick, with(local::Flaw::OpenFirst, new), None,
            "as the visitor holds the lock, it may open first";
        "local/exchange/open-first", Quick, with(local::Flaw::OpenFirst, exchange), None,
            "and without sections, too";
    }
}

/// Returns the flaws that the local's lock does not survive.
pub(super) fn controls() -> Vec<Case> {
    use local::Flaw;
    let (new, exchange) = (Local::with_sections(), Local::with_exchange());
    let with = |flaw, model| Local { flaw: Some(flaw), ..model };
    let values = |flaw, model| Local { data_only: true, ..with(flaw, model) };
    cases! { Local:
        "local/no-membarrier", Quick, values(Flaw::NoMembarrier, new), Some(local::SHARED),
            "without membarrier a section commits over the visitor's token";
        "local/plain-membarrier", Quick, values(Flaw::PlainMembarrier, new), Some(local::SHARED),
            "membarrier must abort sections";
        "local/membarrier-first", Quick, values(Flaw::MembarrierFirst, new), Some(local::SHARED),
            "and after the copy is closed";
        "local/no-closing", Quick, values(Flaw::NoClosing, new), Some(local::SHARED),
            "in a copy that is open sections begin after membarrier";
        "local/no-closing/progress", Quick, with(Flaw::NoClosing, new), Some(OVERTAKEN),
            "and whoever comes is before the visitor";
        "local/state-first", Quick, with(Flaw::StateFirst, new), Some(REVIVED),
            "a section looks whether the copy is closed, then at the lock";
        "local/no-turns", Quick, values(Flaw::NoTurns, new), Some(local::SHARED),
            "one visitor opens what the other has closed";
        "local/open-first/no-exchange", Quick, values(Flaw::OpenFirstNoExchange, new),
            Some(local::SHARED), "who only closes must open last";
        "local/clear-last", Quick, with(Flaw::ClearLast, new), Some(local::UNMARKED),
            "the bit is cleared before the copy is given back";
        "local/skips-held", Quick, with(Flaw::SkipsHeld, new), Some(local::OWED),
            "a holder must be waited for";
        "local/waits", Quick, with(Flaw::Waits, new), Some(local::SOLO),
            "but no visitor by a thread";
        "local/unfenced-theft", Quick,
            values(Flaw::UnfencedTheft, Local { visitors: 1, ..Local::with_theft() }),
            Some(local::SHARED), "an ID that moves without a fence";
        "local/exchange/no-exchange", Quick, with(Flaw::NoExchange, exchange), Some(REVIVED),
            "a thread puts READY back after the value was taken out";
        "local/exchange/no-closing", Quick, with(Flaw::NoClosing, exchange), Some(OVERTAKEN),
            "in a copy that is open others get the lock before the visitor";
        "local/exchange/no-first-look", Quick, with(Flaw::NoFirstLook, exchange), Some(STARVED),
            "who does not look first keeps taking the lock for a moment";
        "local/exchange/no-second-look", Quick, with(Flaw::NoSecondLook, exchange), Some(OVERTAKEN),
            "who does not look again gets a copy that was closed";
    }
}
