//! Control groups: programs make them, we enable and remove them.

use std::fs;
use std::path::Path;

const ROOT: &str = "/sys/fs/cgroup";

/// Lets groups below the root use these controllers; returns notes on those
/// that the kernel lacks.
pub(crate) fn enable_controllers() -> Vec<String> {
    let enable = |controller: &&str| {
        let file = format!("{ROOT}/cgroup.subtree_control");
        let error = fs::write(file, format!("+{controller}")).err()?;
        Some(format!("no control groups for {controller}: {error}"))
    };
    ["cpuset", "cpu"].iter().filter_map(enable).collect()
}

/// Removes all groups below the root. They must be empty of processes.
pub(crate) fn remove_all() {
    remove_below(Path::new(ROOT));
}

fn remove_below(group: &Path) {
    let Ok(entries) = fs::read_dir(group) else {
        return;
    };
    for entry in entries.flatten() {
        // A group's own files are the kernel's and go with it.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}
