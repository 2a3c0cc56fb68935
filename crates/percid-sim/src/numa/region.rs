//! A region of a process's memory, and what the scan remembers of it.

use std::ops::Range;

use super::activity::{Activity, Width};
use super::settings::Settings;
use crate::Ns;

/// Which memory policy counts for a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// None of its own: that of the thread that scans.
    Thread,
    /// One of its own that lets pages migrate when they are used.
    Balancing,
    /// One of its own that does not; a binding, say.
    Fixed,
}

/// What decides whether a region is scanned at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Whether its pages can be migrated on a hint: no memory of devices, no huge pages of their own file
    /// system, no mixed map.
    pub migratable: bool,
    /// The policy of its memory.
    pub policy: Policy,
    /// Whether a file backs it.
    pub file: bool,
    /// Access rights.
    pub readable: bool,
    /// Access rights.
    pub writable: bool,
    /// Access rights.
    pub executable: bool,
}

impl Traits {
    /// Private anonymous memory that can be read and written.
    pub const ANONYMOUS: Traits = Traits {
        migratable: true,
        policy: Policy::Thread,
        file: false,
        readable: true,
        writable: true,
        executable: false,
    };
    /// A part of a file that can be read only.
    pub const FILE: Traits = Traits { file: true, writable: false, ..Traits::ANONYMOUS };
    /// Memory without any access rights.
    pub const GUARD: Traits = Traits { readable: false, writable: false, ..Traits::ANONYMOUS };
    /// Memory that the kernel maps for its own use, like the data of its clocks.
    pub const SPECIAL: Traits = Traits { migratable: false, writable: false, ..Traits::ANONYMOUS };

    /// Whether a scan by a thread whose own policy is `balancing` or not may arm its pages.
    pub(super) fn suitable(&self, balancing: bool) -> bool {
        self.migratable
            && match self.policy {
                Policy::Thread => balancing,
                Policy::Balancing => true,
                Policy::Fixed => false,
            }
    }

    pub(super) fn shared_ro(&self) -> bool {
        self.file && self.readable && !self.writable
    }

    pub(super) fn accessible(&self) -> bool {
        self.readable || self.writable || self.executable
    }
}

/// A region: a range of addresses with the same traits.
#[derive(Debug, Clone)]
pub struct Region {
    /// Its addresses, in bytes.
    pub range: Range<u64>,
    /// What it is.
    pub traits: Traits,
    pub(super) state: Option<State>,
}

impl Region {
    /// A region that no scan has visited.
    pub fn new(range: Range<u64>, traits: Traits) -> Region {
        Region { range, traits, state: None }
    }

    /// A thread trapped a hint fault here.
    pub fn used_by(&mut self, width: Width, thread: u32) {
        if let Some(state) = &mut self.state {
            state.windows[1].insert(width, thread);
        }
    }
}

/// What the scan remembers of a region from its first visit on.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// Not scanned before this time.
    pub(super) next_scan: Ns,
    /// When the current window of activity is over.
    pub(super) window_end: Ns,
    /// Who used it in the window before, and in the current one.
    pub(super) windows: [Activity; 2],
    /// The sequence in which it was last scanned completely.
    pub(super) completed: i64,
    /// The sequence in which it was first visited.
    pub(super) first: i64,
}

impl State {
    /// The state at the first visit. It counts as scanned in the sequence before, lest the first scan be
    /// left out.
    pub(super) fn new(now: Ns, sequence: i64, settings: &Settings) -> State {
        let next_scan = now + settings.scan_delay;
        State {
            next_scan,
            window_end: next_scan + settings.window(),
            windows: [Activity::default(); 2],
            completed: sequence - 1,
            first: sequence,
        }
    }

    /// Who used it of late.
    pub(super) fn users(&self) -> Activity {
        self.windows[0].union(self.windows[1])
    }

    /// Begins a new window if the current one is over. One step only: a region that was not visited for
    /// long keeps its users until it is.
    pub(super) fn turn_window(&mut self, now: Ns, settings: &Settings) {
        if now > self.window_end {
            self.window_end += settings.window();
            self.windows = [self.windows[1], Activity::default()];
        }
    }
}
