//! The kernel's per-thread NUMA balancing statistics (`/proc/PID/task/TID/sched`, if the kernel has
//! it). They belong to the process, unlike those of `/proc/vmstat`.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use crate::numa::process::Process;

/// Accesses that balancing detected: averages over time that weight older accesses less. An access
/// is counted on the node of its page after the migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Faults {
    /// Accesses by the thread that also made the previous access to the page, if the kernel
    /// recorded it.
    pub(super) private: u64,
    /// Accesses by a different thread than the previous access.
    pub(super) shared: u64,
    /// Accesses to pages on the node of the thread.
    pub(super) local: u64,
    /// Pages that were moved because of these accesses, since the first sample.
    pub(super) moved: u64,
    /// Run time of the threads since the first sample.
    #[serde(skip)]
    microseconds: u64,
}

impl Faults {
    pub(super) fn all(self) -> u64 {
        self.private + self.shared
    }

    fn plus(self, other: Faults) -> Faults {
        Faults {
            private: self.private + other.private,
            shared: self.shared + other.shared,
            local: self.local + other.local,
            moved: self.moved + other.moved,
            microseconds: self.microseconds + other.microseconds,
        }
    }

    fn since(self, before: Faults) -> Faults {
        Faults {
            moved: self.moved.saturating_sub(before.moved),
            microseconds: self.microseconds.saturating_sub(before.microseconds),
            ..self
        }
    }

    /// Parses the statistics of one thread, and the node that it is on. The relevant lines are
    /// `se.sum_exec_runtime : 5.25` in milliseconds, `numa_pages_migrated : 7`, `current_node=0,
    /// …`, and for each node `numa_faults node=0 task_private=1 task_shared=2 …`.
    fn of_thread(sched: &str) -> Option<(u32, Faults)> {
        let value = |line: &str, name: &str| -> Option<u64> {
            let found = line.split([' ', ',']).find_map(|word| word.strip_prefix(name));
            found?.strip_prefix('=')?.parse().ok()
        };
        let field = |name: &str| -> Option<&str> {
            let rest = sched.lines().find_map(|line| line.strip_prefix(name))?;
            Some(rest.trim_start().strip_prefix(':')?.trim())
        };
        let moved = field("numa_pages_migrated")?.parse().ok()?;
        let milliseconds: f64 = field("se.sum_exec_runtime")?.parse().ok()?;
        let microseconds = (1e3 * milliseconds) as u64;
        let node = sched.lines().find_map(|line| value(line, "current_node"))?;
        let mut faults = Faults { moved, microseconds, ..Faults::default() };
        for line in sched.lines().filter(|line| line.starts_with("numa_faults ")) {
            let (private, shared) = (value(line, "task_private")?, value(line, "task_shared")?);
            faults.private += private;
            faults.shared += shared;
            if value(line, "node") == Some(node) {
                faults.local += private + shared;
            }
        }
        Some((u32::try_from(node).ok()?, faults))
    }
}

/// Accesses by the threads on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct OfNode {
    /// Number of threads that were on the node when they were last seen.
    pub(super) threads: u64,
    /// Accesses by these threads that balancing detected, and those of them to pages of the node.
    pub(super) accesses: u64,
    pub(super) local: u64,
}

/// Samples of one thread.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// Values at the first sample of the process.
    before: Faults,
    /// Values at the last sample, and the node of the thread at that time.
    now: Faults,
    node: u32,
}

/// The threads of a process, including those that have ended since.
#[derive(Debug, Default)]
pub(super) struct Threads {
    seen: BTreeMap<u32, Thread>,
    has_looked: bool,
}

impl Threads {
    pub(super) fn look(&mut self, process: Process) {
        let numbers = fs::read_dir(process.path("task")).into_iter().flatten();
        let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        for thread in numbers.collect::<Vec<u32>>() {
            let text = fs::read_to_string(process.path(&format!("task/{thread}/sched")));
            let found = text.ok().and_then(|text| Faults::of_thread(&text));
            let Some((node, now)) = found else { continue };
            // All values of a thread that appears later are new since the first sample.
            let before = if self.has_looked { Faults::default() } else { now };
            let seen = self.seen.entry(thread).or_insert(Thread { before, now, node });
            (seen.now, seen.node) = (now, node);
        }
        self.has_looked = true;
    }

    /// Returns the sum over all threads; `None` if the kernel records nothing.
    pub(super) fn all(&self) -> Option<Faults> {
        self.each().reduce(Faults::plus)
    }

    fn each(&self) -> impl Iterator<Item = Faults> {
        self.seen.values().map(|thread| thread.now.since(thread.before))
    }

    /// Returns the accesses by the nodes that the threads are on.
    pub(super) fn by_node(&self) -> BTreeMap<u32, OfNode> {
        let mut nodes = BTreeMap::<u32, OfNode>::new();
        for thread in self.seen.values() {
            let node = nodes.entry(thread.node).or_default();
            node.threads += 1;
            node.accesses += thread.now.all();
            node.local += thread.now.local;
        }
        nodes
    }

    /// Returns the share of the accesses that the threads would also have made in proportion to
    /// their run time. It is 1 if each thread uses its own memory, and `1 / n` if one of `n`
    /// threads was always the first to access memory that all of them use. The thread that arms
    /// memory is often the first everywhere, so that all memory looks private to it. `None` if no
    /// access was detected.
    pub(super) fn spread(&self) -> Option<f64> {
        let all = self.all()?;
        let share = |part: u64, whole: u64| part as f64 / whole as f64;
        let least = |one: Faults| {
            share(one.all(), all.all()).min(share(one.microseconds, all.microseconds))
        };
        (all.all() > 0 && all.microseconds > 0).then(|| self.each().map(least).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHED: &str = "a.out (7, #threads: 2)\n\
        se.sum_exec_runtime                          :             5.250999\n\
        mm->numa_scan_seq                            :                    5\n\
        numa_pages_migrated                          :                   31\n\
        numa_preferred_nid                           :                    1\n\
        total_numa_faults                            :                   72\n\
        current_node=1, numa_group_id=7\n\
        numa_faults node=0 task_private=2 task_shared=10 group_private=9 group_shared=9\n\
        numa_faults node=1 task_private=40 task_shared=20 group_private=9 group_shared=9\n";

    #[test]
    fn what_the_kernel_notes_of_a_thread() {
        let expected = Faults { private: 42, shared: 30, local: 60, moved: 31, microseconds: 5250 };
        assert_eq!(Faults::of_thread(SCHED), Some((1, expected)));
        assert_eq!(Faults::of_thread("se.exec_start : 5.1\n"), None, "built without balancing");
        assert_eq!(Faults::of_thread(&SCHED.replace("task_shared=20", "task_shared=x")), None);
    }

    #[test]
    fn what_was_moved_before_does_not_count_and_who_has_ended_does() {
        let faults =
            |moved, microseconds| Faults { private: 1, shared: 2, local: 3, moved, microseconds };
        let thread = |before, now, node| Thread { before, now, node };
        let seen = [
            (1, thread(faults(30, 5), faults(31, 6), 0)),
            (2, thread(Faults::default(), faults(7, 3), 1)),
        ];
        let threads = Threads { seen: seen.into(), has_looked: true };
        let both = Faults { private: 2, shared: 4, local: 6, moved: 8, microseconds: 4 };
        assert_eq!(threads.all(), Some(both));
        // Half of the accesses each; a quarter and three quarters of the time.
        assert_eq!(threads.spread(), Some(0.75));
        let one = OfNode { threads: 1, accesses: 3, local: 3 };
        assert_eq!(threads.by_node(), [(0, one), (1, one)].into());
        assert_eq!(Threads::default().spread(), None);
        assert_eq!(Threads::default().all(), None);
    }

    #[test]
    fn this_process_has_threads() {
        let mut threads = Threads::default();
        let me = Process { number: std::process::id() };
        (0..2).for_each(|_| threads.look(me));
        // Kernels without NUMA balancing record nothing.
        assert!(threads.all().is_none_or(|faults| faults.local <= faults.all()));
    }
}
