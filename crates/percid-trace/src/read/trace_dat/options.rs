//! Options of a recording: a list of numbers, each with some bytes.

use super::clock::{self, Clock, Cycles};
use crate::error::Error;
use crate::read::bytes::Bytes;

/// The numbers of options. Others are left out.
pub(super) mod number {
    pub(in super::super) const DONE: u16 = 0;
    pub(in super::super) const CPU_STATISTICS: u16 = 2;
    pub(in super::super) const BUFFER: u16 = 3;
    pub(in super::super) const CLOCK: u16 = 4;
    pub(in super::super) const UNAME: u16 = 5;
    pub(in super::super) const OFFSET: u16 = 7;
    pub(in super::super) const CPUS: u16 = 8;
    pub(in super::super) const CYCLES: u16 = 14;
    pub(in super::super) const HEADERS: u16 = 16;
    pub(in super::super) const EVENT_FORMATS: u16 = 18;
    pub(in super::super) const SYMBOLS: u16 = 19;
    pub(in super::super) const TEXT: u16 = 22;
}

/// The options that both versions write in the same way.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The kernel's release.
    pub(super) release: Option<String>,
    /// The kernel's clock.
    pub(super) clock: Option<String>,
    /// The CPUs of the machine.
    pub(super) cpus: Option<u32>,
    /// Events that the kernel counted as lost.
    pub(super) lost: u64,
    cycles: Option<Cycles>,
    offset: u64,
}

/// Takes the number and the bytes of the next option. Fails after the last one.
pub(super) fn next<'a>(list: &mut Bytes<'a>) -> Result<(u16, Bytes<'a>), Error> {
    let option = list.u16("an option")?;
    let size = list.u32("the size of an option")?;
    Ok((option, list.part(size.into(), "an option")?))
}

impl Options {
    /// Takes in an option; whether it is one of these.
    pub(super) fn take(&mut self, option: u16, mut data: Bytes<'_>) -> Result<bool, Error> {
        match option {
            number::CPU_STATISTICS => {
                self.lost = self.lost.saturating_add(lost(&text(data)));
            }
            number::CLOCK => self.clock = Some(clock::chosen(&text(data)).to_owned()),
            number::UNAME => {
                // The system, the host and then the release.
                self.release = text(data).split(' ').nth(2).map(str::to_owned);
            }
            number::OFFSET => {
                let text = text(data);
                let offset = offset(&text).ok_or_else(|| {
                    data.error(format!("{text:?} is no time to be added to others"))
                })?;
                self.offset = self.offset.wrapping_add(offset);
            }
            number::CPUS => self.cpus = Some(data.u32("the number of CPUs")?),
            number::CYCLES => {
                let factor = data.u32("what makes times of cycles")?;
                let shift = data.u32("what makes times of cycles")?;
                self.cycles = Some(Cycles { factor, shift });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the conversion for a buffer with this clock, or with that of the recording.
    pub(super) fn clock_of(&self, own: Option<&str>) -> Result<Clock, Error> {
        Clock::new(own.or(self.clock.as_deref()), self.cycles, self.offset)
    }
}

/// A text up to its first zero byte.
pub(super) fn text(data: Bytes<'_>) -> String {
    let bytes = data.rest();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Nanoseconds, in decimal or hexadecimal digits, as the 64 bits that are added.
fn offset(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, is_negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let offset = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if is_negative { offset.wrapping_neg() } else { offset })
}

/// Returns the number of lost events in the kernel's statistics of a CPU: overwritten before they
/// were read, or left out because there was no room.
fn lost(statistics: &str) -> u64 {
    let count = |line: &str| -> Option<u64> {
        let (what, number) = line.split_once(": ")?;
        let is_loss = matches!(what, "overrun" | "commit overrun" | "dropped events");
        is_loss.then(|| number.trim().parse().ok())?
    };
    statistics.lines().filter_map(count).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_what_was_overwritten_and_what_was_left_out() {
        let statistics = "CPU: 1\nentries: 47\noverrun: 5\ncommit overrun: 1\nbytes: 940\n\
                          oldest event ts:  2069.152452\nnow ts:  2069.384266\n\
                          dropped events: 7\nread events: 99\n";
        assert_eq!(lost(statistics), 13);
        assert_eq!(lost("overrun: 18446744073709551615\ndropped events: 2\n"), u64::MAX);
        assert_eq!(lost("overrun: many\n\nBuffer: wakes\n"), 0);
    }

    #[test]
    fn offsets_have_signs_and_two_bases() {
        assert_eq!(offset("1000"), Some(1000));
        assert_eq!(offset("-0x10\n"), Some(16u64.wrapping_neg()));
        assert_eq!(offset("soon"), None);
    }
}
