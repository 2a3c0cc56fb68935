//! Events of the kernel's NUMA balancing: how its scan walks over the regions of a process, which
//! accesses it sees, and which threads and pages it moves.
//!
//! The kernel's own tracepoints report regions that the scan leaves out (`sched_skip_vma_numa`,
//! since Linux 6.7), not those that it arms. With probes a recording has these too, see
//! [`What::Pass`].

use percid_rules::scan::{Policy, SkipReason, Traits};

use crate::event::{Cpu, Tid};

/// An event of NUMA balancing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time of the event, in nanoseconds on the trace's clock.
    pub time: u64,
    /// The CPU on which it happened.
    pub cpu: Cpu,
    /// The thread that did it or to which it happened.
    pub thread: Tid,
    /// The event's kind and data.
    pub what: What,
}

/// Kinds of events. Addresses are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The thread begins a pass of the scan, if one is due (a probe of `task_numa_work`).
    Pass {
        /// The kernel's time in its own ticks, by which the scan goes (`jiffies`).
        ticks: u64,
        /// Duration, in nanoseconds: until the function returned, also if no pass was due; `None`
        /// if the trace does not contain it.
        took: Option<u64>,
    },
    /// The pass leaves a region out, or remarks why it does not (`sched:sched_skip_vma_numa`).
    Skip {
        /// The address at which the pass before ended: this one begins there.
        offset: u64,
        /// Start address of the region.
        start: u64,
        /// End address of the region.
        end: u64,
        /// The reason; `None` if it is not known here.
        reason: Option<SkipReason>,
    },
    /// The pass arms a part of a region (a probe of `change_prot_numa`).
    Arm {
        /// Start address of the part.
        start: u64,
        /// End address of the part.
        end: u64,
        /// Number of pages that were not armed before; `None` if the trace does not contain it.
        changed: Option<u64>,
    },
    /// The thread used an armed page (a probe of `task_numa_fault`).
    Hint {
        /// The address that it used.
        address: u64,
        /// Time that the kernel took for it, in nanoseconds: from the fault to the probe, which
        /// comes after a move of the page, if there is one; `None` if the trace does not contain
        /// it.
        took: Option<u64>,
        /// The node of the page afterwards; `None` if the trace does not contain it.
        node: Option<u32>,
    },
    /// A process was looked at: its regions follow, at the same time.
    Process {
        /// The process.
        process: Tid,
        /// Number of threads that it had.
        threads: u32,
    },
    /// A region of the process that was looked at.
    Region {
        /// The process.
        process: Tid,
        /// Start address of the region.
        start: u64,
        /// End address of the region.
        end: u64,
        /// The properties that decide whether it is scanned.
        traits: Traits,
    },
    /// The thread goes to a node whose memory it uses (`sched:sched_move_numa`).
    Move(ThreadMove),
    /// It could not go there (`sched:sched_stick_numa`).
    Stick(ThreadMove),
    /// It changes places with another thread (`sched:sched_swap_numa`).
    Swap(ThreadMove, Tid),
    /// Pages are about to be moved (`migrate:mm_migrate_pages_start`).
    MigrateStart {
        /// The reason.
        reason: MigrateReason,
    },
    /// Pages were moved (`migrate:mm_migrate_pages`).
    Migrated {
        /// Number of pages that were moved.
        moved: u64,
        /// Number of pages that could not be moved.
        failed: u64,
        /// The reason.
        reason: MigrateReason,
    },
}

/// A move of a thread, from one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadMove {
    /// From this CPU,
    pub from_cpu: Cpu,
    /// of this node,
    pub from_node: u32,
    /// to this one,
    pub to_cpu: Cpu,
    /// of this node.
    pub to_node: u32,
}

/// The reason why pages are moved, by its place in [`MIGRATE_REASONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigrateReason(u8);

/// The kernel's words for the reasons to move pages; the last represents all others.
pub const MIGRATE_REASONS: [&str; 11] = [
    "compaction",
    "memory_failure",
    "memory_hotplug",
    "syscall_or_cpuset",
    "mempolicy_mbind",
    "numa_misplaced",
    "contig_range",
    "longterm_pin",
    "demotion",
    "damon",
    "other",
];

impl MigrateReason {
    /// The NUMA balancing found the page on another node than its user.
    pub const NUMA_MISPLACED: MigrateReason = MigrateReason(5);

    /// A reason that has no name here.
    pub const OTHER: MigrateReason = MigrateReason(MIGRATE_REASONS.len() as u8 - 1);

    /// The reason by the kernel's word for it.
    pub fn from_word(word: &str) -> MigrateReason {
        let known = MIGRATE_REASONS.iter().position(|&known| known == word);
        known.map_or(MigrateReason::OTHER, |place| MigrateReason(place as u8))
    }

    /// The kernel's word.
    pub fn word(self) -> &'static str {
        MIGRATE_REASONS[usize::from(self.0)]
    }
}

/// The reason to leave a region out, by the kernel's word for it.
pub fn skip_reason(word: &str) -> Option<SkipReason> {
    SkipReason::ALL.into_iter().find(|reason| reason.name() == word)
}

/// The kinds of events, by the names that they have in tables too.
pub const KINDS: [&str; 11] = [
    "scan_pass",
    "scan_skip",
    "scan_arm",
    "hint_fault",
    "scan_process",
    "scan_region",
    "numa_move",
    "numa_stick",
    "numa_swap",
    "migrate_pages_start",
    "migrate_pages",
];

impl What {
    /// The place of its kind in [`KINDS`].
    pub fn kind(&self) -> usize {
        match self {
            What::Pass { .. } => 0,
            What::Skip { .. } => 1,
            What::Arm { .. } => 2,
            What::Hint { .. } => 3,
            What::Process { .. } => 4,
            What::Region { .. } => 5,
            What::Move(_) => 6,
            What::Stick(_) => 7,
            What::Swap(..) => 8,
            What::MigrateStart { .. } => 9,
            What::Migrated { .. } => 10,
        }
    }

    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        KINDS[self.kind()]
    }
}

/// The settings of the kernel's scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanSettings {
    /// A new region is left alone for this long, in milliseconds.
    pub delay_ms: u64,
    /// Amount of memory that a pass may arm, in MiB.
    pub size_mb: u64,
}

/// The traits of a region in words: the rights as in `/proc/PID/maps`, then what else it is.
///
/// ```
/// use percid_rules::scan::{Policy, Traits};
/// use percid_trace::numa::{traits_from_words, words_of_traits};
///
/// let traits = Traits { policy: Some(Policy::Fixed), file: true, ..Traits::ANONYMOUS };
/// assert_eq!(words_of_traits(traits), "rw- file fixed");
/// assert_eq!(traits_from_words("rw- file fixed"), Some(traits));
/// assert_eq!(traits_from_words("rw- strange"), None);
/// ```
pub fn words_of_traits(traits: Traits) -> String {
    let right = |has: bool, letter: char| if has { letter } else { '-' };
    let mut words: String =
        [right(traits.readable, 'r'), right(traits.writable, 'w'), right(traits.executable, 'x')]
            .iter()
            .collect();
    let policy = match traits.policy {
        None => "",
        Some(Policy::Fixed) => " fixed",
        Some(Policy::Balancing) => " balancing",
    };
    words.push_str(if traits.file { " file" } else { "" });
    words.push_str(policy);
    words.push_str(if traits.movable { "" } else { " immovable" });
    words
}

/// The traits in such words; `None` if they are not.
pub fn traits_from_words(words: &str) -> Option<Traits> {
    let mut words = words.split(' ');
    let rights = words.next()?.as_bytes();
    let &[readable, writable, executable] = rights else { return None };
    let has = |found: u8, letter: u8| match found {
        b'-' => Some(false),
        _ => (found == letter).then_some(true),
    };
    let mut traits = Traits {
        movable: true,
        policy: None,
        file: false,
        readable: has(readable, b'r')?,
        writable: has(writable, b'w')?,
        executable: has(executable, b'x')?,
    };
    for word in words {
        match word {
            "file" => traits.file = true,
            "fixed" => traits.policy = Some(Policy::Fixed),
            "balancing" => traits.policy = Some(Policy::Balancing),
            "immovable" => traits.movable = false,
            _ => return None,
        }
    }
    Some(traits)
}

/// A tracepoint or probe of the kernel's NUMA balancing, by its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the kernel's")]
pub enum Tracepoint {
    /// `sched:sched_skip_vma_numa`
    SkipVma { offset: u64, start: u64, end: u64, reason: Option<SkipReason> },
    /// `sched:sched_move_numa`
    MoveNuma { pid: Tid, place: ThreadMove },
    /// `sched:sched_stick_numa`
    StickNuma { pid: Tid, place: ThreadMove },
    /// `sched:sched_swap_numa`
    SwapNuma { pid: Tid, place: ThreadMove, other: Tid },
    /// `migrate:mm_migrate_pages_start`
    MigrateStart { reason: MigrateReason },
    /// `migrate:mm_migrate_pages`
    MigratePages { succeeded: u64, failed: u64, reason: MigrateReason },
    /// Our probe `pass`: `task_numa_work` is entered.
    Pass { ticks: u64 },
    /// Our probe `passed`: `task_numa_work` returns.
    Passed,
    /// Our probe `arm`: `change_prot_numa` is entered.
    Arm { start: u64, end: u64 },
    /// Our probe `armed`: `change_prot_numa` returns.
    Armed { changed: u64 },
    /// Our probe `fault`: `handle_mm_fault` is entered.
    Fault { address: u64 },
    /// Our probe `hint`: `task_numa_fault` is entered.
    Hint { node: Option<u32> },
}

/// The group of our probes.
pub const PROBES: &str = "percid_numa";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_all_of_a_region() {
        let rights = [false, true];
        for (readable, writable) in rights.into_iter().flat_map(|r| rights.map(|w| (r, w))) {
            for policy in [None, Some(Policy::Fixed), Some(Policy::Balancing)] {
                for (file, movable) in rights.into_iter().flat_map(|f| rights.map(|m| (f, m))) {
                    let executable = file != movable;
                    let traits = Traits { movable, policy, file, readable, writable, executable };
                    assert_eq!(traits_from_words(&words_of_traits(traits)), Some(traits));
                }
            }
        }
        for words in ["", "rw", "wr-", "rwx  file", "r-- File"] {
            assert_eq!(traits_from_words(words), None, "{words}");
        }
    }

    #[test]
    fn reasons_are_known_by_the_kernels_words() {
        assert_eq!(MigrateReason::from_word("numa_misplaced"), MigrateReason::NUMA_MISPLACED);
        assert_eq!(MigrateReason::from_word("new in Linux 9").word(), "other");
        assert_eq!(skip_reason("seq_completed"), Some(SkipReason::SeqCompleted));
        assert_eq!(skip_reason("new in Linux 9"), None);
    }
}
