//! The process that created an object: a child of fork() must not access data that a thread of its
//! parent may have been changing.

/// The process that created this value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maker(u64);

impl Maker {
    /// Returns the calling process.
    pub(super) fn here() -> Maker {
        Maker(percid::capi::process())
    }

    /// Returns `true` if the calling process is another one: a child.
    pub(super) fn is_elsewhere(self) -> bool {
        percid::capi::process() != self.0
    }
}
