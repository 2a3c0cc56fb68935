//! Reads traces as text: a line for each event, as tracefs, `trace-cmd report` and `perf script`
//! write it.
//!
//! Threads can have any name, even one like a part of a line. So a line is parsed from its ends,
//! which contain the kernel's fixed words, and a name is what is left between.

use std::collections::HashMap;

use crate::collector::{Collector, Tracepoint};
use crate::error::Error;
use crate::event::{Cpu, Tid, UNKNOWN};
use crate::trace::{Origin, Trace};

use super::repeats::Repeats;

pub(super) mod fields;
mod head;
mod instance;
mod page;
mod tracepoint;

use head::Head;

/// The longest line that is read, in bytes. The longest that a kernel writes holds a path of 4096
/// bytes.
const LONGEST_LINE: usize = 1 << 14;

/// The shortest line of an event; a hint for how many there are.
const SHORTEST_LINE: usize = 80;

/// Reads a text.
///
/// A line of an event that cannot be read is counted. If there are many such lines, the text is
/// refused: they are of a kind that cannot be read.
pub(super) fn read(bytes: &[u8]) -> Result<Trace, Error> {
    let width = instance::width(bytes);
    instance::check(bytes, width)?;
    let mut reader = Reader {
        collector: Collector::with_capacity(bytes.len() / SHORTEST_LINE),
        processes: HashMap::new(),
        origin: Origin::default(),
        read: 0,
        unread: Vec::new(),
        order: TimeOrder::default(),
        width,
        repeats: Repeats::new(),
    };
    let mut page = page::is_page(bytes).then(page::PageFilter::default);
    for (mut line, number) in bytes.split(|&byte| byte == b'\n').zip(1..) {
        if let Some(page) = &mut page {
            let Some(part) = page.line(line) else { continue };
            line = part;
        }
        if let Err(what) = reader.line(number, line) {
            reader.leave_out(number, what);
        }
    }
    reader.check()?;
    reader.tell_unread();
    Ok(reader.collector.finish(reader.origin))
}

/// Lines that could not be read for the same reason.
struct Unread {
    what: String,
    first: u64,
    lines: u64,
}

/// Maximum number of reasons that are distinguished.
const REASONS: usize = 24;

/// Number of readable lines for each unreadable one that is accepted.
const UNREAD_AMONG: u64 = 10;

/// Check that the times of each CPU ascend, as those of a clock do.
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

/// Returns `true` if any line of the beginning of a text is an event, or if a page may have events
/// after a long script.
pub(super) fn has_event(beginning: &[u8]) -> bool {
    if page::is_page(beginning) {
        return true;
    }
    let lines = beginning.split(|&byte| byte == b'\n');
    lines.filter(|line| line.len() <= LONGEST_LINE).any(|line| Head::read_longer(line).is_some())
}

struct Reader<'a> {
    collector: Collector,
    /// The process of each thread, if lines contain it.
    processes: HashMap<Tid, Tid>,
    origin: Origin,
    /// Number of lines that were events.
    read: u64,
    /// Reasons why lines of an event could not be read.
    unread: Vec<Unread>,
    order: TimeOrder,
    /// Width of the names of instances.
    width: usize,
    /// Repeated events, by the name of the instance.
    repeats: Repeats<'a, &'a [u8]>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, number: u64, line: &'a [u8]) -> Result<(), String> {
        if line.len() > LONGEST_LINE {
            return Err(format!("the line is longer than {LONGEST_LINE} bytes"));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (instance, line) = instance::split(line, self.width);
        // If lines begin with instance names, a long line may be due to the name.
        let head = match self.width {
            0 => Head::read_longer(line),
            _ => Head::read(line),
        };
        let Some(Head { thread, process, cpu, time, event, body }) = head else {
            return self.remark(line);
        };
        self.read += 1;
        self.order.note(number, cpu, time);
        if let Some(process) = process {
            if self.processes.insert(thread, process) != Some(process) {
                self.collector.member(time, cpu, thread, process);
            }
        }
        let Some(tracepoint) = tracepoint::read(event, body)? else { return Ok(()) };
        if thread == UNKNOWN && tells_of_current(&tracepoint) {
            let event = String::from_utf8_lossy(event);
            return Err(format!(
                "{event} happens to a thread, whose number was expected (-F +tid)"
            ));
        }
        if self.width > 0 && self.repeats.is_one(instance, cpu, thread, tracepoint) {
            return Ok(());
        }
        self.collector.tracepoint(time, cpu, thread, tracepoint);
        Ok(())
    }

    /// Counts a line that could not be read.
    fn leave_out(&mut self, line: u64, what: String) {
        self.origin.coverage.unread += 1;
        if let Some(known) = self.unread.iter_mut().find(|known| known.what == what) {
            known.lines += 1;
        } else if self.unread.len() < REASONS {
            self.unread.push(Unread { what, first: line, lines: 1 });
        }
    }

    /// Reports each reason once, with the first line.
    fn tell_unread(&mut self) {
        for Unread { what, first, lines } in &self.unread {
            self.origin.remark(match lines {
                1 => format!("line {first} was not read: {what}"),
                lines => format!("{lines} lines were not read, the first is line {first}: {what}"),
            });
        }
    }

    /// Checks the text as a whole.
    fn check(&mut self) -> Result<(), Error> {
        let unread = self.origin.coverage.unread;
        if let Some(first) = self.unread.first().filter(|_| unread > self.read / UNREAD_AMONG) {
            return Err(Error::at_line(first.first, first.what.as_str()));
        }
        if self.read == 0 {
            let what = "no line is that of an event: text of tracefs, trace-cmd report or perf script, \
                        perf.data, trace.dat, Perfetto or Parquet was expected";
            return Err(Error::at_line(1, what));
        }
        self.order.check()
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
        } else if let Some(number) = lost_by_bpftrace(line) {
            *lost = lost.saturating_add(number);
        } else if line.starts_with(b"CPU") {
            *lost = lost.saturating_add(lost_on_cpu(line));
        } else if let Some(at) = fields::last(line, b"PERF_RECORD_LOST lost ") {
            *lost = lost.saturating_add(fields::numbers(&line[at..]).next().unwrap_or(0));
        } else if let Some(event) = known_event(line) {
            let clock = match head::counts_something_else(line) {
                true => {
                    " (the clocks uptime, counter and x86-tsc have none: expected was trace-cmd record -C mono)"
                }
                false => "",
            };
            let event = String::from_utf8_lossy(event);
            return Err(format!("a {event} should begin with {}{clock}", head::EXPECTED));
        }
        Ok(())
    }
}

/// Returns `true` if the meaning of an event depends on the thread that ran.
fn tells_of_current(tracepoint: &Tracepoint<'_>) -> bool {
    use Tracepoint::{Numa, RseqUpdate, TaskNewtask, Tick};
    matches!(tracepoint, TaskNewtask { .. } | RseqUpdate { .. } | Tick | Numa(_))
}

/// Returns the event of a line, if a trace needs it. In records of `perf` and comments the name of
/// a thread may look like an event.
fn known_event(line: &[u8]) -> Option<&'static [u8]> {
    if line.starts_with(b"#") || fields::last(line, b"PERF_RECORD_").is_some() {
        return None;
    }
    tracepoint::KNOWN.into_iter().find(|event| {
        let at = fields::last(line, event).filter(|at| line[at + event.len()..].starts_with(b": "));
        let before = at.map(|at| at.checked_sub(1).map(|before| line[before]));
        before.is_some_and(|before| before.is_none_or(|before| matches!(before, b' ' | b':')))
    })
}

/// Returns the number of lost lines that bpftrace reports: `Lost 12 events`
fn lost_by_bpftrace(remark: &[u8]) -> Option<u64> {
    fields::number(remark.strip_prefix(b"Lost ")?.strip_suffix(b" events")?)
}

/// Returns the number of events that a remark on a CPU reports as lost; 1 if it has no number.
fn lost_on_cpu(remark: &[u8]) -> u64 {
    let says = |words: &[u8]| fields::last(remark, words).is_some();
    match says(b"LOST") || says(b"DROPPED") || says(b"lost") {
        true => fields::numbers(remark).nth(1).unwrap_or(1),
        false => 0,
    }
}
