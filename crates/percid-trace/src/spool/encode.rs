//! Encoding of events to the content of a frame.

use std::collections::HashMap;

use super::layout::*;
use super::numbers::{put, unsigned};
use crate::counters::{Counted, MAX_COUNTERS};
use crate::event::{Event, What};
use crate::interner::Interner;
use crate::numa::{self, ThreadMove, words_of_traits};

/// The content of one frame.
#[derive(Debug, Default)]
pub(super) struct Content {
    schedule: Events,
    numa: Events,
    counted: Events,
    /// Number of counters of each turn.
    counters: usize,
    texts: Texts,
}

/// Events of one sort.
#[derive(Debug, Default)]
struct Events {
    count: u64,
    bytes: Vec<u8>,
    /// The time of the last one.
    time: u64,
}

/// The texts of a frame so far, by the order in which they came.
#[derive(Debug, Default)]
struct Texts(HashMap<Box<str>, u64>);

impl Content {
    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        self.schedule.bytes.len() + self.numa.bytes.len() + self.counted.bytes.len()
    }

    /// Adds an event of the schedule. The events of NUMA balancing come after all of these.
    pub(super) fn push(&mut self, event: &Event, texts: &Interner) {
        debug_assert_eq!(self.numa.count, 0);
        let Content { schedule: to, texts: known, .. } = self;
        let mut begin = |kind, fields: &[u64]| to.begin(kind, event.time, event.cpu, fields);
        match event.what {
            What::Switch { prev, state, next } => {
                begin(SWITCH, &[prev.into(), state.0.into(), next.into()]);
            }
            What::Wakeup { thread, target, stage } => {
                begin(WAKEUP, &[place(&STAGES, stage), thread.into(), target.into()]);
            }
            What::Migrate { thread, from, to } => {
                begin(MIGRATE, &[thread.into(), from.into(), to.into()]);
            }
            What::Fork { parent, child, shares } => {
                begin(FORK, &[parent.into(), child.into(), place(&SHARES, shares)]);
            }
            What::Exec { thread, old } => begin(EXEC, &[thread.into(), old.into()]),
            What::Exit { thread } => begin(EXIT, &[thread.into()]),
            What::Id { thread, node, id } => begin(ID, &[thread.into(), node.into(), id.into()]),
            What::Tick { thread } => begin(TICK, &[thread.into()]),
            What::Member { thread, process } => begin(MEMBER, &[thread.into(), process.into()]),
            What::Affinity { thread, cpus } => {
                begin(AFFINITY, &[thread.into()]);
                known.put(&mut to.bytes, texts.get(cpus));
            }
            What::Name { thread, name } => {
                begin(NAME, &[thread.into()]);
                known.put(&mut to.bytes, texts.get(name));
            }
        }
    }

    /// Adds an event of NUMA balancing.
    pub(super) fn push_numa(&mut self, event: &numa::Event) {
        let Content { numa: to, texts, .. } = self;
        let kind = event.what.kind() as u8;
        to.begin(kind, event.time, event.cpu, &[event.thread.into()]);
        let bytes = &mut to.bytes;
        let mut all = |numbers: &[u64]| numbers.iter().for_each(|&number| put(bytes, number));
        match event.what {
            numa::What::Pass { ticks, took } => all(&[ticks, maybe(took)]),
            numa::What::Skip { offset, start, end, reason } => {
                all(&[offset, start, end]);
                texts.put(bytes, reason.map_or("", |reason| reason.name()));
            }
            numa::What::Arm { start, end, changed } => all(&[start, end, maybe(changed)]),
            numa::What::Hint { address, took, node } => {
                all(&[address, maybe(took), maybe(node.map(u64::from))]);
            }
            numa::What::Process { process, threads } => all(&[process.into(), threads.into()]),
            numa::What::Region { process, start, end, traits } => {
                all(&[process.into(), start, end]);
                texts.put(bytes, &words_of_traits(traits));
            }
            numa::What::Move(place) | numa::What::Stick(place) => all(&of_place(place)),
            numa::What::Swap(place, other) => {
                all(&of_place(place));
                put(bytes, other.into());
            }
            numa::What::MigrateStart { reason } => texts.put(bytes, reason.word()),
            numa::What::Migrated { moved, failed, reason } => {
                all(&[moved, failed]);
                texts.put(bytes, reason.word());
            }
        }
    }

    /// Adds a turn with this number of counters. Turns come after all events.
    pub(super) fn push_counted(&mut self, turn: &Counted, counters: usize) {
        let Content { counted: to, counters: of_all, .. } = self;
        let Counted { time, cpu, thread, ran, uncounted, counts } = *turn;
        *of_all = counters.min(MAX_COUNTERS);
        to.next(time, cpu, &[thread.into(), ran, uncounted]);
        counts.iter().take(*of_all).for_each(|&count| put(&mut to.bytes, count));
    }

    /// The content, and what was lost by then; nothing is kept.
    pub(super) fn take(&mut self, lost: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(40 + self.len());
        let Content { schedule, numa, counted, counters, texts } = self;
        [lost, schedule.count, numa.count].iter().for_each(|&number| put(&mut bytes, number));
        schedule.append_to(&mut bytes);
        numa.append_to(&mut bytes);
        if counted.count > 0 {
            [counted.count, *counters as u64].iter().for_each(|&number| put(&mut bytes, number));
            counted.append_to(&mut bytes);
        }
        texts.0.clear();
        bytes
    }
}

impl Events {
    #[inline]
    fn begin(&mut self, kind: u8, time: u64, cpu: u32, fields: &[u64]) {
        self.bytes.push(kind);
        self.next(time, cpu, fields);
    }

    #[inline]
    fn next(&mut self, time: u64, cpu: u32, fields: &[u64]) {
        put(&mut self.bytes, unsigned(time.wrapping_sub(self.time) as i64));
        put(&mut self.bytes, cpu.into());
        fields.iter().for_each(|&field| put(&mut self.bytes, field));
        self.time = time;
        self.count += 1;
    }

    /// Nothing is kept.
    fn append_to(&mut self, bytes: &mut Vec<u8>) {
        bytes.append(&mut self.bytes);
        (self.count, self.time) = (0, 0);
    }
}

impl Texts {
    /// Its number; the text itself follows where it is new.
    fn put(&mut self, to: &mut Vec<u8>, text: &str) {
        let new = self.0.len() as u64;
        let mut end = text.len().min(LONGEST_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &text[..end];
        match self.0.get(text) {
            Some(&known) => put(to, known),
            None => {
                put(to, new);
                put(to, text.len() as u64);
                to.extend_from_slice(text.as_bytes());
                self.0.insert(text.into(), new);
            }
        }
    }
}

/// A number that may be missing: 0, or one more than it is.
fn maybe(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number.saturating_add(1))
}

fn of_place(place: ThreadMove) -> [u64; 4] {
    [place.from_cpu, place.from_node, place.to_cpu, place.to_node].map(u64::from)
}

fn place<T: PartialEq>(all: &[T], one: T) -> u64 {
    all.iter().position(|known| *known == one).unwrap_or(0) as u64
}
