//! Reads traces as text: a line for each event, as tracefs, `trace-cmd report` and `perf script`
//! write it.
//!
//! Threads can name themselves anything, also like a part of a line. So a line is taken apart from
//! what the kernel says in words of its own, which stands at its ends, and a name is what is left
//! between.

use std::collections::HashMap;

use crate::collector::Collector;
use crate::error::Error;
use crate::event::{Cpu, Tid};
use crate::trace::{Origin, Trace};

mod fields;
mod head;
mod tracepoint;

use head::Head;

/// The longest line that is read, in bytes. The longest that a kernel writes holds a path of 4096
/// bytes.
const LONGEST_LINE: usize = 1 << 14;

/// The shortest line of an event; a hint for how many there are.
const SHORTEST_LINE: usize = 80;

/// How the files of `trace-cmd record` begin.
const TRACE_DAT: &[u8] = b"\x17\x08\x44tracing";

/// Reads a text.
pub(super) fn read(bytes: &[u8]) -> Result<Trace, Error> {
    if bytes.starts_with(TRACE_DAT) {
        let what = "this is what trace-cmd record writes; expected was the text that trace-cmd report -t makes of it";
        return Err(Error::at_byte(0, what));
    }
    let mut reader = Reader {
        collector: Collector::with_capacity(bytes.len() / SHORTEST_LINE),
        processes: HashMap::new(),
        origin: Origin::default(),
        recognised: false,
        order: TimeOrder::default(),
    };
    for (line, number) in bytes.split(|&byte| byte == b'\n').zip(1..) {
        reader.line(number, line).map_err(|what| Error::at_line(number, what))?;
    }
    if !reader.recognised {
        let what = "no line is that of an event: text of tracefs, trace-cmd report or perf script, \
                    perf.data, Perfetto or Parquet was expected";
        return Err(Error::at_line(1, what));
    }
    reader.order.check()?;
    Ok(reader.collector.finish(reader.origin))
}

/// Whether the times of each CPU ascend, as those of a clock do.
#[derive(Default)]
struct TimeOrder {
    last: HashMap<Cpu, u64>,
    events: u64,
    backwards: u64,
    /// The first line whose time is before that of its CPU's line before.
    first: Option<u64>,
}

/// Clocks of CPUs have been seen to step back a little, now and then. Differences of times do in every
/// other line.
const SELDOM: u64 = 20;

impl TimeOrder {
    fn note(&mut self, line: u64, cpu: Cpu, time: u64) {
        self.events += 1;
        if self.last.insert(cpu, time).is_some_and(|last| last > time) {
            self.backwards += 1;
            self.first.get_or_insert(line);
        }
    }

    fn check(&self) -> Result<(), Error> {
        let Some(line) = self.first.filter(|_| self.backwards > self.events / SELDOM) else {
            return Ok(());
        };
        let what = "the times of a CPU go back: expected were times since one moment, as perf script writes them \
                    without --deltatime";
        Err(Error::at_line(line, what))
    }
}

/// Whether any line of a beginning of a text is that of an event.
pub(super) fn has_event(beginning: &[u8]) -> bool {
    let lines = beginning.split(|&byte| byte == b'\n');
    lines.filter(|line| line.len() <= LONGEST_LINE).any(|line| Head::read(line).is_some())
}

struct Reader {
    collector: Collector,
    /// The process of each thread, where lines tell it.
    processes: HashMap<Tid, Tid>,
    origin: Origin,
    /// Whether any line was that of an event.
    recognised: bool,
    order: TimeOrder,
}

impl Reader {
    fn line(&mut self, number: u64, line: &[u8]) -> Result<(), String> {
        if line.len() > LONGEST_LINE {
            return Err(format!("the line is longer than {LONGEST_LINE} bytes"));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(Head { thread, process, cpu, time, event, body }) = Head::read(line) else {
            return self.remark(line);
        };
        self.recognised = true;
        self.order.note(number, cpu, time);
        if let Some(process) = process {
            if self.processes.insert(thread, process) != Some(process) {
                self.collector.member(time, cpu, thread, process);
            }
        }
        if let Some(tracepoint) = tracepoint::read(event, body)? {
            self.collector.tracepoint(time, cpu, thread, tracepoint);
        }
        Ok(())
    }

    /// A line that is not that of an event, or not as it should be.
    fn remark(&mut self, line: &[u8]) -> Result<(), String> {
        let lost = &mut self.origin.lost;
        if let Some(remark) = line.strip_prefix(b"# entries-in-buffer/entries-written:") {
            let mut numbers = fields::numbers(remark);
            if let (Some(kept), Some(written)) = (numbers.next(), numbers.next()) {
                *lost = lost.saturating_add(written.saturating_sub(kept));
            }
            self.origin.online_cpus = numbers.next().and_then(|cpus| u32::try_from(cpus).ok());
        } else if let Some(cpus) = line.strip_prefix(b"cpus=") {
            self.origin.possible_cpus = fields::number(cpus).and_then(|cpus| cpus.try_into().ok());
        } else if line.starts_with(b"CPU") {
            *lost = lost.saturating_add(lost_on_cpu(line));
        } else if let Some(at) = fields::last(line, b"PERF_RECORD_LOST lost ") {
            *lost = lost.saturating_add(fields::numbers(&line[at..]).next().unwrap_or(0));
        } else if is_switch(line) {
            return Err(format!("a sched_switch should begin with {}", head::EXPECTED));
        }
        Ok(())
    }
}

/// Whether a line tells of a switch, which no trace can do without. The records of `perf` and
/// comments may hold a name of a thread that says so.
fn is_switch(line: &[u8]) -> bool {
    let Some(at) = fields::last(line, b"sched_switch: ") else { return false };
    let is_word = at.checked_sub(1).is_none_or(|before| matches!(line[before], b' ' | b':'));
    is_word && !line.starts_with(b"#") && fields::last(line, b"PERF_RECORD_").is_none()
}

/// How many events a remark on a CPU says were lost there; 1 if it does not say how many.
fn lost_on_cpu(remark: &[u8]) -> u64 {
    let says = |words: &[u8]| fields::last(remark, words).is_some();
    match says(b"LOST") || says(b"DROPPED") || says(b"lost") {
        true => fields::numbers(remark).nth(1).unwrap_or(1),
        false => 0,
    }
}
