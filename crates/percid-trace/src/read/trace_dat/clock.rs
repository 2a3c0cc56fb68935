//! Conversion of time stamps to times, by the clock of the buffer.

use crate::error::Error;

/// The kernel's clocks that count nanoseconds. `uptime` counts hundredths of a second, `counter`
/// events, and those of architectures, such as `x86-tsc`, cycles.
const NANOSECONDS: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];

/// Conversion of cycles to nanoseconds: by this factor, divided by a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cycles {
    pub(super) factor: u32,
    pub(super) shift: u32,
}

/// The conversion of a buffer's time stamps to times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    cycles: Option<Cycles>,
    /// Offset that is added, in nanoseconds.
    offset: u64,
}

impl Clock {
    /// Returns the clock of this name; no name is the kernel's own clock, `local`.
    pub(super) fn new(
        name: Option<&str>,
        cycles: Option<Cycles>,
        offset: u64,
    ) -> Result<Clock, Error> {
        let name = name.unwrap_or("local");
        let counts_nanoseconds = NANOSECONDS.contains(&name);
        if !counts_nanoseconds && (name != "x86-tsc" || cycles.is_none()) {
            let what = format!(
                "the times are of the clock {name:?}, which does not count nanoseconds: expected was one of {}, or \
                 x86-tsc with --tsc2nsec",
                NANOSECONDS.join(", ")
            );
            return Err(Error::in_file(what));
        }
        Ok(Clock { cycles: cycles.filter(|_| !counts_nanoseconds), offset })
    }

    /// The time of a stamp in nanoseconds.
    #[inline]
    pub(super) fn time(self, stamp: u64) -> u64 {
        let time = match self.cycles {
            None => stamp,
            Some(Cycles { factor, shift }) => {
                (u128::from(stamp) * u128::from(factor)).checked_shr(shift).unwrap_or(0) as u64
            }
        };
        time.wrapping_add(self.offset)
    }
}

/// Returns the name between brackets in the kernel's file `trace_clock`: `local [mono] boot`. A
/// text without brackets is one name.
pub(super) fn chosen(text: &str) -> &str {
    let between = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    between.map_or(text.trim(), |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_count_something_else_are_refused() {
        for name in NANOSECONDS {
            assert!(Clock::new(Some(name), None, 0).is_ok(), "{name}");
        }
        for name in ["uptime", "counter", "x86-tsc", "ppc-tb", ""] {
            let error = Clock::new(Some(name), None, 0).expect_err(name).to_string();
            assert!(error.contains("nanoseconds"), "{error}");
        }
    }

    #[test]
    fn cycles_become_nanoseconds_where_it_is_told_how() {
        let cycles = Some(Cycles { factor: 3, shift: 1 });
        let of = |name| Clock::new(Some(name), cycles, 5).expect("a clock");
        assert_eq!(of("x86-tsc").time(1 << 63), 5u64.wrapping_add(3 << 62));
        assert_eq!(of("x86-tsc").time(7), 15);
        assert_eq!(of("mono").time(7), 12);
        let none = Some(Cycles { factor: 3, shift: 200 });
        assert_eq!(Clock::new(Some("x86-tsc"), none, 0).expect("a clock").time(7), 0);
    }

    #[test]
    fn the_chosen_clock_stands_in_brackets() {
        assert_eq!(chosen("local global [mono] boot\n"), "mono");
        assert_eq!(chosen("perf"), "perf");
        assert_eq!(chosen("[local"), "[local");
    }
}
