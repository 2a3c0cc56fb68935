//! Makes the spans of every thread nest, even if events were lost.
//!
//! A viewer takes an end for that of the innermost open span. If events were lost, that would be
//! the wrong one for all that follows. So an end whose begin was lost is omitted, and a span whose
//! end was lost is ended when the next event shows that it is over. Nothing is changed if nothing
//! was lost.

use std::collections::BTreeMap;

use crate::event::{Event, Phase};

/// The open spans of every thread.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// The events that began them, the innermost last.
    open: BTreeMap<u16, Vec<Event>>,
    /// The time of the last event.
    now: u64,
    /// Ends that were left out.
    pub(crate) lost_begins: u64,
    /// Ends that were added.
    pub(crate) lost_ends: u64,
}

/// An event as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nested {
    pub(crate) event: Event,
    /// The real end was lost: the span was over by this time, and nothing better is known.
    pub(crate) end_lost: bool,
}

impl Nesting {
    pub(crate) fn new() -> Nesting {
        Nesting::default()
    }

    /// Appends the output for an event. Events of a thread come in their order.
    pub(crate) fn add(&mut self, event: Event, out: &mut Vec<Nested>) {
        self.now = self.now.max(event.time);
        let is_own_end = |begin: &Event| {
            event.phase == Phase::End && begin.number == event.begin() && begin.depth == event.depth
        };
        let open = self.open.entry(event.thread).or_default();
        while let Some(begin) = open.pop_if(|it| it.depth >= event.depth && !is_own_end(it)) {
            self.lost_ends += 1;
            out.push(lost_end(begin, event.time));
        }
        match event.phase {
            Phase::Begin => open.push(event),
            Phase::End if open.pop_if(|begin| is_own_end(begin)).is_some() => {}
            Phase::End => {
                self.lost_begins += 1;
                return;
            }
        }
        out.push(Nested { event, end_lost: false });
    }

    /// Ends what is still open at the end of the trace.
    pub(crate) fn finish(&mut self, out: &mut Vec<Nested>) {
        for begin in self.open.values_mut().flat_map(|open| open.drain(..).rev()) {
            self.lost_ends += 1;
            out.push(lost_end(begin, self.now));
        }
    }
}

fn lost_end(begin: Event, time: u64) -> Nested {
    Nested { event: Event { time, phase: Phase::End, ..begin }, end_lost: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Name;

    /// Returns a trace of one thread in which spans are nested three deep, as they would be
    /// recorded.
    fn recorded() -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        let mut begins = Vec::new();
        for step in "((())())(()())".chars() {
            let number = events.len() as u64;
            let (phase, begin) = match step {
                '(' => {
                    begins.push(number);
                    (Phase::Begin, number)
                }
                _ => (Phase::End, begins.pop().expect("balanced")),
            };
            let depth = begins.len() as u8 - u8::from(phase == Phase::Begin);
            let age = (number - begin) as u32;
            let (time, thread, task, name) = (number * 10, 1, begin as u32, Name::Task);
            events.push(Event { time, number, age, task, thread, depth, name, phase });
        }
        events
    }

    fn nested(events: impl Iterator<Item = Event>) -> (Vec<Nested>, Nesting) {
        let mut nesting = Nesting::new();
        let mut out = Vec::new();
        events.for_each(|event| nesting.add(event, &mut out));
        nesting.finish(&mut out);
        (out, nesting)
    }

    /// Returns `true` if a viewer that ends the innermost span at each end is correct.
    fn is_nested(events: &[Nested]) -> bool {
        let mut open = Vec::new();
        let right = events.iter().all(|Nested { event, .. }| match event.phase {
            Phase::Begin => {
                open.push(event.task);
                true
            }
            Phase::End => open.pop() == Some(event.task),
        });
        right && open.is_empty()
    }

    #[test]
    fn nothing_is_changed_where_nothing_was_lost() {
        let (events, nesting) = nested(recorded().into_iter());
        assert_eq!(events.iter().map(|it| it.event).collect::<Vec<_>>(), recorded());
        assert!(events.iter().all(|it| !it.end_lost) && is_nested(&events));
        assert_eq!((nesting.lost_begins, nesting.lost_ends), (0, 0));
    }

    #[test]
    fn spans_nest_whatever_is_lost() {
        let all = recorded();
        for lost in 0u32..1 << all.len() {
            let is_kept = |event: &Event| lost & 1 << event.number == 0;
            let kept: Vec<Event> = all.iter().copied().filter(is_kept).collect();
            let (events, nesting) = nested(kept.iter().copied());
            assert!(is_nested(&events), "{lost:b}");
            assert!(events.is_sorted_by_key(|it| it.event.time), "{lost:b}");
            let written = events.iter().filter(|it| !it.end_lost).count() as u64;
            assert_eq!(written + nesting.lost_begins, kept.len() as u64, "{lost:b}");
            assert_eq!(written + nesting.lost_ends, events.len() as u64, "{lost:b}");
        }
    }

    /// The negative control: the events as they are do not nest if one is lost.
    #[test]
    fn a_viewer_would_be_misled_without_it() {
        for lost in recorded() {
            let rest = recorded().into_iter().filter(|event| *event != lost);
            let as_they_are: Vec<_> = rest.map(|event| Nested { event, end_lost: false }).collect();
            assert!(!is_nested(&as_they_are), "{}", lost.number);
        }
    }
}
