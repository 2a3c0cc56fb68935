//! A whole trace in memory: 32 bytes an event.

use crate::counters::Counted;
use crate::event::{Cpu, Event, Tid, What};
use crate::interner::Interner;
#[cfg(feature = "files")]
use crate::kernel_states::Settling;
use crate::numa::{self, ScanSettings};

/// A trace.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Where it comes from.
    pub origin: Origin,
    /// The events, by time and then by CPU; those of one CPU at one time in the order in which they
    /// happened.
    pub events: Vec<Event>,
    /// What the kernel's NUMA balancing did, in the same order; nothing if it was not recorded.
    pub numa: Vec<numa::Event>,
    /// What was counted in turns of threads, by when they end and then by CPU; nothing if no counters were
    /// recorded.
    pub counted: Vec<Counted>,
    /// The texts to which events refer.
    pub texts: Interner,
}

/// Where a trace comes from. What a format does not say is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The kernel's release, such as `6.18.44`.
    pub release: Option<String>,
    /// The clock of the times, by the kernel's name: `mono`, `boot`, `local`, `perf`.
    pub clock: Option<String>,
    /// The CPUs that may ever exist on that machine.
    pub possible_cpus: Option<u32>,
    /// The CPUs that were there.
    pub online_cpus: Option<u32>,
    /// Events that the recording lost because its buffers were full.
    pub lost: u64,
    /// The command that was recorded.
    pub command: Option<String>,
    /// The processes that it was made of, if it has all others beside them: those that there were when
    /// it began. [`subject::processes`](crate::subject::processes) has those that they created too. Empty:
    /// it is about everything that it has.
    pub subject: Vec<Tid>,
    /// How the kernel's NUMA scan was set up.
    pub scan: Option<ScanSettings>,
    /// The node of each CPU; empty if that is not known.
    pub nodes: Vec<u32>,
    /// What was counted in turns of threads, by name, [`MOST`](crate::counters::MOST) at most.
    pub counters: Vec<String>,
    /// What of the schedule was recorded.
    pub coverage: Coverage,
    /// The CPUs of which nothing was recorded before their first event, in ascending order: ring buffers
    /// that keep the newest events begin at different times.
    pub late_cpus: Vec<Cpu>,
    /// What else whoever reads the file should know, in sentences without a full stop, such as
    /// which events were left out.
    pub remarks: Vec<String>,
}

/// The most remarks that are kept, and characters of each: a file could claim any number.
#[cfg(feature = "files")]
const REMARKS: usize = 32;
#[cfg(feature = "files")]
const LONGEST_REMARK: usize = 400;

#[cfg(feature = "files")]
impl Origin {
    /// Takes in a remark on the file.
    pub(crate) fn remark(&mut self, remark: impl AsRef<str>) {
        if self.remarks.len() < REMARKS {
            let printable = |letter: char| if letter.is_control() { '?' } else { letter };
            let letters = remark.as_ref().chars().take(LONGEST_REMARK);
            self.remarks.push(letters.map(printable).collect());
        }
    }
}

/// What of the schedule was recorded, as far as the format says: by default all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Which switches, if not all.
    pub sampling: Option<Sampling>,
    /// Only switches away from the threads of a command, none to them.
    pub away_only: bool,
    /// Of some processes, without the threads that were created later.
    pub not_inherited: bool,
    /// Only what happened on some CPUs.
    pub some_cpus: bool,
    /// Only the threads of a command or process: what CPUs ran between their turns was not recorded.
    pub filtered: bool,
    /// Not the end: what recorded it was killed, or had no room any more.
    pub cut_off: bool,
    /// Switches that were not recorded, and added: see [`crate::gaps`].
    pub inferred: u64,
    /// Lines of a text, and records, that tell of an event and could not be read.
    pub unread: u64,
    /// Not why threads stopped running, or not of all: those of which it is not known sleep.
    pub no_states: bool,
}

/// Which switches a sampled recording has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// About as many a second.
    Frequency(u64),
    /// One in this number.
    Period(u64),
}

impl Trace {
    /// Reads the states of which the kernel's table was not known while the file was read.
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

    /// The largest CPU on which something happened. `None` if there are no events.
    pub fn largest_cpu(&self) -> Option<Cpu> {
        let counted = self.counted.iter().map(|turn| turn.cpu).max();
        self.events.iter().map(|event| event.cpu).max().max(counted)
    }

    /// Whether both have the same events with the same texts, in the same order. Where they come
    /// from may differ.
    pub fn same_events(&self, other: &Trace) -> bool {
        let same_counts =
            self.counted == other.counted && self.origin.counters == other.origin.counters;
        self.first_difference(other).is_none() && self.numa == other.numa && same_counts
    }

    /// The number of the first event of the schedule in which the two differ.
    pub fn first_difference(&self, other: &Trace) -> Option<usize> {
        let same = |(a, b): (&Event, &Event)| {
            let (a, b) = (self.spelled_out(a), other.spelled_out(b));
            a == b
        };
        let alike = self.events.iter().zip(&other.events).take_while(|&pair| same(pair)).count();
        (alike < self.events.len().max(other.events.len())).then_some(alike)
    }

    /// An event, and the text to which it refers in place of its number.
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
