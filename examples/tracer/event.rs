//! The contents of a record in the ring.

/// The size of a record: four words, and the ring's header makes five.
pub(crate) const BYTES: usize = 32;

/// The spans of this program. A record has the number; the name stays in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Submit,
    Wait,
    Task,
    Fill,
    Sort,
}

impl Name {
    const ALL: [Name; 5] = [Name::Submit, Name::Wait, Name::Task, Name::Fill, Name::Sort];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Name::Submit => "submit",
            Name::Wait => "wait",
            Name::Task => "task",
            Name::Fill => "fill",
            Name::Sort => "sort",
        }
    }
}

/// Begin or end of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Begin,
    End,
}

/// An event of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// Nanoseconds of the monotonic clock since the trace began.
    pub(crate) time: u64,
    /// Its number among the events of its thread, from 0: orders events of one time.
    pub(crate) number: u64,
    /// Number of events since the span began; 0 for a begin.
    pub(crate) age: u32,
    /// The task of the span, for people.
    pub(crate) task: u32,
    pub(crate) thread: u16,
    /// Number of spans around this one.
    pub(crate) depth: u8,
    pub(crate) name: Name,
    pub(crate) phase: Phase,
}

impl Event {
    /// Returns the number of the event that began this span.
    pub(crate) fn begin(&self) -> u64 {
        self.number.wrapping_sub(u64::from(self.age))
    }

    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0..8].copy_from_slice(&self.time.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.age.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.task.to_ne_bytes());
        bytes[24..26].copy_from_slice(&self.thread.to_ne_bytes());
        bytes[26..29].copy_from_slice(&[self.depth, self.name as u8, self.phase as u8]);
        bytes
    }

    /// Decodes an event; returns `None` if the bytes are not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Event> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        Some(Event {
            time: u64::from_ne_bytes(bytes[0..8].try_into().ok()?),
            number: u64::from_ne_bytes(bytes[8..16].try_into().ok()?),
            age: u32::from_ne_bytes(bytes[16..20].try_into().ok()?),
            task: u32::from_ne_bytes(bytes[20..24].try_into().ok()?),
            thread: u16::from_ne_bytes(bytes[24..26].try_into().ok()?),
            depth: bytes[26],
            name: *Name::ALL.get(usize::from(bytes[27]))?,
            phase: *[Phase::Begin, Phase::End].get(usize::from(bytes[28]))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written() {
        for (index, name) in Name::ALL.into_iter().enumerate() {
            assert_eq!(name as usize, index);
            for phase in [Phase::Begin, Phase::End] {
                let event = Event {
                    time: u64::MAX - 1,
                    number: 1 << 40,
                    age: 3,
                    task: 70_000,
                    thread: 300,
                    depth: 2,
                    name,
                    phase,
                };
                assert_eq!(Event::decode(&event.encode()), Some(event));
                assert_eq!(event.begin(), (1 << 40) - 3);
            }
        }
    }

    #[test]
    fn other_bytes_are_no_event() {
        let mut bytes = [0; BYTES];
        assert!(Event::decode(&bytes).is_some());
        assert_eq!(Event::decode(&bytes[1..]), None);
        bytes[27] = Name::ALL.len() as u8;
        assert_eq!(Event::decode(&bytes), None);
    }
}
