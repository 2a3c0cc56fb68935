//! Perfetto's compact form of switches and wakings: a separate list for each field of all of them.

use super::messages::CompactSched;
use crate::event::{Cpu, Tid};

/// The switches and wakings of a bundle, in the order of their times.
pub(super) struct Compact<'a> {
    fields: &'a CompactSched,
    switches: Times<'a>,
    wakings: Times<'a>,
}

/// One of them.
pub(super) struct Event<'a> {
    pub(super) time: u64,
    pub(super) what: CompactKind<'a>,
}

pub(super) enum CompactKind<'a> {
    Switch { prev_state: u32, next_pid: Tid, next_comm: &'a [u8] },
    Waking { pid: Tid, target_cpu: Cpu, comm: &'a [u8] },
}

impl<'a> Compact<'a> {
    /// Checks that the lists fit together.
    pub(super) fn new(fields: &'a CompactSched) -> Result<Compact<'a>, String> {
        let lengths = [
            fields.switch_prev_state.len(),
            fields.switch_next_pid.len(),
            fields.switch_next_comm_index.len(),
        ];
        alike("switches", fields.switch_timestamp.len(), &lengths)?;
        let lengths = [
            fields.waking_pid.len(),
            fields.waking_target_cpu.len(),
            fields.waking_comm_index.len(),
        ];
        alike("wakings", fields.waking_timestamp.len(), &lengths)?;
        let mut indices = fields.switch_next_comm_index.iter().chain(&fields.waking_comm_index);
        if indices.any(|&index| index as usize >= fields.intern_table.len()) {
            return Err("a compact event has a name beyond the table of names".into());
        }
        let switches = Times::new(&fields.switch_timestamp)?;
        let wakings = Times::new(&fields.waking_timestamp)?;
        Ok(Compact { fields, switches, wakings })
    }

    /// The next one, if something else of the bundle that happened at `time` comes after it.
    ///
    /// At the same time, wakings come first and switches last: what else happens, happens on behalf
    /// of the thread that still runs.
    pub(super) fn before(&mut self, time: u64) -> Option<Event<'a>> {
        match (self.wakings.next, self.switches.next) {
            (Some(waking), switch) if waking <= time && switch.is_none_or(|it| waking <= it) => {
                self.waking()
            }
            (_, Some(switch)) if switch < time => self.switch(),
            _ => None,
        }
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<Event<'a>> {
        self.before(u64::MAX).or_else(|| self.switch())
    }

    fn switch(&mut self) -> Option<Event<'a>> {
        let (nth, time) = self.switches.take()?;
        let fields = self.fields;
        let what = CompactKind::Switch {
            prev_state: fields.switch_prev_state[nth] as u32,
            next_pid: fields.switch_next_pid[nth] as Tid,
            next_comm: &fields.intern_table[fields.switch_next_comm_index[nth] as usize],
        };
        Some(Event { time, what })
    }

    fn waking(&mut self) -> Option<Event<'a>> {
        let (nth, time) = self.wakings.take()?;
        let fields = self.fields;
        let what = CompactKind::Waking {
            pid: fields.waking_pid[nth] as Tid,
            target_cpu: fields.waking_target_cpu[nth] as Cpu,
            comm: &fields.intern_table[fields.waking_comm_index[nth] as usize],
        };
        Some(Event { time, what })
    }
}

fn alike(what: &str, length: usize, others: &[usize]) -> Result<(), String> {
    match others.iter().all(|&other| other == length) {
        true => Ok(()),
        false => Err(format!("the lists of compact {what} have different lengths")),
    }
}

/// Times, each written as the distance from the one before.
struct Times<'a> {
    distances: &'a [u64],
    /// Number of times that were taken.
    taken: usize,
    next: Option<u64>,
}

impl<'a> Times<'a> {
    fn new(distances: &'a [u64]) -> Result<Times<'a>, String> {
        let last = distances.iter().try_fold(0_u64, |time, &distance| time.checked_add(distance));
        last.ok_or("the times of compact events are too large")?;
        Ok(Times { distances, taken: 0, next: distances.first().copied() })
    }

    /// The next time, and its number.
    fn take(&mut self) -> Option<(usize, u64)> {
        let (nth, time) = (self.taken, self.next?);
        self.taken += 1;
        self.next = self.distances.get(self.taken).map(|distance| time + distance);
        Some((nth, time))
    }
}
