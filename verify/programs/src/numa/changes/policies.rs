//! A memory policy of the process, which its threads inherit.

use super::Outcome;
use super::following::{BYTES, Scene, Two};
use crate::numa::area::Area;

/// `linux/mempolicy.h`.
const DEFAULT: i32 = 0;
const BIND: i32 = 2;

/// Checks that memory stays on the node that the process is bound to, although the memory itself
/// has no policy. The control: without the policy it follows.
pub(super) fn inherited() -> Outcome {
    let home = Two::of_this_machine().home.0;
    set(BIND, Some(1 << home))?;
    let bound = Scene::new(Area::new(BYTES)?)?;
    bound.stays()?;
    drop(bound);
    set(DEFAULT, None)?;
    Scene::new(Area::new(BYTES)?)?.follows()?;
    Ok(None)
}

/// Sets the policy of the calling thread and of those that it makes.
fn set(mode: i32, nodes: Option<libc::c_ulong>) -> Result<(), String> {
    let mask = nodes.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // The kernel reads one bit less than this number.
    let bits = libc::c_ulong::BITS + 1;
    // SAFETY: the mask, if there is one, has as many bits as the kernel reads.
    let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, u64::from(bits)) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().to_string()) }
}
