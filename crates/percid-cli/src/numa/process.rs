//! Reading another process's data from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A process by its ID. It may end at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) number: u32,
}

impl Process {
    /// Returns all processes, ascending.
    pub(crate) fn all() -> io::Result<Vec<Process>> {
        let entries = fs::read_dir("/proc")?;
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers.into_iter().map(|number| Process { number }).collect())
    }

    /// Returns the path of a file of its `/proc` directory.
    pub(crate) fn path(self, what: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{what}", self.number))
    }

    /// Returns `true` if the process exists and has not ended. A zombie has ended.
    pub(crate) fn exists(self) -> bool {
        let status = self.status("State:");
        status.is_some_and(|state| !state.starts_with(['Z', 'X']))
    }

    /// Returns its program's name; control characters, which a terminal would execute, are escaped.
    pub(crate) fn name(self) -> String {
        let name = fs::read(self.path("comm")).unwrap_or_default();
        String::from_utf8_lossy(&name).trim_end_matches('\n').escape_debug().to_string()
    }

    /// Returns its ID in its own PID namespace, which differs in a container.
    pub(crate) fn inner_number(self) -> Option<u32> {
        // Kernels before Linux 4.1 do not have this line.
        match self.status("NSpid:") {
            Some(numbers) => numbers.split_ascii_whitespace().last()?.parse().ok(),
            None => Some(self.number),
        }
    }

    /// Returns a line of its status file, without the name.
    fn status(self, name: &str) -> Option<String> {
        let text = fs::read(self.path("status")).ok()?;
        let text = String::from_utf8_lossy(&text);
        text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    }

    /// Returns the memory of all its mappings by node, in bytes.
    ///
    /// # Errors
    ///
    /// Fails if this user may not read it, or the kernel was built without NUMA.
    pub(crate) fn memory_by_node(self) -> io::Result<BTreeMap<u32, u64>> {
        let text = fs::read(self.path("numa_maps"))?;
        let mut by_node = BTreeMap::new();
        for line in text.split(|&byte| byte == b'\n') {
            add_mapping(&String::from_utf8_lossy(line), &mut by_node);
        }
        Ok(by_node)
    }
}

/// Adds the pages of a mapping. A line is `address policy [name=value …]`, with `N0=3` for three
/// pages on node 0.
fn add_mapping(line: &str, by_node: &mut BTreeMap<u32, u64>) {
    let values = || line.split_ascii_whitespace().skip(2).filter_map(|item| item.split_once('='));
    let size = values().find(|(name, _)| *name == "kernelpagesize_kB");
    let Some(page_kib) = size.and_then(|(_, size)| size.parse::<u64>().ok()) else { return };
    for (name, pages) in values() {
        let node = name.strip_prefix('N').and_then(|node| node.parse::<u32>().ok());
        if let (Some(node), Ok(pages)) = (node, pages.parse::<u64>()) {
            let bytes = by_node.entry(node).or_insert(0u64);
            *bytes = bytes.saturating_add(pages.saturating_mul(page_kib << 10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_added_by_node() {
        let mut by_node = BTreeMap::new();
        for line in [
            "7f00 default anon=5 dirty=5 N0=2 N1=3 kernelpagesize_kB=4",
            "7f10 bind:1 file=/a\\040N7=9 huge anon=1 N1=1 kernelpagesize_kB=2048",
            "7f20 default",
            "",
        ] {
            add_mapping(line, &mut by_node);
        }
        assert_eq!(by_node, [(0, 8 << 10), (1, (12 << 10) + (2 << 20))].into());
    }

    #[test]
    fn this_process_is_there() {
        let me = Process { number: std::process::id() };
        assert!(me.exists());
        assert_eq!(me.inner_number(), Some(me.number));
        assert!(Process::all().expect("/proc").iter().any(|other| other.number == me.number));
        assert!(!Process { number: 4_194_305 }.exists(), "beyond the largest number");
    }
}
