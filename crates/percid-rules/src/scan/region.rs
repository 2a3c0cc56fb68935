//! A region of memory: its properties that decide about a scan, and the recorded state.

use core::fmt;
use core::ops::Range;
use core::time::Duration;

use super::activity::Activity;
use super::settings::Settings;

/// The reason why a region was skipped; [`SkipReason::IgnorePidInactive`] is the reason why it was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// Its pages cannot migrate, or a memory policy places them.
    Unsuitable,
    /// A file's pages that may be read and not written.
    SharedRo,
    /// It has no access rights, so no access can be observed.
    Inaccessible,
    /// It is too new.
    ScanDelay,
    /// It was scanned in this sequence already.
    SeqCompleted,
    /// The scanning thread did not use it recently.
    PidInactive,
    /// The scanning thread did not use it recently, but its scan had begun and is completed.
    IgnorePidInactive,
}

impl SkipReason {
    /// All reasons, in the order of the tests in a pass.
    pub const ALL: [SkipReason; 7] = [
        SkipReason::Unsuitable,
        SkipReason::SharedRo,
        SkipReason::Inaccessible,
        SkipReason::ScanDelay,
        SkipReason::SeqCompleted,
        SkipReason::PidInactive,
        SkipReason::IgnorePidInactive,
    ];

    /// Returns the published name.
    pub fn name(self) -> &'static str {
        match self {
            SkipReason::Unsuitable => "unsuitable",
            SkipReason::SharedRo => "shared_ro",
            SkipReason::Inaccessible => "inaccessible",
            SkipReason::ScanDelay => "scan_delay",
            SkipReason::SeqCompleted => "seq_completed",
            SkipReason::PidInactive => "pid_inactive",
            SkipReason::IgnorePidInactive => "ignore_pid_inactive",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The properties of a region that decide whether it is scanned at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// `true` if its pages can migrate.
    pub movable: bool,
    /// A memory policy of its own; `None` leaves the choice to the scanning thread's policy.
    pub policy: Option<Policy>,
    /// `true` if a file backs it.
    pub file: bool,
    /// `true` if it may be read.
    pub readable: bool,
    /// `true` if it may be written.
    pub writable: bool,
    /// `true` if it may be executed.
    pub executable: bool,
}

/// The memory policy of a region itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Pages may follow their users.
    Balancing,
    /// Pages stay where the policy put them.
    Fixed,
}

impl Traits {
    /// Private memory of the program: readable, writable, without a file and without a policy.
    pub const ANONYMOUS: Traits = Traits {
        movable: true,
        policy: None,
        file: false,
        readable: true,
        writable: true,
        executable: false,
    };

    /// Returns the reason why no scan ever arms such a region, if any.
    pub(super) fn obstacle(self, scanner_balances: bool) -> Option<SkipReason> {
        let balances = self.policy.map_or(scanner_balances, |own| own == Policy::Balancing);
        if !(self.movable && balances) {
            Some(SkipReason::Unsuitable)
        } else if self.file && self.readable && !self.writable {
            Some(SkipReason::SharedRo)
        } else if !(self.readable || self.writable || self.executable) {
            Some(SkipReason::Inaccessible)
        } else {
            None
        }
    }
}

/// A region in the scan.
#[derive(Debug, Clone)]
pub(super) struct Tracked {
    pub(super) range: Range<u64>,
    pub(super) traits: Traits,
    pub(super) memory: Option<Memory>,
}

/// The state of a region from its first visit on.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    /// The time before which it is not scanned.
    pub(super) not_before: Duration,
    /// The end of the current window of activity.
    window_ends: Duration,
    pub(super) activity: Activity,
    /// The sequence in which it was last scanned completely.
    pub(super) completed: i64,
    /// The sequence in which it was first visited.
    pub(super) first: i64,
}

impl Memory {
    pub(super) fn new(now: Duration, sequence: i64, settings: &Settings) -> Memory {
        let not_before = now + settings.scan_delay;
        Memory {
            not_before,
            window_ends: not_before + settings.window(),
            activity: Activity::default(),
            // The previous sequence, so that the first scan does not count as done.
            completed: sequence - 1,
            first: sequence,
        }
    }

    /// Begins a new window if the current one is over. It is one step only: a region that was not
    /// visited for a long time keeps its users until its next visits. Windows do not end in the
    /// first sequence of the process, which has no scan delay either.
    pub(super) fn end_window(&mut self, now: Duration, sequence: i64, settings: &Settings) {
        if sequence != 0 && now > self.window_ends {
            self.window_ends += settings.window();
            self.activity.end_window();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the obstacle to a scan of a region with these rights, in the notation of
    /// `/proc/PID/maps`.
    fn obstacle(rights: &str, file: bool) -> Option<SkipReason> {
        let has = |right| rights.contains(right);
        let (readable, writable, executable) = (has('r'), has('w'), has('x'));
        let traits = Traits { file, readable, writable, executable, ..Traits::ANONYMOUS };
        traits.obstacle(true)
    }

    #[test]
    fn a_window_that_has_ended_is_followed_by_one_as_long() {
        let (settings, at) = (Settings::default(), Duration::from_secs);
        let mut memory = Memory::new(at(0), 1, &settings);
        memory.activity.add(1);
        // The windows end after 5 s, 9 s and 13 s.
        for (second, users) in [(5, 1), (6, 1), (7, 1), (9, 1), (10, 0)] {
            memory.end_window(at(second), 1, &settings);
            assert_eq!(memory.activity.len(), users, "{second} s");
        }
    }

    #[test]
    fn what_cannot_be_used_or_written_is_left_alone() {
        for file in [false, true] {
            assert_eq!(obstacle("---", file), Some(SkipReason::Inaccessible));
            for rights in ["-w-", "--x", "-wx", "rw-", "rwx"] {
                assert_eq!(obstacle(rights, file), None, "{rights} {file}");
            }
            for rights in ["r--", "r-x"] {
                let expected = file.then_some(SkipReason::SharedRo);
                assert_eq!(obstacle(rights, file), expected, "{rights} {file}");
            }
        }
    }
}
