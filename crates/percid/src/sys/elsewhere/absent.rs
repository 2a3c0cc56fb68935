//! Stubs of the functions that only Linux supports.
//!
//! They replace `file`, `membarrier`, `process`, `rseq` and `topology`.

use std::ffi::CStr;

use crate::sys::registration::{Registration, RseqMode};

/// The size of percid's own rseq area: none is ever registered.
pub(crate) const MAX_OWN_SIZE: u32 = 0;

/// Returns that threads are not registered for restartable sequences.
pub(crate) fn registration() -> Registration {
    Registration::Unsupported
}

pub(crate) fn register_thread() -> bool {
    false
}

pub(crate) fn registered_size(_: Registration) -> u32 {
    0
}

pub(crate) fn usable_size(_: Registration) -> u32 {
    0
}

pub(crate) fn feature_size() -> u32 {
    0
}

pub(crate) fn alignment() -> u32 {
    0
}

impl RseqMode {
    pub(crate) fn of(_registered: u32, _size: u32) -> Option<RseqMode> {
        None
    }
}

/// Returns `None`: there is no area.
pub(crate) fn numbers() -> Option<(u32, Option<u32>, Option<u32>)> {
    None
}

/// Returns `false`: there is no area.
#[cfg(feature = "testing")]
pub(crate) fn unregister_by_hand() -> bool {
    false
}

#[cfg(feature = "testing")]
pub(crate) fn area() -> Option<(*mut u8, usize)> {
    None
}

/// Returns the commands of `membarrier`, which only Linux has.
pub(crate) fn commands() -> Result<u32, i32> {
    Ok(0)
}

pub(crate) fn has_rseq_flavour(_commands: u32) -> bool {
    false
}

/// The error of a fence that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoFence;

pub(crate) fn register() -> Result<(), NoFence> {
    Err(NoFence)
}

pub(crate) fn fence_cpu(_: u32) -> Result<(), NoFence> {
    Err(NoFence)
}

/// Returns `None`: only Linux describes itself in text files.
pub(crate) fn find_line(_: &CStr, _: impl Fn(&str) -> bool) -> Option<String> {
    None
}

/// The place of a CPU in the topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) core: Option<u32>,
    pub(crate) l3: Option<u32>,
    pub(crate) node: Option<u32>,
}

pub(crate) fn place(_cpu: u32) -> Place {
    Place::default()
}

/// Returns the number of threads in the process, which is unknown here.
pub(crate) fn threads() -> Option<u32> {
    None
}

/// Returns the kernel's release, which is unknown here.
pub(crate) fn with_uname<T>(_: impl FnOnce(&CStr) -> T) -> Option<T> {
    None
}
