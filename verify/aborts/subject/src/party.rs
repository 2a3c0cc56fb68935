//! The parties that change a structure, and the amounts that distinguish them.

/// The amount that an operation adds, except for those that add a constant.
pub const AMOUNT: i64 = 5;

/// The amount that [`Operation::Static`](crate::Operation::Static) adds.
pub const STATIC_AMOUNT: i64 = 3;

/// The amount that [`Operation::Record`](crate::Operation::Record) and
/// [`Operation::Tally`](crate::Operation::Tally) add.
pub const RECORD_AMOUNT: i64 = 1;

/// The amount that the signal handler adds each time.
pub const HANDLER_AMOUNT: i64 = 1 << 20;

/// The amount that the thief adds through each stolen ID.
pub const LOOT: i64 = 1 << 40;

/// The party that pushes, pops or appends something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Party {
    /// The worker between two operations, which fills the structure.
    Stock = 0,
    /// The operation under examination.
    Own = 1,
    /// The signal handler that interrupted it.
    Handler = 2,
    /// The accomplice, through a stolen ID.
    Thief = 3,
}

impl Party {
    /// All of them, by number.
    pub const ALL: [Party; 4] = [Party::Stock, Party::Own, Party::Handler, Party::Thief];

    /// Returns the amount that one push, pop or record of this party counts where it took place.
    pub fn amount(self) -> i64 {
        match self {
            Party::Stock => 0,
            Party::Own => AMOUNT,
            Party::Handler => HANDLER_AMOUNT,
            Party::Thief => LOOT,
        }
    }
}
