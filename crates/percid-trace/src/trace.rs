//! A whole trace in memory: 32 bytes an event.

use crate::counters::Counted;
use crate::event::{Cpu, Event, Tid, What};
use crate::interner::Interner;
#[cfg(feature = "files")]
use crate::kernel_states::Settling;
use crate::numa::{self, ScanSettings};

/// A trace in memory.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The origin of the trace.
    pub origin: Origin,
    /// The events, by time and then by CPU. Those of one CPU at the same time are in the order in
    /// which they happened.
    pub events: Vec<Event>,
    /// The events of the kernel's NUMA balancing, in the same order. Empty if they were not
    /// recorded.
    pub numa: Vec<numa::Event>,
    /// The counts of counters in turns of threads, by the end of the turn and then by CPU. Empty if
    /// no counters were recorded.
    pub counted: Vec<Counted>,
    /// The texts to which events refer.
    pub texts: Interner,
}

/// The origin of a trace. Values that a format does not contain are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The kernel's release, such as `6.18.44`.
    pub release: Option<String>,
    /// The clock of the times, by the kernel's name: `mono`, `boot`, `local`, `perf`.
    pub clock: Option<String>,
    /// Number of CPUs that may ever exist on that machine.
    pub possible_cpus: Option<u32>,
    /// Number of CPUs that were online.
    pub online_cpus: Option<u32>,
    /// Number of events that the recording lost because its buffers were full.
    pub lost: u64,
    /// The command that was recorded.
    pub command: Option<String>,
    /// The processes that the recording is about, if it contains all others too: those that existed
    /// when it began. [`subject::processes`](crate::subject::processes) contains the processes that
    /// they created too. If this is empty, the recording is about everything that it contains.
    pub subject: Vec<Tid>,
    /// Settings of the kernel's NUMA scan.
    pub scan: Option<ScanSettings>,
    /// The node of each CPU; empty if that is not known.
    pub nodes: Vec<u32>,
    /// Names of the counters of turns of threads, at most
    /// [`MAX_COUNTERS`](crate::counters::MAX_COUNTERS).
    pub counters: Vec<String>,
    /// The part of the schedule that was recorded.
    pub coverage: Coverage,
    /// The CPUs on which nothing was recorded before their first event, in ascending order. Ring
    /// buffers that keep the newest events begin at different times.
    pub late_cpus: Vec<Cpu>,
    /// Other facts about the file that a reader should know, such as which events were left out.
    /// They are sentences without a full stop.
    pub remarks: Vec<String>,
}

/// Maximum number of remarks that are kept: a file could contain any number.
#[cfg(feature = "files")]
const REMARKS: usize = 32;
/// Maximum number of characters of a remark.
#[cfg(feature = "files")]
const LONGEST_REMARK: usize = 400;

#[cfg(feature = "files")]
impl Origin {
    /// Adds a remark on the file. Leaves out remarks and characters beyond the limits.
    pub(crate) fn remark(&mut self, remark: impl AsRef<str>) {
        if self.remarks.len() < REMARKS {
            let printable = |letter: char| if letter.is_control() { '?' } else { letter };
            let letters = remark.as_ref().chars().take(LONGEST_REMARK);
            self.remarks.push(letters.map(printable).collect());
        }
    }
}

/// The part of the schedule that was recorded, according to the format. The default is all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The switches that were recorded, if not all were.
    pub sampling: Option<Sampling>,
    /// `true` if only switches away from the threads of a command were recorded, none to them.
    pub away_only: bool,
    /// `true` if some processes were recorded, without the threads that were created later.
    pub not_inherited: bool,
    /// `true` if only events on some CPUs were recorded.
    pub some_cpus: bool,
    /// `true` if only the threads of a command or process were recorded, and not what CPUs ran
    /// between their turns.
    pub filtered: bool,
    /// `true` if the end is missing because the recorder was killed, or had no space left.
    pub cut_off: bool,
    /// Number of switches that were not recorded, and added: see [`crate::gaps`].
    pub inferred: u64,
    /// Number of lines of a text, or of records, that describe an event and could not be read.
    pub unread: u64,
    /// `true` if it is not known of all threads why they stopped running. Those threads sleep.
    pub no_states: bool,
}

/// The switches that a sampled recording contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// About this number of switches a second.
    Frequency(u64),
    /// One switch in this number.
    Period(u64),
}

impl Trace {
    /// Translates the states whose kernel's table was not known while the file was read.
    #[cfg(feature = "files")]
    pub(crate) fn settle_states(&mut self) {
        let mut settling = Settling::default();
        for event in &self.events {
            if let What::Switch { state, .. } = event.what {
                settling.see(state);
            }
        }
        if !settling.has_seen() {
            return;
        }
        let table = settling.table(self.origin.release.as_deref());
        for event in &mut self.events {
            if let What::Switch { state, .. } = &mut event.what {
                *state = Settling::settle(*state, table.as_ref());
            }
        }
        if table.is_none() && settling.is_needed() {
            self.origin.coverage.no_states = true;
            self.origin.remark(
                "neither a description of sched_switch nor the kernel's release says what the numbers of its states \
                 mean, which changed with Linux 4.14",
            );
        }
    }

    /// Returns the largest CPU on which something happened. `None` if there are no events.
    pub fn largest_cpu(&self) -> Option<Cpu> {
        let counted = self.counted.iter().map(|turn| turn.cpu).max();
        self.events.iter().map(|event| event.cpu).max().max(counted)
    }

    /// Returns `true` if both traces have the same events with the same texts, in the same order,
    /// and the same counters. Other values of the origins may differ.
    pub fn same_events(&self, other: &Trace) -> bool {
        let same_counts =
            self.counted == other.counted && self.origin.counters == other.origin.counters;
        self.first_difference(other).is_none() && self.numa == other.numa && same_counts
    }

    /// Returns the index of the first event of the schedule in which the two traces differ.
    pub fn first_difference(&self, other: &Trace) -> Option<usize> {
        let same = |(a, b): (&Event, &Event)| {
            let (a, b) = (self.spelled_out(a), other.spelled_out(b));
            a == b
        };
        let alike = self.events.iter().zip(&other.events).take_while(|&pair| same(pair)).count();
        (alike < self.events.len().max(other.events.len())).then_some(alike)
    }

    /// Returns an event without its text's number, and that text.
    fn spelled_out(&self, event: &Event) -> (Event, &str) {
        let mut event = *event;
        let text = match &mut event.what {
            What::Name { name: text, .. } | What::Affinity { cpus: text, .. } => text,
            _ => return (event, ""),
        };
        let spelled = self.texts.get(*text);
        text.0 = 0;
        (event, spelled)
    }
}
