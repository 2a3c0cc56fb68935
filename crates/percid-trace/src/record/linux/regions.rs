//! Reads the regions of processes over which the kernel's NUMA scan walks.
//!
//! The kernel reports the regions that a pass leaves out, not all regions. So the regions of the
//! scanned processes are read during the recording, whenever they change, and for at most a small
//! part of the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::time::Instant;

use percid_rules::scan::{Policy, Traits};

use super::clock::now;
use super::stream::Stream;
use crate::event::Tid;
use crate::numa::{Event, What};

/// For how many times the length of a look there is none of the same process.
const REST: u32 = 4;

/// The processes that are looked at.
#[derive(Debug, Default)]
pub(super) struct Regions {
    processes: BTreeMap<Tid, Look>,
}

/// The last look at a process.
#[derive(Debug)]
struct Look {
    maps: String,
    threads: u32,
    next: Instant,
}

impl Regions {
    /// Looks at a process from now on.
    pub(super) fn watch(&mut self, process: Tid) {
        let look = || Look { maps: String::new(), threads: 0, next: Instant::now() };
        self.processes.entry(process).or_insert_with(look);
    }

    /// Looks at the processes that are scanned, and adds what has changed.
    pub(super) fn look(&mut self, stream: &mut Stream) {
        for thread in std::mem::take(&mut stream.scanners) {
            if let Some(process) = process_of(thread) {
                self.watch(process);
            }
        }
        self.processes.retain(|&process, look| look.again(process, stream).is_some());
    }
}

impl Look {
    /// `None` if the process has ended.
    fn again(&mut self, process: Tid, stream: &mut Stream) -> Option<()> {
        let began = Instant::now();
        if began < self.next {
            return Some(());
        }
        let time = now();
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
        let threads = number_in_status(process, "Threads:")?;
        // A process that ends has no regions any more, but may still be there.
        if maps.is_empty() || (maps == self.maps && threads == self.threads) {
            return Some(());
        }
        let regions = regions(process)?;
        stream.numa(event(time, process, What::Process { process, threads }));
        for (Range { start, end }, traits) in regions {
            stream.numa(event(time, process, What::Region { process, start, end, traits }));
        }
        *self = Look { maps, threads, next: Instant::now() + REST * began.elapsed() };
        Some(())
    }
}

fn event(time: u64, process: Tid, what: What) -> Event {
    Event { time, cpu: 0, thread: process, what }
}

fn process_of(thread: Tid) -> Option<Tid> {
    number_in_status(thread, "Tgid:")
}

fn number_in_status(thread: Tid, name: &str) -> Option<u32> {
    let status = fs::read(format!("/proc/{thread}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// All regions of a process, by ascending address.
fn regions(process: Tid) -> Option<Vec<(Range<u64>, Traits)>> {
    let smaps = fs::read(format!("/proc/{process}/smaps")).ok()?;
    // A kernel without nodes has none.
    let policies = fs::read(format!("/proc/{process}/numa_maps")).unwrap_or_default();
    let policies = policies_in(&String::from_utf8_lossy(&policies));
    Some(regions_in(&String::from_utf8_lossy(&smaps), &policies))
}

fn regions_in(smaps: &str, policies: &BTreeMap<u64, Policy>) -> Vec<(Range<u64>, Traits)> {
    let mut regions: Vec<(Range<u64>, Traits)> = Vec::new();
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let immovable = |flag| matches!(flag, "io" | "pf" | "mm" | "ht");
            if let Some((_, traits)) = regions.last_mut() {
                traits.movable = !flags.split_ascii_whitespace().any(immovable);
            }
        } else if let Some((range, mut traits)) = head(line) {
            traits.policy = policies.get(&range.start).copied();
            regions.push((range, traits));
        }
    }
    // The kernel's own page stands there too, and is no memory of the process.
    regions.retain(|(range, _)| range.start <= i64::MAX as u64);
    regions
}

/// `7f12-7f34 rw-p 00000000 08:01 1234  /a/file`
fn head(line: &str) -> Option<(Range<u64>, Traits)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
    let rights = words.next()?;
    let traits = Traits {
        movable: true,
        policy: None,
        file: words.nth(2)? != "0",
        readable: rights.contains('r'),
        writable: rights.contains('w'),
        executable: rights.contains('x'),
    };
    Some((range, traits))
}

/// Returns the regions that have their own policy. For the others the kernel writes the policy of
/// the first thread: a policy that all regions have is taken for that.
fn policies_in(numa_maps: &str) -> BTreeMap<u64, Policy> {
    let line = |line: &str| {
        let (start, rest) = line.split_once(' ')?;
        let policy = rest.split(' ').next()?.to_owned();
        Some((u64::from_str_radix(start, 16).ok()?, policy))
    };
    let all: Vec<(u64, String)> = numa_maps.lines().filter_map(line).collect();
    let different: BTreeSet<&str> = all.iter().map(|(_, policy)| policy.as_str()).collect();
    if different.len() < 2 {
        return BTreeMap::new();
    }
    let own = |(start, policy): &(u64, String)| match policy.as_str() {
        "default" | "local" => None,
        policy if policy.contains("balancing") => Some((*start, Policy::Balancing)),
        _ => Some((*start, Policy::Fixed)),
    };
    all.iter().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numa::words_of_traits;

    const SMAPS: &str = "\
55d0-55d2 r-xp 00000000 08:01 1234                       /usr/bin/program
Rss:                   8 kB
VmFlags: rd ex mr mw me sd
7f00-7f10 rw-p 00000000 00:00 0
VmFlags: rd wr mr mw me ac sd
7f10-7f20 rw-s 00000000 00:05 9                          /anon_hugepage (deleted)
VmFlags: rd wr sh mr mw me ms de ht sd
7fff-8000 ---p 00000000 00:00 0                          [guard]
VmFlags: mr mw me sd
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]
VmFlags: ex
";

    const NUMA_MAPS: &str = "\
55d0 default file=/usr/bin/program mapped=2 N0=2
7f00 bind:0 anon=16 dirty=16 N0=16
7f10 bind=static|balancing:1 anon=1
7fff default
";

    fn words(smaps: &str, numa_maps: &str) -> Vec<(u64, String)> {
        let regions = regions_in(smaps, &policies_in(numa_maps));
        regions.into_iter().map(|(range, traits)| (range.start, words_of_traits(traits))).collect()
    }

    #[test]
    fn rights_files_flags_and_policies() {
        let expected = [
            (0x55d0, "r-x file"),
            (0x7f00, "rw- fixed"),
            (0x7f10, "rw- file balancing immovable"),
            (0x7fff, "---"),
        ];
        let expected = expected.map(|(start, words)| (start, words.to_owned()));
        assert_eq!(words(SMAPS, NUMA_MAPS), expected);
    }

    #[test]
    fn a_policy_of_all_regions_is_the_threads() {
        let bound = NUMA_MAPS.lines().map(|line| {
            let start = line.split(' ').next().unwrap_or("");
            format!("{start} bind:0 N0=1\n")
        });
        let found = words(SMAPS, &bound.collect::<String>());
        assert!(found.iter().all(|(_, words)| !words.contains("fixed")), "{found:?}");
    }

    #[test]
    fn the_regions_of_this_process() {
        let own = regions(std::process::id()).expect("this process");
        assert!(own.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start));
        let of_code = own.iter().any(|(_, traits)| traits.executable && traits.file);
        assert!(of_code && own.iter().any(|(_, traits)| traits.writable && !traits.file));
        assert!(regions(Tid::MAX - 1).is_none());
    }
}
