//! The beginning of a line: which thread ran on which CPU, when, and which event this was.
//!
//! ```text
//!             bash-9471    (   9471) [001] d..2.  1413.242796: sched_switch: …      tracefs
//!             bash-9471    [001]  1413.242796041: sched_switch:         …           trace-cmd report -t
//!     bash-9471    1d..2.  1413.242796: sched_switch:         …                     trace-cmd report -l
//!             bash  9471 [001]  1413.242796041:       sched:sched_switch: …         perf script --ns
//!  9471/9471  [001]  1413.242796:          1 sched:sched_switch: …                  perf script -F -comm,+pid,+period
//! ```

use super::fields::{LONGER_NAME, Words, id, number, seconds};
use crate::event::{Cpu, Tid, UNKNOWN};

/// The column before which all of these write the name of the thread, right-aligned.
const NAME_ENDS: usize = 16;

/// The expected beginning of a line, for error messages.
pub(super) const EXPECTED: &str = "NAME-THREAD [CPU] FLAGS SECONDS: or NAME THREAD [CPU] SECONDS:, the seconds with six to \
                                   nine digits behind the dot";

/// Returns `true` if a line has something else in place of a time: digits without a dot, as a
/// separate word or directly after the CPU.
pub(super) fn counts_something_else(line: &[u8]) -> bool {
    let mut words = Words(line);
    std::iter::repeat_with(|| words.next()).take_while(|word| !word.is_empty()).any(|word| {
        let word = word.strip_suffix(b":").unwrap_or(b"");
        let behind = word.iter().rposition(|&byte| byte == b']').map_or(0, |end| end + 1);
        number(&word[behind..]).is_some()
    })
}

/// The beginning of a line.
pub(super) struct Head<'a> {
    /// [`UNKNOWN`] if the line does not contain it.
    pub(super) thread: Tid,
    pub(super) process: Option<Tid>,
    pub(super) cpu: Cpu,
    pub(super) time: u64,
    /// Without its system.
    pub(super) event: &'a [u8],
    /// The text of the event.
    pub(super) body: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads the beginning of a line; `None` if it is not that of an event.
    ///
    /// A name may look like the rest of a beginning, but it ends by the sixteenth column, so the
    /// last place that fits is it. Lines without a name, or with more in front of it, are tried last.
    pub(super) fn read(line: &'a [u8]) -> Option<Head<'a>> {
        Head::with_name(line).or_else(|| {
            let shorter = line.trim_ascii_start();
            Head::with_name(shorter)
                .or_else(|| Head::after_blank(shorter))
                .or_else(|| Head::without_thread(shorter))
        })
    }

    /// Like `read`, for names that may exceed their column. Kernels of vendors store longer names.
    pub(super) fn read_longer(line: &'a [u8]) -> Option<Head<'a>> {
        Head::read(line).or_else(|| Head::with_longer_name(line))
    }

    fn with_name(line: &'a [u8]) -> Option<Head<'a>> {
        let ends = (1..=NAME_ENDS.min(line.len().checked_sub(1)?)).rev();
        ends.filter_map(|end| Head::after_name(line, end)).next()
    }

    fn with_longer_name(line: &'a [u8]) -> Option<Head<'a>> {
        let ends = NAME_ENDS + 1..=LONGER_NAME.min(line.len().checked_sub(1)?);
        ends.filter_map(|end| Head::after_name(line, end)).next()
    }

    fn after_name(line: &'a [u8], end: usize) -> Option<Head<'a>> {
        match line[end] {
            b'-' => Head::after_dash(&line[end + 1..]),
            b' ' => Head::after_blank(&line[end + 1..]),
            _ => None,
        }
    }

    /// `bash [001] 1413.242796041: sched:sched_switch: …`, or the same without the name.
    fn without_thread(line: &'a [u8]) -> Option<Head<'a>> {
        let starts = (0..=NAME_ENDS.min(line.len())).rev();
        let mut starts = starts.filter(|&start| line[start..].starts_with(b"["));
        starts.find_map(|start| {
            let mut words = Words(&line[start..]);
            let cpu = in_brackets(words.next())?;
            let time = words.next();
            Head::from_fields(UNKNOWN, None, cpu, time, words)
        })
    }

    /// Returns the rest after `bash-`: `9471 [001] d..2. 1413.242796: sched_switch: …`
    fn after_dash(rest: &'a [u8]) -> Option<Head<'a>> {
        let mut words = Words(rest);
        let thread = id(words.next())?;
        let mut process = None;
        if let Some(rest) = words.0.trim_ascii_start().strip_prefix(b"(") {
            let end = rest.iter().position(|&byte| byte == b')')?;
            process = id(rest[..end].trim_ascii());
            words.0 = &rest[end + 1..];
        }
        let cpu = words.next();
        let cpu = in_brackets(cpu).or_else(|| before_flags(cpu))?;
        let mut time = words.next();
        if !time.ends_with(b":") {
            time = words.next();
        }
        Head::from_fields(thread, process, cpu, time, words)
    }

    /// Returns the rest after `bash `: `9471 [001] 1413.242796041: sched:sched_switch: …`
    fn after_blank(rest: &'a [u8]) -> Option<Head<'a>> {
        let mut words = Words(rest);
        let thread = words.next();
        let slash = thread.iter().position(|&byte| byte == b'/');
        let process = slash.map(|slash| id(&thread[..slash])).unwrap_or(None);
        let thread = id(&thread[slash.map_or(0, |slash| slash + 1)..])?;
        let cpu = in_brackets(words.next())?;
        let time = words.next();
        Head::from_fields(thread, process, cpu, time, words)
    }

    /// Returns the rest after the time: `sched:sched_switch: …`
    fn from_fields(
        thread: Tid,
        process: Option<Tid>,
        cpu: Cpu,
        time: &[u8],
        mut words: Words<'a>,
    ) -> Option<Head<'a>> {
        let time = seconds(time.strip_suffix(b":")?)?;
        let mut event = words.next();
        // perf's period, or trace-cmd's distance to the line before.
        if number(event).is_some() || event.starts_with(b"(+") {
            event = words.next();
        }
        let event = event.strip_suffix(b":")?;
        let system = event.iter().position(|&byte| byte == b':');
        let event = &event[system.map_or(0, |colon| colon + 1)..];
        Some(Head { thread, process, cpu, time, event, body: words.0.trim_ascii() })
    }
}

/// A CPU as `[001]`.
fn in_brackets(word: &[u8]) -> Option<Cpu> {
    cpu(word.strip_prefix(b"[")?.strip_suffix(b"]")?)
}

/// Takes a CPU followed by flags: `1d..2.`
fn before_flags(word: &[u8]) -> Option<Cpu> {
    let flags = word.iter().position(|byte| !byte.is_ascii_digit())?;
    cpu(&word[..flags])
}

fn cpu(digits: &[u8]) -> Option<Cpu> {
    number(digits).and_then(|cpu| Cpu::try_from(cpu).ok())
}
