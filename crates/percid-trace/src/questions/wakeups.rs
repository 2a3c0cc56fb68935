//! The kinds of wake-up events in a recording.

use crate::event::{Stage, What};
use crate::trace::Trace;

/// The kinds of wake-up events that a recording contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wakeups {
    /// `sched_waking`: another thread begins to wake it.
    pub waking: bool,
    /// `sched_wakeup`: it is in a queue.
    pub woken: bool,
}

impl Wakeups {
    /// Returns the kinds in a trace.
    pub fn from_trace(trace: &Trace) -> Wakeups {
        let mut seen = Wakeups::default();
        for event in &trace.events {
            match event.what {
                What::Wakeup { stage: Stage::Waking, .. } => seen.waking = true,
                What::Wakeup { stage: Stage::Woken, .. } => seen.woken = true,
                _ => continue,
            }
            if seen.waking && seen.woken {
                break;
            }
        }
        seen
    }
}
