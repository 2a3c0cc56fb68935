//! percid's own table.

use super::{Case, Size, System, case};
use crate::explore::DRAINS;
use crate::table::{LOST, Lock, Order, SOLO, Table};

/// percid's protocol must come out clean.
pub(super) fn sound() -> Vec<Case> {
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
pub(super) fn controls() -> Vec<Case> {
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
