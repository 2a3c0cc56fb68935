//! NUMA nodes: their properties, the node of this thread, the nodes of pages, and moving pages.

use std::ops::Range;

use super::maps::{self, Mapping};
use super::{errno, file};

/// Maximum number of nodes that any Linux kernel supports (`MAX_NUMNODES`).
const MAX_NODES: u32 = 1024;

/// The flags of `get_mempolicy` for the policy at an address and for the allowed nodes, and of
/// `move_pages` for pages that only this process maps (`linux/mempolicy.h`).
const MPOL_F_ADDR: libc::c_ulong = 2;
const MPOL_F_MEMS_ALLOWED: libc::c_ulong = 4;
const MPOL_MF_MOVE: libc::c_int = 2;

/// Policies (`linux/mempolicy.h`): none; and allocation on the node of the first use, as without
/// one.
const MPOL_DEFAULT: libc::c_int = 0;
const MPOL_LOCAL: libc::c_int = 4;

/// A memory policy's mode with its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode(libc::c_int);

impl Mode {
    /// Returns `true` if pages are allocated on the node of their first use, without a policy or by
    /// an explicit one.
    pub(crate) fn is_default(self) -> bool {
        self.0 == MPOL_DEFAULT || self.0 == MPOL_LOCAL
    }

    /// Returns `true` if the policy lets pages follow their users (`MPOL_F_NUMA_BALANCING`).
    pub(crate) fn balances(self) -> bool {
        self.0 >> 13 & 1 == 1
    }
}

/// Number of nodes that tests pretend; 0 for the real ones.
#[cfg(feature = "testing")]
pub(crate) static PRETENDED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

#[cfg(feature = "testing")]
fn pretended() -> Option<u32> {
    let nodes = PRETENDED.load(std::sync::atomic::Ordering::Relaxed);
    (nodes > 0).then_some(nodes)
}

/// Returns the nodes that have memory; node 0 if the kernel does not report them. Allocates: not
/// async-signal-safe.
pub(crate) fn nodes_with_memory() -> Vec<u32> {
    #[cfg(feature = "testing")]
    if let Some(nodes) = pretended() {
        return (0..nodes).collect();
    }
    let nodes = list("has_memory").filter(|nodes| !nodes.is_empty());
    nodes.unwrap_or_else(|| vec![0])
}

/// Returns the nodes that have CPUs; `None` if the kernel does not report them. Allocates: not
/// async-signal-safe.
pub(crate) fn with_cpus() -> Option<Vec<u32>> {
    #[cfg(feature = "testing")]
    if let Some(nodes) = pretended() {
        return Some((0..nodes).collect());
    }
    list("has_cpu")
}

/// Returns the distances of all online nodes from a node, by the firmware's table. Allocates.
pub(crate) fn distances(from: u32) -> Vec<(u32, u32)> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/node/node{from}/distance"));
    let text = text.unwrap_or_default();
    let distances = text.split_whitespace().filter_map(|distance| distance.parse().ok());
    list("online").unwrap_or_default().into_iter().zip(distances).collect()
}

/// Returns the memory tiers with their nodes, if the kernel has tiers (Linux 6.1): a larger number
/// is slower. Allocates.
pub(crate) fn tiers() -> Vec<(u32, Vec<u32>)> {
    let directory = std::fs::read_dir("/sys/devices/virtual/memory_tiering");
    let entries = directory.into_iter().flatten().filter_map(Result::ok);
    let tier = |entry: std::fs::DirEntry| {
        let number = entry.file_name().to_str()?.strip_prefix("memory_tier")?.parse().ok()?;
        let nodes = std::fs::read_to_string(entry.path().join("nodelist")).ok()?;
        Some((number, parse(&nodes)?))
    };
    entries.filter_map(tier).collect()
}

/// Reads the list of nodes with this name.
fn list(name: &str) -> Option<Vec<u32>> {
    parse(&std::fs::read_to_string(format!("/sys/devices/system/node/{name}")).ok()?)
}

/// Parses a list such as `0-3,8`; returns `None` if the text is anything else.
fn parse(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        numbers.extend(first..=last.min(MAX_NODES - 1));
    }
    Some(numbers)
}

/// Returns the nodes that have memory and that this process may use: `cpuset.mems` can forbid some
/// at any time. Allocates: not async-signal-safe.
pub(crate) fn usable_nodes() -> Vec<u32> {
    let mut nodes = nodes_with_memory();
    if let Some(allowed) = allowed_nodes() {
        nodes.retain(|node| allowed[*node as usize / 64] >> (node % 64) & 1 == 1);
    }
    nodes
}

/// Returns the bits of the nodes that the process may use; `None` if the kernel does not report
/// them.
fn allowed_nodes() -> Option<[u64; MAX_NODES as usize / 64]> {
    #[cfg(feature = "testing")]
    if pretended().is_some() {
        return None;
    }
    let mut words = [0; MAX_NODES as usize / 64];
    let no_mode = std::ptr::null_mut::<libc::c_int>();
    let place = words.as_mut_ptr();
    // SAFETY: there is a bit for each of these nodes; no mode is requested.
    let done = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            no_mode,
            place,
            libc::c_ulong::from(MAX_NODES),
            0usize,
            MPOL_F_MEMS_ALLOWED,
        )
    };
    (done == 0 && words != [0; MAX_NODES as usize / 64]).then_some(words)
}

/// Returns the node of the CPU that runs the calling thread; 0 if the kernel does not report it.
/// One system call.
pub(crate) fn current_node() -> u32 {
    let (mut cpu, mut node) = (0u32, 0u32);
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: both places are valid; the third argument is unused since Linux 2.6.24.
    unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, none) };
    #[cfg(feature = "testing")]
    if let Some(nodes) = pretended() {
        return cpu % nodes;
    }
    node
}

/// Returns the node of a CPU; `None` if the kernel does not report it. Some system calls, no
/// allocation; callers store the result.
pub(crate) fn node_of(cpu: u32) -> Option<u32> {
    #[cfg(feature = "testing")]
    if let Some(nodes) = pretended() {
        return Some(cpu % nodes);
    }
    // The kernel links each CPU to its node by the directory's name.
    (0..MAX_NODES)
        .find(|node| file::exists(format_args!("/sys/devices/system/cpu/cpu{cpu}/node{node}")))
}

/// Returns the memory policy of the calling thread.
pub(crate) fn own_policy() -> Option<Mode> {
    policy(0, 0)
}

/// Returns the memory policy of the mapping at an address.
pub(crate) fn policy_at(address: usize) -> Option<Mode> {
    policy(address, MPOL_F_ADDR)
}

fn policy(address: usize, flags: libc::c_ulong) -> Option<Mode> {
    let mut mode: libc::c_int = 0;
    // SAFETY: the mode has a valid place; no node mask is requested.
    let done = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, 0usize, 0usize, address, flags)
    };
    (done == 0).then_some(Mode(mode))
}

/// Excludes memory from the kernel's own balancing, by a policy that allocates as without one. Does
/// nothing if a part of the memory or the calling thread has a policy. Returns `true` if the kernel
/// accepted the policy. Memory that is not used yet is allocated as before.
pub(crate) fn keep_from_kernel(range: &Range<usize>) -> bool {
    let none = |policy: Option<Mode>| policy == Some(Mode(MPOL_DEFAULT));
    let Some(parts) = mapped_parts(range) else { return false };
    let is_free = parts.iter().all(|part| none(policy_at(part.start)));
    if !none(own_policy()) || !is_free || !bind(range, MPOL_LOCAL) {
        return false;
    }
    // Kernels before 5.14 report another mode, which cannot be distinguished from a program's.
    let taken = policy_at(range.start) == Some(Mode(MPOL_LOCAL));
    if !taken {
        bind(range, MPOL_DEFAULT);
    }
    taken
}

/// Removes that policy; parts that got another policy since keep it.
pub(crate) fn give_to_kernel(range: &Range<usize>) {
    let parts = mapped_parts(range).unwrap_or_default();
    let ours = parts.iter().filter(|part| policy_at(part.start) == Some(Mode(MPOL_LOCAL)));
    ours.for_each(|part| _ = bind(part, MPOL_DEFAULT));
}

/// Returns the parts of a range that are mappings: each has one policy. `None` without `/proc`.
fn mapped_parts(range: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let all = maps::all()?;
    let within =
        |mapping: &Mapping| mapping.range.start.max(range.start)..mapping.range.end.min(range.end);
    Some(maps::overlapping(&all, range).iter().map(within).collect())
}

fn bind(range: &Range<usize>, mode: libc::c_int) -> bool {
    // SAFETY: the call changes where pages of the range will be allocated, not their contents; no
    // node mask is given.
    let done = unsafe {
        libc::syscall(libc::SYS_mbind, range.start, range.len(), mode, 0usize, 0usize, 0)
    };
    done == 0
}

/// Returns `true` if the kernel itself moves pages to their users (`kernel.numa_balancing`).
pub(crate) fn kernel_balances() -> bool {
    let state = std::fs::read_to_string("/proc/sys/kernel/numa_balancing");
    state.is_ok_and(|state| state.trim().parse().is_ok_and(|modes: u32| modes & 1 == 1))
}

/// Looks up the nodes of pages, by their addresses. The result is a node, or a negative `errno`
/// (`ENOENT`: no memory there yet).
///
/// # Errors
///
/// The `errno` of the whole call.
pub(crate) fn query(pages: &[usize], nodes: &mut [i32]) -> Result<(), i32> {
    let none = std::ptr::null::<i32>();
    let count = pages.len().min(nodes.len());
    // SAFETY: both arrays have `count` elements; without target nodes the call only reports.
    let done = unsafe {
        libc::syscall(libc::SYS_move_pages, 0, count, pages.as_ptr(), none, nodes.as_mut_ptr(), 0)
    };
    if done < 0 { Err(errno()) } else { Ok(()) }
}

/// The outcome that [`move_to`] leaves for a page that the kernel did not process.
pub(crate) const UNTOUCHED: i32 = i32::MIN;

/// Moves pages to nodes. The outcomes are as in [`query`], or [`UNTOUCHED`].
///
/// # Errors
///
/// The `errno` of the whole call; some pages may have been moved before.
pub(crate) fn move_to(pages: &[usize], nodes: &[i32], outcomes: &mut [i32]) -> Result<(), i32> {
    outcomes.fill(UNTOUCHED);
    let count = pages.len().min(nodes.len()).min(outcomes.len());
    // SAFETY: all arrays have `count` elements. The contents of the pages do not change.
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            count,
            pages.as_ptr(),
            nodes.as_ptr(),
            outcomes.as_mut_ptr(),
            MPOL_MF_MOVE,
        )
    };
    if done < 0 { Err(errno()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_on_a_node_with_memory_or_nowhere() {
        let mut pages = [0; 2];
        let memory = crate::sys::memory::map(2 * crate::sys::memory::page_size()).expect("memory");
        // SAFETY: the mapping is this test's and large enough.
        unsafe { memory.write(1) };
        for (place, page) in pages.iter_mut().enumerate() {
            *page = memory.as_ptr() as usize + place * crate::sys::memory::page_size();
        }
        let mut nodes = [0; 2];
        match query(&pages, &mut nodes) {
            Ok(()) => {
                assert!(nodes_with_memory().contains(&(nodes[0] as u32)), "{nodes:?}");
                assert_eq!(nodes[1], -libc::ENOENT);
            }
            Err(errno) => println!("the kernel refuses move_pages: errno {errno}"),
        }
    }

    #[test]
    fn lists_of_numbers() {
        assert_eq!(parse("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse("0-4294967295").map(|all| all.len()), Some(MAX_NODES as usize));
        assert_eq!((parse(""), parse("1-"), parse("x")), (Some(Vec::new()), None, None));
    }

    #[test]
    fn some_node_can_be_used() {
        let usable = usable_nodes();
        assert!(!usable.is_empty());
        assert!(usable.iter().all(|node| nodes_with_memory().contains(node)));
    }

    #[test]
    fn memory_is_kept_from_the_kernel_and_given_back() {
        let page = crate::sys::memory::page_size();
        let memory = crate::sys::memory::map(4 * page).expect("memory");
        let start = memory.as_ptr().expose_provenance();
        let range = start + page..start + 3 * page;
        if !keep_from_kernel(&range) {
            println!("the kernel does not take the policy");
            return;
        }
        let policies =
            || [0, 1, 2, 3].map(|place| policy_at(start + place * page).expect("told").0);
        assert_eq!(policies(), [MPOL_DEFAULT, MPOL_LOCAL, MPOL_LOCAL, MPOL_DEFAULT]);
        assert!(!keep_from_kernel(&range), "it has a policy");
        give_to_kernel(&range);
        assert_eq!(policies(), [MPOL_DEFAULT; 4]);

        // A policy that the program sets for a part stays, whenever it is set.
        let part = start + 2 * page..start + 3 * page;
        let programs = [MPOL_DEFAULT, MPOL_DEFAULT, MPOL_INTERLEAVE, MPOL_DEFAULT];
        interleave(&part);
        assert!(!keep_from_kernel(&range));
        assert_eq!(policies(), programs);
        assert!(bind(&part, MPOL_DEFAULT) && keep_from_kernel(&range));
        interleave(&part);
        give_to_kernel(&range);
        assert_eq!(policies(), programs);
    }

    const MPOL_INTERLEAVE: libc::c_int = 3;

    /// Sets a policy as a program may do, for the first node.
    fn interleave(range: &Range<usize>) {
        let nodes = 1 as libc::c_ulong;
        let (places, mode) = (libc::c_ulong::BITS as usize, MPOL_INTERLEAVE);
        // SAFETY: the call changes where pages will be allocated; the mask has `places` bits.
        let done = unsafe {
            let (start, mask) = (range.start, &raw const nodes);
            libc::syscall(libc::SYS_mbind, start, range.len(), mode, mask, places, 0)
        };
        assert_eq!(done, 0, "errno {}", errno());
    }

    #[test]
    fn memory_of_our_own_has_no_policy() {
        let memory = crate::sys::memory::map(4096).expect("memory");
        let policy = policy_at(memory.as_ptr() as usize);
        assert!(policy.is_none_or(Mode::is_default), "{policy:?}");
    }
}
