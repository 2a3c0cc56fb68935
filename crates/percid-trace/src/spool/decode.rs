//! From the content of a frame to events.

use super::layout::*;
use super::numbers::{signed, take};
use crate::event::{Event, State, What};
use crate::interner::{Interner, Text};
use crate::numa::{self, MigrateReason, Place, traits_from_words};
use crate::limits::{LAST_TIME, MOST_CPUS};
use crate::trace::Trace;

/// Adds the events of a frame to those of a trace, which has lost what the frame says. `None` if this
/// is no content; the trace may have got some of it then.
pub(super) fn decode(content: &[u8], trace: &mut Trace) -> Option<()> {
    let Trace { origin, events, numa, texts } = trace;
    let mut reader = Reader { rest: content, time: 0, known: Vec::new(), texts };
    origin.lost = reader.number()?;
    let (schedule, balancing) = (reader.number()?, reader.number()?);
    for _ in 0..schedule {
        events.push(reader.event()?);
    }
    reader.time = 0;
    for _ in 0..balancing {
        numa.push(reader.numa()?);
    }
    reader.rest.is_empty().then_some(())
}

struct Reader<'a> {
    rest: &'a [u8],
    /// The time of the last event.
    time: u64,
    /// The texts of the frame so far.
    known: Vec<Text>,
    texts: &'a mut Interner,
}

impl Reader<'_> {
    #[inline]
    fn number(&mut self) -> Option<u64> {
        take(&mut self.rest)
    }

    #[inline]
    fn short(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// What all events begin with: kind, time, CPU.
    #[inline]
    fn begin(&mut self) -> Option<(u8, u64, u32)> {
        let (&kind, rest) = self.rest.split_first()?;
        self.rest = rest;
        let time = self.time.wrapping_add_signed(signed(self.number()?));
        self.time = time;
        let cpu = self.short()?;
        (time <= LAST_TIME && cpu < MOST_CPUS).then_some((kind, time, cpu))
    }

    #[inline]
    fn event(&mut self) -> Option<Event> {
        let (kind, time, cpu) = self.begin()?;
        let what = match kind {
            SWITCH => What::Switch {
                prev: self.short()?,
                state: State(self.short()?),
                next: self.short()?,
            },
            WAKEUP => {
                let stage = *STAGES.get(self.number()? as usize)?;
                What::Wakeup { thread: self.short()?, target: self.short()?, stage }
            }
            MIGRATE => {
                What::Migrate { thread: self.short()?, from: self.short()?, to: self.short()? }
            }
            FORK => What::Fork {
                parent: self.short()?,
                child: self.short()?,
                shares: *SHARES.get(self.number()? as usize)?,
            },
            EXEC => What::Exec { thread: self.short()?, old: self.short()? },
            EXIT => What::Exit { thread: self.short()? },
            AFFINITY => What::Affinity { thread: self.short()?, cpus: self.text()? },
            ID => What::Id { thread: self.short()?, node: self.short()?, id: self.short()? },
            TICK => What::Tick { thread: self.short()? },
            MEMBER => What::Member { thread: self.short()?, process: self.short()? },
            NAME => What::Name { thread: self.short()?, name: self.text()? },
            _ => return None,
        };
        Some(Event { time, cpu, what })
    }

    fn numa(&mut self) -> Option<numa::Event> {
        let (kind, time, cpu) = self.begin()?;
        let thread = self.short()?;
        let what = match kind {
            0 => numa::What::Pass { ticks: self.number()?, took: self.maybe()? },
            1 => numa::What::Skip {
                offset: self.number()?,
                start: self.number()?,
                end: self.number()?,
                reason: numa::skip_reason(self.word()?),
            },
            2 => numa::What::Arm {
                start: self.number()?,
                end: self.number()?,
                changed: self.maybe()?,
            },
            3 => numa::What::Hint {
                address: self.number()?,
                took: self.maybe()?,
                node: self.maybe()?.map(u32::try_from).transpose().ok()?,
            },
            4 => numa::What::Process { process: self.short()?, threads: self.short()? },
            5 => numa::What::Region {
                process: self.short()?,
                start: self.number()?,
                end: self.number()?,
                traits: traits_from_words(self.word()?)?,
            },
            6 => numa::What::Move(self.place()?),
            7 => numa::What::Stick(self.place()?),
            8 => numa::What::Swap(self.place()?, self.short()?),
            9 => numa::What::MigrateStart { reason: MigrateReason::from_word(self.word()?) },
            10 => numa::What::Migrated {
                moved: self.number()?,
                failed: self.number()?,
                reason: MigrateReason::from_word(self.word()?),
            },
            _ => return None,
        };
        Some(numa::Event { time, cpu, thread, what })
    }

    fn place(&mut self) -> Option<Place> {
        Some(Place {
            from_cpu: self.short()?,
            from_node: self.short()?,
            to_cpu: self.short()?,
            to_node: self.short()?,
        })
    }

    /// A number that may be missing.
    fn maybe(&mut self) -> Option<Option<u64>> {
        self.number().map(|number| number.checked_sub(1))
    }

    fn text(&mut self) -> Option<Text> {
        let number = self.number()? as usize;
        if number < self.known.len() {
            return Some(self.known[number]);
        }
        let length = self.number()? as usize;
        if number > self.known.len() || length > LONGEST_TEXT {
            return None;
        }
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let text = self.texts.intern(text);
        self.known.push(text);
        Some(text)
    }

    fn word(&mut self) -> Option<&str> {
        let text = self.text()?;
        Some(self.texts.get(text))
    }
}
