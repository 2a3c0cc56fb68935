//! The output of the program `scan-walk`, parsed.

use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::{Policy, Settings, SkipReason, Traits};

/// A region and its traits.
pub(crate) type Region = (Range<u64>, Traits);

/// Something that happened, in order.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// From here on these are the regions.
    Regions(Vec<Region>),
    /// A thread's own policy lets pages migrate, or does not.
    Policy { thread: u32, balancing: bool },
    /// A pass by a thread.
    Pass { thread: u32, at: Duration, actions: Vec<Done> },
    /// A thread trapped a hint fault.
    Hint { thread: u32, address: u64 },
}

/// An action of the kernel in a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Done {
    /// It skipped a region, or remarked on it.
    Traced { start: u64, reason: SkipReason },
    /// It armed a chunk.
    Armed { range: Range<u64>, changed: u64 },
}

/// A recording.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recording {
    pub(crate) settings: Settings,
    pub(crate) threads: u32,
    pub(crate) entries: Vec<Entry>,
    maps: Vec<Vec<Region>>,
    tick: Duration,
}

impl Recording {
    /// Reads one. Lines in front of the settings and after the last entry are no part of it.
    pub(crate) fn read(text: &str) -> Result<Recording, String> {
        let lines = text.lines().skip_while(|line| !line.starts_with("settings "));
        let mut recording = Recording::default();
        for line in lines.take_while(|line| !line.starts_with("PASS ") && !line.is_empty()) {
            recording.line(line).ok_or_else(|| format!("expected an entry, found {line:?}"))?;
        }
        if recording.entries.is_empty() {
            return Err("expected a recording of scan-walk, found none".to_owned());
        }
        Ok(recording)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["settings", _, delay, _, size, _, tick, _, threads] => {
                self.settings.scan_delay = Duration::from_millis(delay.parse().ok()?);
                self.settings.scan_size = size.parse::<u64>().ok()? << 20;
                self.tick = Duration::from_millis(tick.parse().ok()?);
                self.threads = threads.parse().ok()?;
            }
            ["region", map, start, end, flags, ref rest @ ..] => {
                let map = hex(map)? as usize;
                self.maps.resize(self.maps.len().max(map + 1), Vec::new());
                self.maps[map].push((hex(start)?..hex(end)?, traits(flags, rest)));
            }
            ["map", map] => {
                let regions = self.maps.get(hex(map)? as usize)?.clone();
                self.entries.push(Entry::Regions(regions));
            }
            ["policy", thread, policy] => {
                let (thread, balancing) = (hex(thread)? as u32, policy == "default");
                self.entries.push(Entry::Policy { thread, balancing });
            }
            ["pass", thread, ticks] => {
                let (thread, at) = (hex(thread)? as u32, self.tick * hex(ticks)? as u32);
                self.entries.push(Entry::Pass { thread, at, actions: Vec::new() });
            }
            ["skip", start, reason] => {
                let start = hex(start)?;
                let reason = SkipReason::ALL.into_iter().find(|known| known.name() == reason)?;
                self.did(Done::Traced { start, reason })?;
            }
            ["arm", start, end, changed] => {
                self.did(Done::Armed { range: hex(start)?..hex(end)?, changed: hex(changed)? })?;
            }
            ["hint", thread, address] => {
                let (thread, address) = (hex(thread)? as u32, hex(address)?);
                self.entries.push(Entry::Hint { thread, address });
            }
            _ => return None,
        }
        Some(())
    }

    /// Adds to the last pass; nothing can happen in between.
    fn did(&mut self, done: Done) -> Option<()> {
        match self.entries.last_mut()? {
            Entry::Pass { actions, .. } => actions.push(done),
            _ => return None,
        }
        Some(())
    }
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

/// Returns the traits by the flags of smaps, and by the program's notes about its own regions.
fn traits(flags: &str, rest: &[&str]) -> Traits {
    let flags: Vec<&str> = flags.split(',').collect();
    let has = |flag: &str| flags.contains(&flag);
    let policy = match () {
        () if rest.contains(&"fixed") => Some(Policy::Fixed),
        () if rest.contains(&"balancing") => Some(Policy::Balancing),
        () => None,
    };
    Traits {
        movable: !["io", "pf", "mm", "ht"].into_iter().any(has),
        policy,
        file: rest.contains(&"file"),
        readable: has("rd"),
        writable: has("wr"),
        executable: has("ex"),
    }
}
