//! Which CPUs share a core, a last-level cache and a NUMA node.

use super::file::{self, Path};

/// Where one CPU sits: the smallest CPU of its core, the smallest CPU of its last-level cache, and
/// the number of its node. `None` where the kernel does not say (an unplugged CPU).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) core: Option<u32>,
    pub(crate) l3: Option<u32>,
    pub(crate) node: Option<u32>,
}

/// Reads the place of `cpu` from sysfs. Cost: 5 to 10 small files, some 50 us; callers keep the
/// answer.
pub(crate) fn place(cpu: u32) -> Place {
    Place { core: core(cpu), l3: last_level_cache(cpu), node: node(cpu) }
}

fn core(cpu: u32) -> Option<u32> {
    first_number(format_args!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
}

/// The unified cache of level 3, or of the highest level below it on machines without one.
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

/// The kernel links each CPU to its node by the directory's name; there are at most 1024 nodes, and
/// machines number them densely, so the search is short.
pub(crate) fn node(cpu: u32) -> Option<u32> {
    (0..online_nodes()?).find(|node| {
        let link = Path::format(format_args!("/sys/devices/system/cpu/cpu{cpu}/node{node}"));
        link.as_ref().and_then(Path::as_c_str).is_some_and(file::exists)
    })
}

fn online_nodes() -> Option<u32> {
    file::last_number(c"/sys/devices/system/node/online").map(|last| last + 1)
}

/// The first number in a file: of a list, its smallest CPU.
fn first_number(path: std::fmt::Arguments<'_>) -> Option<u32> {
    file::first_number(Path::format(path)?.as_c_str()?)
}

#[cfg(test)]
mod tests {
    /// The caches of CPU 0 as text: the highest level up to 3, and the first CPU of its list.
    #[test]
    fn the_last_level_cache_is_the_highest_up_to_the_third() {
        let read = |index: u32, name: &str| {
            let file = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            std::fs::read_to_string(file).ok()
        };
        let cache = |index| {
            let level: u32 = read(index, "level")?.trim().parse().ok()?;
            let list = crate::sys::cpuset::CpuSet::parse(&read(index, "shared_cpu_list")?)?;
            (level <= 3).then_some((level, list.iter().next()))
        };
        let highest = (0..8).filter_map(cache).max_by_key(|&(level, _)| level);
        assert_eq!(super::place(0).l3, highest.and_then(|(_, first)| first));
    }

    #[test]
    fn this_cpu_has_a_core() {
        let mut allowed = crate::sys::cpuset::CpuSet::new();
        assert!(crate::sys::affinity::read_allowed(&mut allowed));
        let cpu = allowed.last().expect("a CPU");
        assert!(super::place(cpu).core.is_some_and(|core| core <= cpu));
        assert_eq!(super::place(crate::sys::MAX_CPUS as u32 - 1), super::Place::default());
    }
}
