//! Which process has made an object: a child of fork() must not look at what a thread of its parent
//! may have been changing.

/// The process that made this value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maker(u64);

impl Maker {
    /// The calling process.
    pub(super) fn here() -> Maker {
        Maker(percid::capi::process())
    }

    /// Whether the calling process is another: a child of it.
    pub(super) fn is_elsewhere(self) -> bool {
        percid::capi::process() != self.0
    }
}
