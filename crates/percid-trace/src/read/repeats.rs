//! Events that several of the kernel's buffers hold.
//!
//! An event that is enabled in several instances of tracefs is recorded in each of them. The kernel
//! writes an event to one buffer after the other before the next event happens on that CPU.

use crate::collector::Tracepoint;
use crate::event::{Cpu, Tid};
use crate::limits::MOST_CPUS;

/// Detection of events that were reported before.
#[derive(Debug)]
pub(super) struct Repeats<'a, B> {
    /// The last new event of each CPU, and the buffer that reported it.
    last: Vec<Option<(B, Tid, Tracepoint<'a>)>>,
}

impl<'a, B: PartialEq> Repeats<'a, B> {
    pub(super) fn new() -> Repeats<'a, B> {
        Repeats { last: Vec::new() }
    }

    /// Returns `true` if this is the last event that another buffer reported. The events of all
    /// buffers must come in the order of time.
    pub(super) fn is_one(
        &mut self,
        buffer: B,
        cpu: Cpu,
        current: Tid,
        tracepoint: Tracepoint<'a>,
    ) -> bool {
        // Such a CPU is refused later.
        if cpu >= MOST_CPUS {
            return false;
        }
        let cpu = cpu as usize;
        if cpu >= self.last.len() {
            self.last.resize_with(cpu + 1, || None);
        }
        let last = &mut self.last[cpu];
        let is_one = last.as_ref().is_some_and(|(teller, thread, event)| {
            *teller != buffer && (*thread, *event) == (current, tracepoint)
        });
        if !is_one {
            *last = Some((buffer, current, tracepoint));
        }
        is_one
    }
}
