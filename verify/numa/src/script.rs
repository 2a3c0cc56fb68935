//! Random scripts: regions that come and go, threads that use them, passes by any of them.

use std::ops::Range;
use std::time::Duration;

use percid_sim::random::Random;

/// A mebibyte.
pub const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// What kind of memory a region is. Both sides have their own word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Whether its pages can migrate.
    pub movable: bool,
    /// Its own policy, if any: whether that balances.
    pub policy: Option<bool>,
    /// Whether a file backs it.
    pub file: bool,
    /// Read, write, execute.
    pub rights: [bool; 3],
}

/// One event.
#[derive(Debug, Clone)]
pub enum Event {
    /// Memory is mapped.
    Map(Range<u64>, Kind),
    /// The region that starts here is unmapped.
    Unmap(u64),
    /// A thread was seen to use the region that starts here.
    Use(u64, u32),
    /// A thread scans, at a time; the process has so many threads; each armed piece finds that so many
    /// of its pages change, in tenths.
    Pass {
        /// Who scans.
        thread: u32,
        /// Whether its policy balances.
        balances: bool,
        /// When.
        at: Duration,
        /// How many threads there are.
        threads: u32,
        /// How much of each piece was not armed before, in tenths, piece by piece, from the beginning again.
        fresh: Vec<u64>,
    },
}

/// A script of so many events. The first is a mapping, and the last mapping is never unmapped: without any
/// region the library makes no pass.
pub fn write(seed: u64, length: usize) -> Vec<Event> {
    let mut writer = Writer { random: Random::new(seed), mapped: Vec::new(), now: Duration::ZERO };
    let mut script = vec![writer.map()];
    script.extend((1..length).map(|_| writer.next()));
    script
}

struct Writer {
    random: Random,
    mapped: Vec<Range<u64>>,
    now: Duration,
}

impl Writer {
    fn next(&mut self) -> Event {
        match self.random.below(100) {
            0..4 if self.mapped.len() < 12 => self.map(),
            4..6 if self.mapped.len() > 1 => {
                let place = self.random.below(self.mapped.len() as u64) as usize;
                Event::Unmap(self.mapped.swap_remove(place).start)
            }
            6..40 => {
                let place = self.random.below(self.mapped.len() as u64) as usize;
                Event::Use(self.mapped[place].start, self.thread())
            }
            _ => self.pass(),
        }
    }

    /// Consecutive numbers, as threads that are started together have them; some share a bit.
    fn thread(&mut self) -> u32 {
        4350 + self.random.below(90) as u32
    }

    fn map(&mut self) -> Event {
        loop {
            let start = self.random.below(4096) * 2 * MIB + self.random.below(300) * PAGE;
            let pages = match self.random.below(3) {
                0 => 1 + self.random.below(64),
                1 => 1 + self.random.below(16 * 256),
                _ => 1 + self.random.below(1024 * 256),
            };
            let range = start..start + pages * PAGE;
            let overlaps = |other: &Range<u64>| range.start < other.end && other.start < range.end;
            if !self.mapped.iter().any(overlaps) {
                self.mapped.push(range.clone());
                return Event::Map(range, self.kind());
            }
        }
    }

    /// Most regions can be scanned.
    fn kind(&mut self) -> Kind {
        let mut rarely = || self.random.below(8) == 0;
        let policy = [rarely(), rarely()];
        Kind {
            movable: !rarely(),
            policy: policy[0].then_some(policy[1]),
            file: rarely(),
            rights: [!rarely(), !rarely(), rarely()],
        }
    }

    fn pass(&mut self) -> Event {
        let pause = [0, 1, 100, 700, 3000, 9000][self.random.below(6) as usize];
        self.now += Duration::from_millis(pause);
        let fresh = (0..7).map(|_| self.random.below(11)).collect();
        Event::Pass {
            thread: self.thread(),
            balances: self.random.below(16) > 0,
            at: self.now,
            threads: 1 + self.random.below(6) as u32,
            fresh,
        }
    }
}
