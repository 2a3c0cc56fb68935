//! Events: what a balancer decided, one decision after the other.

use std::ffi::c_int;
use std::sync::{PoisonError, TryLockError};

use percid_numa::Event;

use super::balancer::Balancer;
use super::report::SkipReason;
use crate::barrier::uncancelled;
use crate::callback::count;
use crate::errno::preserved;
use crate::headroom;
use crate::registry::Registry;

/// The type of an event. The numbers are fixed; later versions may add some.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A pass begins: `thread`, `sequence`.
    Pass = 1,
    /// A region was left out, or was not (PERCID_SKIP_REASON_IGNORE_PID_INACTIVE): `region`,
    /// `reason`.
    Skipped = 2,
    /// A part of a region was armed: `region`, `start`, `end`, `pages`.
    Armed = 3,
    /// Pages were moved: `region`, `pages`, `failed`.
    Moved = 4,
    /// The memory of a region is not mapped any more, or other memory is mapped there. From now on
    /// the region is ignored: `region`.
    Gone = 5,
    /// Another SIGSEGV handler has replaced percid's: trapped regions are not armed.
    HandlerReplaced = 6,
    /// The mappings of the process could not be read: this pass armed nothing.
    MappingsUnreadable = 7,
}

/// A decision of a balancer, or the result of one. Members that its kind does not name are 0. Later
/// versions may add kinds, but no members.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decision {
    /// One of enum percid_balancer_event_kind.
    pub kind: c_int,
    /// One of enum percid_skip_reason.
    pub reason: c_int,
    /// The address at which the region starts.
    pub region: u64,
    /// The first address of the part.
    pub start: u64,
    /// The address after the part.
    pub end: u64,
    /// Number of pages that were moved, or that were armed and were not armed before.
    pub pages: u64,
    /// Number of pages that could not be moved.
    pub failed: u64,
    /// Number of finished scan cycles over all regions.
    pub sequence: i64,
    /// The thread for which the pass is made, by the number that gettid() returns.
    pub thread: u32,
    /// Always 0.
    pub reserved: u32,
}

impl Decision {
    /// Converts an event; `None` if this interface has no kind for it.
    fn from_event(event: Event) -> Option<Decision> {
        let none = Decision::default();
        Some(match event {
            Event::Pass { thread, sequence } => {
                Decision { kind: EventKind::Pass as c_int, thread, sequence, ..none }
            }
            Event::Skipped { region, reason } => {
                let (kind, reason) = (EventKind::Skipped as c_int, SkipReason::number(reason));
                Decision { kind, region: region as u64, reason, ..none }
            }
            Event::Armed { region, part, pages } => Decision {
                kind: EventKind::Armed as c_int,
                region: region as u64,
                start: part.start as u64,
                end: part.end as u64,
                pages,
                ..none
            },
            Event::Moved { region, pages, failed } => {
                let kind = EventKind::Moved as c_int;
                Decision { kind, region: region as u64, pages, failed, ..none }
            }
            Event::Gone { region } => {
                Decision { kind: EventKind::Gone as c_int, region: region as u64, ..none }
            }
            Event::HandlerReplaced => {
                Decision { kind: EventKind::HandlerReplaced as c_int, ..none }
            }
            Event::MappingsUnreadable => {
                Decision { kind: EventKind::MappingsUnreadable as c_int, ..none }
            }
            _ => return None,
        })
    }
}

/// Writes up to `capacity` of the decisions that were not taken yet, the oldest first, to `events`
/// and returns their number. The rest is kept for the next call; a balancer keeps 4096, and counts
/// lost ones.
///
/// Returns 0 in a child of fork(); -EBUSY if another thread is taking decisions; -EINVAL if
/// `balancer` is NULL, or `events` is and `capacity` is not 0; -EBADF if the balancer is destroyed;
/// -ENOMEM.
///
/// # Safety
///
/// `balancer` is [a handle](crate#safety). `events` is [memory](crate#safety) for `capacity` of
/// them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_take_events(
    balancer: *mut Balancer,
    events: *mut Decision,
    capacity: usize,
) -> i64 {
    // SAFETY: the caller guarantees a handle.
    let balancer = match unsafe { Registry::object(balancer) } {
        Ok(balancer) => balancer,
        Err(error) => return i64::from(error),
    };
    if events.is_null() && capacity > 0 {
        return i64::from(-libc::EINVAL);
    }
    let write = |index: usize, decision: Decision| {
        // SAFETY: the caller guarantees memory for `capacity` events, and no more are written.
        unsafe { events.add(index).write(decision) };
    };
    preserved(|| {
        uncancelled(i64::from(-libc::EFAULT), || match headroom::ask() {
            Ok(()) => take(balancer, capacity, write),
            Err(error) => i64::from(error),
        })
    })
}

fn take(balancer: &Balancer, capacity: usize, mut write: impl FnMut(usize, Decision)) -> i64 {
    if balancer.is_forked() {
        return 0;
    }
    let mut waiting = match balancer.events.try_lock() {
        Ok(waiting) => waiting,
        Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
        Err(TryLockError::WouldBlock) => return i64::from(-libc::EBUSY),
    };
    if waiting.len() < capacity {
        waiting.extend(balancer.balancer.take_events());
    }
    let mut taken = 0;
    while taken < capacity {
        let Some(event) = waiting.pop_front() else { break };
        if let Some(decision) = Decision::from_event(event) {
            write(taken, decision);
            taken += 1;
        }
    }
    count(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_kind_and_members() {
        let decision = |event| Decision::from_event(event).expect("a kind");
        let none = Decision::default();
        let pass = Event::Pass { thread: 7, sequence: -1 };
        assert_eq!(decision(pass), Decision { kind: 1, thread: 7, sequence: -1, ..none });
        let skipped = Event::Skipped { region: 9, reason: percid_numa::SkipReason::SharedRo };
        assert_eq!(decision(skipped), Decision { kind: 2, region: 9, reason: 2, ..none });
        let armed = Event::Armed { region: 9, part: 10..12, pages: 5 };
        let expected = Decision { kind: 3, region: 9, start: 10, end: 12, pages: 5, ..none };
        assert_eq!(decision(armed), expected);
        let moved = Event::Moved { region: 9, pages: 5, failed: 6 };
        assert_eq!(decision(moved), Decision { kind: 4, region: 9, pages: 5, failed: 6, ..none });
        assert_eq!(decision(Event::Gone { region: 9 }), Decision { kind: 5, region: 9, ..none });
        assert_eq!(decision(Event::HandlerReplaced), Decision { kind: 6, ..none });
        assert_eq!(decision(Event::MappingsUnreadable), Decision { kind: 7, ..none });
    }
}
