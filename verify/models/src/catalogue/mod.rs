//! The claims of the crate: every configuration that is explored, and its required verdict.

/// One case a row: its name, its size, its configuration, the property that must break, its claim.
macro_rules! cases {
    ($system:ident: $($name:literal, $size:ident, $model:expr, $breaks:expr, $claim:literal;)*) => {
        vec![$(case($name, Size::$size, System::$system($model), $breaks, $claim)),*]
    };
}

mod generations;
mod local;
mod mask;
mod modes;
mod rules;
mod seizure;
mod sync;
mod table;

use crate::explore::{Report, Verdict, explore};
use crate::kernel::Kernel;
use crate::local::Local;
use crate::mask::Mask;
use crate::modes::Modes;
use crate::rules::Rules;
use crate::seizure::Seizure;
use crate::sync_budget::SyncBudget;
use crate::sync_count::SyncCount;
use crate::sync_grace::SyncGrace;
use crate::sync_lock::SyncLock;
use crate::table::Table;

/// The duration of a configuration.
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
    /// The ownership modes of later kernels.
    Modes(Modes),
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
    /// The readers-writer lock.
    SyncLock(SyncLock),
    /// Grace periods.
    SyncGrace(SyncGrace),
    /// Reference counts.
    SyncCount(SyncCount),
    /// A limit.
    SyncBudget(SyncBudget),
}

/// A configuration and what must come out of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name on the command line.
    pub name: String,
    /// The meaning of its verdict.
    pub claim: &'static str,
    /// The duration of its exploration.
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
            System::Modes(modes) => explore(modes),
            System::Rules(rules) => explore(rules),
            System::Table(table) => explore(table),
            System::Mask(mask) => explore(mask),
            System::Seizure(seizure) => explore(seizure),
            System::Local(local) => explore(local),
            System::SyncLock(lock) => explore(lock),
            System::SyncGrace(grace) => explore(grace),
            System::SyncCount(count) => explore(count),
            System::SyncBudget(budget) => explore(budget),
        }
    }

    /// Returns `true` if `verdict` is the one that the case must have.
    #[must_use]
    pub fn accepts(&self, verdict: &Verdict) -> bool {
        verdict.broken() == self.breaks
    }
}

/// Returns all cases.
#[must_use]
pub fn catalogue() -> Vec<Case> {
    [
        generations::all(),
        modes::sound(),
        modes::controls(),
        rules::all(),
        table::sound(),
        table::controls(),
        mask::sound(),
        mask::controls(),
        seizure::sound(),
        seizure::controls(),
        local::sound(),
        local::controls(),
        sync::sound(),
        sync::controls(),
    ]
    .concat()
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
