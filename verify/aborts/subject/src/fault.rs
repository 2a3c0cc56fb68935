//! The damage that the subject itself detects in a structure after an operation.

/// A kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Fault {
    /// An item that no thread ever pushed.
    Unknown = 1,
    /// An item that came out twice, or came out and is still there; a number that came twice.
    Doubled = 2,
    /// An item that is nowhere.
    Lost = 3,
    /// A record that is not as it was appended.
    Torn = 4,
    /// Losses, as counted by the structure, that are not those there were.
    Uncounted = 5,
    /// A value that two owners used at the same time.
    Shared = 6,
    /// A value that was counted in another bucket.
    Misplaced = 7,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 7] = [
        Fault::Unknown,
        Fault::Doubled,
        Fault::Lost,
        Fault::Torn,
        Fault::Uncounted,
        Fault::Shared,
        Fault::Misplaced,
    ];
}
