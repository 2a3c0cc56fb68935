//! The place of a CPU in a machine.

/// The place of a CPU. Numbers count over the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The core, which hardware threads share.
    pub core: u32,
    /// The last-level cache.
    pub l3: u32,
    /// The socket.
    pub socket: u32,
    /// The NUMA node.
    pub node: u32,
}
