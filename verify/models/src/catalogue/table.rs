//! percid's own table.

use super::{Case, Size, System, case};
use crate::explore::DRAINS;
use crate::table::{LOST, Lock, Order, SOLO, Table};

/// Returns the cases in which percid's protocol must break no property.
pub(super) fn sound() -> Vec<Case> {
    let new = Table::new();
    let pair = Table { threads: 2, handlers: 2, ..new };
    let open = Table { threads: 2, handlers: 1, blocks_signals: false, ..new };
    cases! { Table:
        "table", Quick, new, None, "3 CPUs, 3 threads, 2 agents, 2 IDs";
        "table/one-id", Quick, Table { ids: 1, ..new }, None,
            "one ID, which every other CPU must steal";
        "table/three-ids", Quick, Table { ids: 3, ..new }, None, "as many IDs as CPUs";
        "table/two-handlers", Quick, pair, None, "2 threads, both with signal handlers";
        "table/exits", Quick, Table { exits: true, ..new }, None, "threads exit";
        "table/one-handler", Standard, Table { handlers: 1, ..new }, None,
            "3 threads, one with a signal handler";
        "table/all-handlers", Full, Table { handlers: 3, exits: true, ..new }, None,
            "3 threads, all with handlers, exits";
        "table/open-signals", Quick, open, None,
            "the shared slot alone keeps handlers from deadlock";
    }
}

/// Returns the cases that must break a property.
pub(super) fn controls() -> Vec<Case> {
    let new = Table { threads: 2, ..Table::new() };
    let order = |order| Table { order, ..new };
    let waiting = Table { lock: Lock::Wait, ..new };
    let deadlock = Table { handlers: 1, blocks_signals: false, checks_solo: false, ..waiting };
    let no_deadlock = Table { blocks_signals: true, ..deadlock };
    cases! { Table:
        "table/no-fence", Quick, order(Order::NoFence), Some(LOST),
            "without the fence increments are lost";
        "table/fence-first", Quick, order(Order::FenceFirst), Some(LOST),
            "with the fence before the store of UNSET, too";
        "table/install-first", Quick, order(Order::InstallFirst), Some(LOST),
            "with the ID given on before the fence, too";
        "table/cpu-outside", Quick, Table { cpu_inside: false, ..new }, Some(LOST),
            "with the CPU number read outside, too";
        "table/waiting", Quick, waiting, Some(SOLO), "a lock that is waited for makes adds wait";
        "table/waiting/deadlock", Quick, deadlock, Some(DRAINS),
            "and deadlocks with a handler in the slow path";
        "table/waiting/blocked", Quick, no_deadlock, None,
            "which blocking signals alone would prevent";
    }
}
