//! The CPU topology: the CPUs that share a core, a last-level cache and a NUMA node.

use super::file::{self, Path};

/// The place of a CPU: the smallest CPU of its core, the smallest CPU of its last-level cache, and
/// the number of its node. `None` if the kernel does not report it (an unplugged CPU).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) core: Option<u32>,
    pub(crate) l3: Option<u32>,
    pub(crate) node: Option<u32>,
}

/// Reads the place of `cpu` from sysfs. The cost is 5 to 10 small files, about 50 us; callers store
/// the result.
pub(crate) fn place(cpu: u32) -> Place {
    Place { core: core(cpu), l3: last_level_cache(cpu), node: node(cpu) }
}

fn core(cpu: u32) -> Option<u32> {
    first_number(format_args!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
}

/// Returns the unified cache of level 3, or of the highest level below it on machines without one.
fn last_level_cache(cpu: u32) -> Option<u32> {
    let mut best = None;
    for index in 0..8 {
        let level =
            first_number(format_args!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/level"));
        let Some(level) = level.filter(|&level| level <= 3) else {
            break;
        };
        if best.is_none_or(|(known, _)| level > known) {
            let first = first_number(format_args!(
                "/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/shared_cpu_list"
            ));
            best = first.map(|first| (level, first)).or(best);
        }
    }
    best.map(|(_, first)| first)
}

/// Returns the node of a CPU. The kernel links each CPU to its node by the directory's name. There
/// are at most 1024 nodes, and machines number them densely, so the search is short.
pub(crate) fn node(cpu: u32) -> Option<u32> {
    (0..online_nodes()?).find(|node| {
        let link = Path::format(format_args!("/sys/devices/system/cpu/cpu{cpu}/node{node}"));
        link.as_ref().and_then(Path::as_c_str).is_some_and(file::exists)
    })
}

fn online_nodes() -> Option<u32> {
    file::last_number(c"/sys/devices/system/node/online").map(|last| last + 1)
}

/// Returns the first number in a file: the smallest CPU of a list.
fn first_number(path: std::fmt::Arguments<'_>) -> Option<u32> {
    file::first_number(Path::format(path)?.as_c_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::described::{self, MACHINE};

    #[test]
    fn a_described_machine_is_understood() {
        described::with(MACHINE, || {
            let place = |core, l3, node| Place { core: Some(core), l3: Some(l3), node: Some(node) };
            assert_eq!(super::place(0), place(0, 0, 0));
            assert_eq!(super::place(1), Place { l3: None, ..place(1, 0, 1) });
            assert_eq!(super::place(2), place(0, 2, 0), "its second level is its last");
            assert_eq!(super::place(3), place(1, 3, 1), "what is behind the third does not count");
            assert_eq!(super::place(4), Place::default());
        });
    }

    /// Each pair is a cache's level and the CPUs that share it, in the order of the kernel's
    /// numbers.
    #[test]
    fn the_last_level_is_the_highest_up_to_the_third() {
        let behind = |caches: &[(&str, &str)]| {
            let cache =
                |index, file| format!("/sys/devices/system/cpu/cpu7/cache/index{index}/{file}");
            let paths: Vec<_> = (0..caches.len())
                .map(|index| (cache(index, "level"), cache(index, "shared_cpu_list")))
                .collect();
            let files: Vec<_> = std::iter::zip(&paths, caches)
                .flat_map(|(paths, texts)| [(&*paths.0, texts.0), (&*paths.1, texts.1)])
                .collect();
            described::with(&files, || last_level_cache(7))
        };
        assert_eq!(behind(&[]), None);
        assert_eq!(behind(&[("1", "7"), ("1", "6"), ("2", "5"), ("3", "4")]), Some(4));
        assert_eq!(behind(&[("1", "7"), ("1", "6")]), Some(7), "the first one of its level");
        assert_eq!(behind(&[("3", "4"), ("2", "5"), ("1", "6")]), Some(4));
        assert_eq!(behind(&[("3", "4"), ("4", "0")]), Some(4));
        assert_eq!(behind(&[("2", "5"), ("3", "")]), Some(5), "the list is empty");
        assert_eq!(behind(&[("", "5"), ("3", "4")]), None, "the level is missing");
    }

    #[test]
    fn a_node_is_found_up_to_the_last_that_is_online() {
        let on = |online| {
            let files = [
                ("/sys/devices/system/node/online", online),
                ("/sys/devices/system/cpu/cpu7/node2", ""),
            ];
            described::with(&files, || [node(7), node(6)])
        };
        assert_eq!(on("0,2\n"), [Some(2), None]);
        assert_eq!(on("0-3\n"), [Some(2), None]);
        assert_eq!(on("0-1\n"), [None, None]);
        assert_eq!(on("\n"), [None, None]);
    }

    #[test]
    fn this_cpu_has_a_core() {
        let mut allowed = crate::sys::cpuset::CpuSet::new();
        assert!(crate::sys::affinity::read_allowed(&mut allowed));
        let cpu = allowed.last().expect("a CPU");
        assert!(place(cpu).core.is_some_and(|core| core <= cpu));
        assert_eq!(place(crate::sys::MAX_CPUS as u32 - 1), Place::default());
    }
}
