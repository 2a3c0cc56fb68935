//! Conversion of recorded events to a Parquet file, in the memory of one row group.

use std::collections::HashSet;
use std::io::Write;

use super::source::{Source, Tail};
use crate::error::Error;
use crate::event::{Event, Tid};
use crate::gaps::{self, Finder};
use crate::limits::MOST_CPUS;
use crate::parquet::{Happened, Parts, Writer};
use crate::quality::{Judge, Quality};
use crate::trace::{Origin, Trace};

/// Summary of a written file.
#[derive(Debug)]
pub struct Stored {
    /// Events of the schedule.
    pub events: u64,
    /// Events of NUMA balancing.
    pub numa_events: u64,
    /// Turns of threads in which something was counted.
    pub counted_turns: u64,
    /// Time from the first event of the schedule to the last, in nanoseconds.
    pub duration_ns: u64,
    /// The origin, as stored in the file.
    pub origin: Origin,
    /// The conclusions that the events permit.
    pub quality: Quality,
    /// Number of bytes at the end of the source that could not be read.
    pub left_out: u64,
}

/// Writes a Parquet file with all events, and the switches that the kernel did not report
/// ([`gaps`]). Calls `progress` with the number of events written so far.
///
/// Reads the source twice: an event at its end may show that a switch is missing.
///
/// # Errors
///
/// The system refuses, or events are not in order.
pub fn store(
    source: &dyn Source,
    to: impl Write + Send,
    progress: &mut dyn FnMut(u64),
) -> Result<Stored, Error> {
    let survey = Survey::from_source(source)?;
    let mut storing = Storing {
        finder: Finder::new(&survey.known),
        writer: Writer::new(to, Parts { numa: survey.numa, counted: survey.counted })?,
        judge: Judge::default(),
        completed: Vec::new(),
        events: 0,
        numa_events: 0,
        counters: source.origin().counters.clone(),
        counted_turns: 0,
        inferred: 0,
        ends: None,
    };
    source.each(&mut |part| {
        storing.take(part)?;
        progress(storing.events + storing.numa_events + storing.counted_turns);
        Ok(())
    })?;
    let Storing { writer, judge, events, numa_events, counted_turns, inferred, ends, .. } = storing;
    let mut origin = Origin { lost: survey.tail.lost, ..source.origin().clone() };
    origin.coverage.inferred += inferred;
    origin.coverage.cut_off |= survey.tail.cut_off;
    writer.finish(&origin)?;
    Ok(Stored {
        events,
        numa_events,
        counted_turns,
        duration_ns: ends.map_or(0, |(first, last): (u64, u64)| last.saturating_sub(first)),
        quality: judge.judge(&origin, 0, &survey.known),
        origin,
        left_out: survey.tail.left_out,
    })
}

/// Refuses events that no table can have, because a damaged file may hold them: CPUs that no kernel has,
/// and times of a CPU that go back.
#[derive(Default)]
struct Order {
    /// The time of the last event of each CPU.
    last: Vec<u64>,
}

impl Order {
    fn check(&mut self, event: &Event) -> Result<(), Error> {
        let Event { time, cpu, .. } = *event;
        if cpu >= MOST_CPUS {
            return Err(Error::in_file(format!("CPU {cpu}: expected at most {}", MOST_CPUS - 1)));
        }
        let cpu = cpu as usize;
        if cpu >= self.last.len() {
            self.last.resize(cpu + 1, 0);
        }
        if time < self.last[cpu] {
            let what = format!(
                "the times of CPU {cpu} go back, which no recorder writes: `percid trace convert` sorts them, \
                 in memory"
            );
            return Err(Error::in_file(what));
        }
        self.last[cpu] = time;
        Ok(())
    }
}

/// Facts that must be known before the first event is written.
struct Survey {
    known: HashSet<Tid>,
    /// `true` if there are events of NUMA balancing.
    numa: bool,
    /// `true` if there are turns with counter values.
    counted: bool,
    tail: Tail,
}

impl Survey {
    fn from_source(source: &dyn Source) -> Result<Survey, Error> {
        let (mut known, mut order) = (HashSet::new(), Order::default());
        let (mut numa, mut counted) = (false, false);
        let tail = source.each(&mut |part| {
            for event in &part.events {
                order.check(event)?;
                gaps::learn(&mut known, event);
            }
            numa |= !part.numa.is_empty();
            counted |= !part.counted.is_empty();
            Ok(())
        })?;
        Ok(Survey { known, numa, counted, tail })
    }
}

struct Storing<'a, W: Write + Send> {
    finder: Finder<'a>,
    writer: Writer<W>,
    judge: Judge,
    /// The events of a part, with the switches that are missing.
    completed: Vec<Event>,
    events: u64,
    numa_events: u64,
    counters: Vec<String>,
    counted_turns: u64,
    inferred: u64,
    /// The first time and the last.
    ends: Option<(u64, u64)>,
}

impl<W: Write + Send> Storing<'_, W> {
    fn take(&mut self, part: &Trace) -> Result<(), Error> {
        self.completed.clear();
        for event in &part.events {
            if let Some(missing) = self.finder.missing_before(event) {
                self.inferred += 1;
                self.judge.take(&missing);
                self.completed.push(missing);
            }
            self.judge.take(event);
            self.completed.push(*event);
        }
        if let (Some(first), Some(last)) = (part.events.first(), part.events.last()) {
            self.ends = Some((self.ends.map_or(first.time, |(first, _)| first), last.time));
        }
        self.events += self.completed.len() as u64;
        self.numa_events += part.numa.len() as u64;
        self.counted_turns += part.counted.len() as u64;
        let Trace { numa, counted, texts, .. } = part;
        let (events, counters) = (&self.completed, &self.counters);
        self.writer.write(&Happened { events, numa, counted, counters, texts })
    }
}
