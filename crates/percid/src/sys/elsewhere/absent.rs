//! What Linux tells of a machine and does for a process, where there is another system: nothing.
//!
//! In the place of `file`, `membarrier`, `process`, `rseq` and `topology`.

use std::ffi::CStr;

use crate::sys::registration::{Mode, Registration};

/// Whether the C library knows of rseq: percid never looks.
pub(crate) fn is_in_libc() -> bool {
    false
}

/// No rseq area is ever registered.
pub(crate) const MAX_OWN_SIZE: u32 = 0;

/// Who registers threads for restartable sequences: nobody.
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

impl Mode {
    pub(crate) fn of(_registered: u32) -> Option<Mode> {
        None
    }
}

/// Without an area.
#[cfg(feature = "testing")]
pub(crate) fn unregister_by_hand() -> bool {
    false
}

#[cfg(feature = "testing")]
pub(crate) fn area() -> Option<(*mut u8, usize)> {
    None
}

/// The commands of `membarrier`, which only Linux has.
pub(crate) fn commands() -> Result<u32, i32> {
    Ok(0)
}

pub(crate) fn has_rseq_flavour(_commands: u32) -> bool {
    false
}

/// What a fence that there is not answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoFence;

pub(crate) fn register() -> Result<(), NoFence> {
    Err(NoFence)
}

pub(crate) fn fence_cpu(_: u32) -> Result<(), NoFence> {
    Err(NoFence)
}

/// No system but Linux describes itself in files of text.
pub(crate) fn find_line(_: &CStr, _: impl Fn(&str) -> bool) -> Option<String> {
    None
}

/// Where a CPU sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) core: Option<u32>,
    pub(crate) l3: Option<u32>,
    pub(crate) node: Option<u32>,
}

pub(crate) fn place(_cpu: u32) -> Place {
    Place::default()
}

/// How many threads the process has.
pub(crate) fn threads() -> Option<u32> {
    None
}

/// The kernel's release.
pub(crate) fn with_uname<T>(_: impl FnOnce(&CStr) -> T) -> Option<T> {
    None
}
