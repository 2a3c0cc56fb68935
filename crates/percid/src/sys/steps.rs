//! The steps of slow paths that tests observe: the state at each call to the kernel, and the
//! reaction to a refusal.
//!
//! A test observes only the steps of its own thread, so tests do not disturb each other; and those
//! of a companion that the thread has started, which shares its thread-local storage.

use std::cell::RefCell;

/// The next action of a slow path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    any(miri, not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))),
    allow(dead_code, reason = "only Linux takes all of them")
)]
pub(crate) enum Step {
    /// Call `membarrier` for the fence.
    Membarrier(Fence),
    /// Call `rseq` for this area, size and flags.
    Rseq(usize, u32, i32),
    /// Confine this thread to this CPU.
    Confine(u32),
    /// Wait for another thread.
    Wait,
    /// Block the signals of this thread.
    BlockSignals,
    /// Check whether a companion has ended. Any answer in the kernel's place means that it has not.
    LookAtCompanion,
    /// Claim a block of this many bytes.
    Claim(usize),
    /// Map this many bytes.
    Map(usize),
    /// Open a part of a reservation.
    Open,
    /// Open the memory of this ID.
    OpenId(u32),
    /// Try a critical section, or what stands in for it.
    Try,
    /// Announce to a race detector that what has this key is handed over: before, and after.
    Release(usize),
    Acquire(usize),
    /// Make this ID a member of a set.
    Insert(u32),
    /// Remove it from the members.
    Remove(u32),
}

/// An error for tests that need any.
pub(crate) const REFUSED: i32 = 12;

/// The command of a `membarrier` call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))),
    expect(dead_code, reason = "only Linux takes all of them")
)]
pub(crate) enum Fence {
    Query,
    Register,
    OfCpu(u32),
    OfAll,
}

/// The result of a step in place of the kernel's; `None` if the kernel must be called.
pub(crate) type Answer = Option<Result<(), i32>>;

type Watcher = Box<dyn FnMut(Step) -> Answer>;

thread_local! {
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// Calls `watcher` at every step of this thread, until the value is dropped.
pub(crate) fn watch(watcher: impl FnMut(Step) -> Answer + 'static) -> Watching {
    WATCHER.with(|place| *place.borrow_mut() = Some(Box::new(watcher)));
    Watching
}

#[must_use]
#[derive(Debug)]
pub(crate) struct Watching;

impl Drop for Watching {
    fn drop(&mut self) {
        WATCHER.with(|place| *place.borrow_mut() = None);
    }
}

/// Returns the answer of this thread's test to `step`, if there is one.
pub(crate) fn at(step: Step) -> Answer {
    // Removed during the call: a watcher may itself execute steps.
    let mut watcher = WATCHER.with(|place| place.borrow_mut().take())?;
    let answer = watcher(step);
    if let Some(Err(errno)) = answer {
        super::set_errno(errno);
    }
    WATCHER.with(|place| *place.borrow_mut() = Some(watcher));
    answer
}
