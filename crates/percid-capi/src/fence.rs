//! The asymmetric fence.

use std::ffi::c_int;

use percid::fence::{self, Refused};

use crate::barrier::guard;

/// The cheap half of a fence, for the side that runs often.
///
/// If one thread does A; percid_fence_light(); B and another C; percid_fence_all(), which returns
/// 0; D, then B sees C, or D sees A, or both. A to D are relaxed or stronger accesses of
/// atomic variables, by __atomic_store_n() and the like.
///
/// Async-signal-safe. Costs a load and a test, no barrier instruction, if the fence is
/// asymmetric (percid_fence_is_asymmetric()); otherwise a full barrier.
#[unsafe(no_mangle)]
pub extern "C" fn percid_fence_light() {
    guard((), fence::light);
}

/// The costly half of a fence: see percid_fence_light().
///
/// If the fence is asymmetric, it also reaches critical sections. When it returns 0, each section of
/// this process that was running has been done or aborted; what it stored is visible to the caller,
/// and sections that begin later see what the caller stored before. It does not reach operations
/// that hold a value, as those with PERCID_SOURCE_ATOMIC do: percid_memory_settle() does.
///
/// Returns 0, or an errno with a minus sign if the kernel refuses the fence, although it was available
/// before: the caller knows nothing about other threads then. Async-signal-safe; costs about 10 us
/// if asymmetric, otherwise a full barrier.
#[unsafe(no_mangle)]
pub extern "C" fn percid_fence_all() -> c_int {
    guard(-libc::EFAULT, || answer(fence::all()))
}

/// Fences one CPU, like percid_fence_all() for the threads that ran on it when the call began.
///
/// Sections whose thread was on another CPU are not reached. So it is for data of one CPU, such as
/// the value of an ID that percid's table assigns to that CPU.
///
/// Returns what percid_fence_all() does. Async-signal-safe; costs 10 us if the CPU runs a thread of
/// this process, and less than 1 us otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn percid_fence_cpu(cpu: u32) -> c_int {
    guard(-libc::EFAULT, || answer(fence::cpu(cpu)))
}

/// Returns 1 if percid_fence_light() costs no barrier: from Linux 5.10 on, without a sandbox that
/// refuses membarrier(), and without a race detector, which would not know this fence. Otherwise 0.
///
/// All calls of a process return the same. Async-signal-safe; the first call registers the process
/// for the fence: 2 us while it has one thread, about 20 ms later.
#[unsafe(no_mangle)]
pub extern "C" fn percid_fence_is_asymmetric() -> c_int {
    guard(0, || c_int::from(fence::is_asymmetric()))
}

/// Returns 0, or the errno with a minus sign.
fn answer(fenced: Result<(), Refused>) -> c_int {
    fenced.map_or_else(|refused| -refused.errno, |()| 0)
}
