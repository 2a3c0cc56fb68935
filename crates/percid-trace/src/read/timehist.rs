//! Reads the text of `perf sched timehist`: a line for each turn of a thread on a CPU, when it ends.
//!
//! ```text
//!            time    cpu  task name                       wait time  sch delay   run time  state
//!                         [tid/pid]                          (msec)     (msec)     (msec)
//! --------------- ------  ------------------------------  ---------  ---------  ---------  -----
//!     3175.165973 [0000]  migration/0[18]                     0.000      0.008      0.017      S
//!     3175.169883 [0000]  opt cgu.0[4064/3322]                0.000      0.000      3.910      R
//! ```
//!
//! Between two turns on it, a CPU was idle. The text does not contain wake-ups with their CPU, so
//! the trace has none. Without `--state` threads seem to sleep after each turn.

use std::collections::HashMap;

use super::ftrace_text::fields::{Words, id, number, seconds};
use crate::collector::{Collector, Tracepoint};
use crate::error::Error;
use crate::event::{Cpu, IDLE, State, Tid, UNKNOWN};
use crate::trace::{Origin, Trace};

/// Number of bytes within which the heading must be.
const BEGINNING: usize = 4096;

/// Times are cut off to microseconds, so a turn may seem to begin this much later than the one before
/// ended, in nanoseconds.
const ROUNDED: u64 = 2000;

/// Returns `true` if a text is of this kind.
pub(super) fn is_one(text: &[u8]) -> bool {
    heading(text).is_some()
}

/// The columns by the heading.
#[derive(Clone, Copy)]
struct Heading {
    /// Column at which the names of threads begin.
    name: usize,
    has_state: bool,
}

fn heading(text: &[u8]) -> Option<Heading> {
    let beginning = &text[..text.len().min(BEGINNING)];
    beginning.split(|&byte| byte == b'\n').find_map(|line| {
        let mut words = Words(line);
        let begins = words.next() == b"time" && words.next() == b"cpu";
        let column = |title: &[u8]| line.windows(title.len()).position(|window| window == title);
        let name = column(b"task name").filter(|_| begins)?;
        column(b"run time")?;
        Some(Heading { name, has_state: column(b"state").is_some() })
    })
}

/// Reads a text.
pub(super) fn read(text: &[u8]) -> Result<Trace, Error> {
    let Some(heading) = heading(text) else {
        return Err(Error::at_line(1, "no heading of perf sched timehist"));
    };
    let mut reader = Reader { collector: Collector::default(), last: HashMap::new() };
    let mut unread = 0;
    let mut read = 0u64;
    let mut first_unread = None;
    for (line, number) in text.split(|&byte| byte == b'\n').zip(1..) {
        // Between the heading and the first turn are lines without a time.
        let Some((time, cpu)) = begin(line) else { continue };
        match Line::read(line, heading) {
            Some(line) => {
                read += 1;
                reader.take(time, cpu, line);
            }
            None => {
                unread += 1;
                first_unread.get_or_insert(number);
            }
        }
    }
    if let Some(line) = first_unread.filter(|_| unread > read / 10) {
        let what =
            "expected was SECONDS [CPU] NAME[THREAD/PROCESS] and three times in milliseconds";
        return Err(Error::at_line(line, what));
    }
    if read == 0 {
        return Err(Error::at_line(1, "perf sched timehist tells of no turn"));
    }
    reader.end();
    let mut origin = Origin::default();
    origin.coverage.unread = unread;
    if !heading.has_state {
        origin.coverage.no_states = true;
        origin.remark("perf was not asked for states: perf sched timehist --state shows them");
    }
    Ok(reader.collector.finish(origin))
}

/// Returns the time at which a turn ended, and the CPU: `3175.165973 [0000]`
fn begin(line: &[u8]) -> Option<(u64, Cpu)> {
    let mut words = Words(line);
    let time = seconds(words.next())?;
    let cpu = words.next().strip_prefix(b"[")?.strip_suffix(b"]")?;
    Some((time, Cpu::try_from(number(cpu)?).ok()?))
}

/// The part of a line after that.
enum Line<'a> {
    Turn {
        name: &'a [u8],
        thread: Tid,
        process: Tid,
        ns: u64,
        state: State,
    },
    Migrated {
        thread: Tid,
        from: Cpu,
        to: Cpu,
    },
    /// A line that a trace does not need.
    Other,
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8], heading: Heading) -> Option<Line<'a>> {
        let line = line.get(heading.name..)?.trim_ascii_end();
        let ends = line.iter().enumerate().filter(|&(_, &byte)| byte == b']').map(|(at, _)| at);
        let turn = ends.clone().find_map(|end| Line::turn(line, end, heading.has_state));
        if let Some(turn) = turn.or_else(|| Line::turn_of_unknown(line, heading.has_state)) {
            return Some(turn);
        }
        if let Some(at) = position(line, b" migrated: ") {
            return Line::migrated(&line[at + b" migrated: ".len()..]);
        }
        let is_other = line.starts_with(b"<idle>") || position(line, b" awakened: ").is_some();
        is_other.then_some(Line::Other)
    }

    /// A turn of a thread whose number ends here.
    fn turn(line: &'a [u8], end: usize, has_state: bool) -> Option<Line<'a>> {
        let (name, thread, process) = thread(&line[..end])?;
        Line::turn_of(name, thread, process, Words(&line[end + 1..]), has_state)
    }

    /// Parses a turn of a thread of which perf knows the number only: `:18`
    fn turn_of_unknown(line: &'a [u8], has_state: bool) -> Option<Line<'a>> {
        let mut words = Words(line.strip_prefix(b":")?);
        let thread = id(words.next())?;
        Line::turn_of(b"", thread, thread, words, has_state)
    }

    fn turn_of(
        name: &'a [u8],
        thread: Tid,
        process: Tid,
        mut words: Words<'a>,
        has_state: bool,
    ) -> Option<Line<'a>> {
        let [Some(_), Some(_), Some(ns)] = std::array::from_fn(|_| milliseconds(words.next()))
        else {
            return None;
        };
        let state = match has_state.then(|| words.next()) {
            Some(b"R") => State::RUNNABLE,
            // perf up to 6.8 has the letters of older kernels, and W for this bit.
            Some(b"R+" | b"W") => State::PREEMPTED,
            Some(b"X" | b"Z") => State::DEAD,
            _ => State::SLEEPING,
        };
        Some(Line::Turn { name, thread, process, ns, state })
    }

    /// `perf[8406] cpu 0 => 1`
    fn migrated(text: &[u8]) -> Option<Line<'a>> {
        let at = text.windows(6).rposition(|window| window == b"] cpu ")?;
        let (_, thread, _) = thread(&text[..at])?;
        let mut words = Words(&text[at + 6..]);
        let from = id(words.next())?;
        words.next();
        Some(Line::Migrated { thread, from, to: id(words.next())? })
    }
}

/// Returns `true` if this stands for a name that perf does not know: `:18`
fn is_number_of(name: &[u8], thread: Tid) -> bool {
    name.strip_prefix(b":").and_then(id) == Some(thread)
}

fn position(line: &[u8], text: &[u8]) -> Option<usize> {
    line.windows(text.len()).position(|window| window == text)
}

/// A name and numbers without the last bracket: `opt cgu.0[4064/3322`
fn thread(text: &[u8]) -> Option<(&[u8], Tid, Tid)> {
    let at = text.iter().rposition(|&byte| byte == b'[')?;
    let (name, numbers) = (&text[..at], &text[at + 1..]);
    let mut numbers = numbers.split(|&byte| byte == b'/');
    let thread = id(numbers.next()?)?;
    let process = numbers.next().map_or(Some(thread), id)?;
    Some((name, thread, process))
}

/// Returns nanoseconds from milliseconds with three digits after the dot.
fn milliseconds(word: &[u8]) -> Option<u64> {
    let dot = word.iter().position(|&byte| byte == b'.')?;
    let (whole, part) = (number(&word[..dot])?, &word[dot + 1..]);
    let part = number(part).filter(|_| part.len() == 3)?;
    whole.checked_mul(1_000_000)?.checked_add(part * 1000)
}

struct Reader {
    collector: Collector,
    /// The last turn of each CPU that has ended: time, thread and state.
    last: HashMap<Cpu, (u64, Tid, State)>,
}

impl Reader {
    fn take(&mut self, time: u64, cpu: Cpu, line: Line<'_>) {
        match line {
            Line::Turn { name, thread, process, ns, state } => {
                self.begin_turn(time.saturating_sub(ns), time, cpu, thread);
                if process != thread {
                    self.collector.member(time, cpu, thread, process);
                }
                if !is_number_of(name, thread) {
                    self.collector.name(time, cpu, thread, name);
                }
                self.last.insert(cpu, (time, thread, state));
            }
            Line::Migrated { thread, from, to } => {
                let migrated = Tracepoint::SchedMigrateTask {
                    comm: b"",
                    pid: thread,
                    orig_cpu: from,
                    dest_cpu: to,
                };
                self.collector.tracepoint(time, cpu, UNKNOWN, migrated);
            }
            Line::Other => {}
        }
    }

    /// The switches before a turn from one time to another.
    fn begin_turn(&mut self, from: u64, to: u64, cpu: Cpu, thread: Tid) {
        match self.last.remove(&cpu) {
            Some((end, before, state)) if from <= end.saturating_add(ROUNDED) => {
                self.switch(end, cpu, before, state, thread);
            }
            Some((end, before, state)) => {
                self.switch(end, cpu, before, state, IDLE);
                self.switch(from, cpu, IDLE, State::RUNNABLE, thread);
            }
            // A turn that was going on when the recording began has no length.
            None if from < to => self.switch(from, cpu, UNKNOWN, State::RUNNABLE, thread),
            None => {}
        }
    }

    /// Ends the last turns. The events after them are not known.
    fn end(&mut self) {
        let mut last: Vec<_> = self.last.drain().collect();
        last.sort_unstable_by_key(|&(cpu, _)| cpu);
        for (cpu, (time, thread, state)) in last {
            self.switch(time, cpu, thread, state, UNKNOWN);
        }
    }

    fn switch(&mut self, time: u64, cpu: Cpu, prev: Tid, state: State, next: Tid) {
        self.collector.tracepoint(
            time,
            cpu,
            prev,
            Tracepoint::SchedSwitch {
                prev_comm: b"",
                prev_pid: prev,
                prev_state: state.0,
                next_comm: b"",
                next_pid: next,
            },
        );
    }
}
