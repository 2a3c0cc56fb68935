//! Decoding of events from the content of a frame.

use super::layout::*;
use super::numbers::{signed, take};
use crate::counters::{Counted, MAX_COUNTERS};
use crate::event::{Event, State, What};
use crate::interner::{Interner, Text};
use crate::limits::{LAST_TIME, MOST_CPUS};
use crate::numa::{self, MigrateReason, ThreadMove, traits_from_words};
use crate::trace::Trace;

/// Adds the events of a frame to those of a trace, and takes over the frame's number of lost
/// events. Returns `None` if this is no valid content; the trace may then have got a part of it.
pub(super) fn decode(content: &[u8], trace: &mut Trace) -> Option<()> {
    let Trace { origin, events, numa, counted, texts } = trace;
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
    // There is nothing more where nothing was counted.
    if !reader.rest.is_empty() {
        reader.time = 0;
        let (turns, counters) = (reader.number()?, reader.number()? as usize);
        for _ in 0..turns {
            counted.push(reader.counted(counters)?);
        }
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

    /// Takes the fields at the beginning of all events: kind, time, CPU.
    #[inline]
    fn begin(&mut self) -> Option<(u8, u64, u32)> {
        let (&kind, rest) = self.rest.split_first()?;
        self.rest = rest;
        let (time, cpu) = self.place_in_time()?;
        Some((kind, time, cpu))
    }

    #[inline]
    fn place_in_time(&mut self) -> Option<(u64, u32)> {
        let time = self.time.wrapping_add_signed(signed(self.number()?));
        self.time = time;
        let cpu = self.short()?;
        (time <= LAST_TIME && cpu < MOST_CPUS).then_some((time, cpu))
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

    fn counted(&mut self, counters: usize) -> Option<Counted> {
        let (time, cpu) = self.place_in_time()?;
        let (thread, ran, uncounted) = (self.short()?, self.number()?, self.number()?);
        let mut counts = [0; MAX_COUNTERS];
        for count in counts.get_mut(..counters)? {
            *count = self.number()?;
        }
        Some(Counted { time, cpu, thread, ran, uncounted, counts })
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

    fn place(&mut self) -> Option<ThreadMove> {
        Some(ThreadMove {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numa::words_of_traits;
    use crate::spool::encode::Content;
    use percid_rules::scan::{SkipReason, Traits};

    const COUNTERS: usize = 2;

    fn content(trace: &Trace) -> Vec<u8> {
        let mut content = Content::default();
        trace.events.iter().for_each(|event| content.push(event, &trace.texts));
        trace.numa.iter().for_each(|event| content.push_numa(event));
        trace.counted.iter().for_each(|turn| content.push_counted(turn, COUNTERS));
        content.take(trace.origin.lost)
    }

    /// One event of each kind of NUMA balancing; the fixtures have those of the schedule.
    fn every_kind() -> Trace {
        let place = ThreadMove { from_cpu: 1, from_node: u32::MAX, to_cpu: 300, to_node: 0 };
        let reason = MigrateReason::NUMA_MISPLACED;
        let all = [
            numa::What::Pass { ticks: u64::MAX, took: None },
            numa::What::Pass { ticks: 1, took: Some(0) },
            numa::What::Skip { offset: 1, start: 2, end: u64::MAX, reason: None },
            numa::What::Skip { offset: 1, start: 2, end: 3, reason: Some(SkipReason::ALL[2]) },
            numa::What::Arm { start: 1, end: 2, changed: Some(512) },
            numa::What::Hint { address: 1 << 47, took: Some(5), node: Some(u32::MAX) },
            numa::What::Hint { address: 0, took: None, node: None },
            numa::What::Process { process: 7, threads: 3 },
            numa::What::Region { process: 7, start: 0, end: 1, traits: Traits::ANONYMOUS },
            numa::What::Move(place),
            numa::What::Stick(place),
            numa::What::Swap(place, 9),
            numa::What::MigrateStart { reason },
            numa::What::Migrated { moved: 1, failed: 2, reason: MigrateReason::OTHER },
        ];
        let numa = (0..).zip(all).map(|(nr, what)| numa::Event {
            time: 1000 - 10 * nr,
            cpu: nr as u32,
            thread: 70 + nr as u32,
            what,
        });
        let counted = |nr: u64| Counted {
            time: 500 + 70 * nr,
            cpu: nr as u32 % 3,
            thread: 7,
            ran: 40 + nr,
            uncounted: nr % 2,
            counts: [nr, u64::MAX, 0, 0, 0, 0, 0, 0],
        };
        let counted = (0..10).map(counted).collect();
        Trace { numa: numa.collect(), counted, ..Trace::default() }
    }

    #[test]
    fn every_kind_of_numa_balancing_comes_back() {
        let (trace, mut back) = (every_kind(), Trace::default());
        assert_eq!(decode(&content(&trace), &mut back), Some(()));
        assert_eq!(back.numa, trace.numa);
        assert_eq!(back.counted, trace.counted);
        let words = words_of_traits(Traits::ANONYMOUS);
        assert_eq!(traits_from_words(&words), Some(Traits::ANONYMOUS));
    }

    /// A valid checksum does not imply valid content.
    #[test]
    fn any_content_is_events_or_none() {
        let good = content(&every_kind());
        let mut random = percid_sim::random::Random::new(11);
        let mut read = 0;
        for round in 0..200_000 {
            let mut bytes = good.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            if round % 4 == 0 {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
            }
            let mut trace = Trace::default();
            read += u64::from(decode(&bytes, &mut trace).is_some());
            assert!(trace.events.len() + trace.numa.len() + trace.counted.len() <= bytes.len());
        }
        assert!((1000..199_000).contains(&read), "{read}");
    }

    #[test]
    fn turns_with_more_counters_than_any_are_refused() {
        let turn =
            Counted { time: 1, cpu: 0, thread: 7, ran: 1, uncounted: 0, counts: [3; MAX_COUNTERS] };
        let with = |counters: usize| {
            let mut content = Content::default();
            content.push_counted(&turn, MAX_COUNTERS);
            let mut bytes = content.take(0);
            // Behind what was lost, no events of either sort, and one turn.
            assert_eq!(bytes[3..5], [1, MAX_COUNTERS as u8]);
            bytes[4] = counters as u8;
            let more = counters.saturating_sub(MAX_COUNTERS);
            bytes.extend(vec![3; more]);
            decode(&bytes, &mut Trace::default()).is_some()
        };
        assert!(with(MAX_COUNTERS) && !with(MAX_COUNTERS + 1) && !with(0));
    }

    #[test]
    fn what_no_trace_has_is_refused() {
        let tick = |time, cpu| Event { time, cpu, what: What::Tick { thread: 1 } };
        for (event, is_read) in [
            (tick(LAST_TIME, MOST_CPUS - 1), true),
            (tick(LAST_TIME + 1, 0), false),
            (tick(0, MOST_CPUS), false),
        ] {
            let trace = Trace { events: vec![event], ..Trace::default() };
            assert_eq!(decode(&content(&trace), &mut Trace::default()).is_some(), is_read);
        }
    }
}
