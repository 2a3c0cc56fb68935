//! Probes of the functions of the NUMA scan, for what the kernel has no tracepoints.
//!
//! They are the kernel's, not those of an instance: several recordings share them, and the last one
//! takes them away.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::numa::PROBES;

/// The probes: at the beginning of a function or at its end (`r`), and what is noted there.
const ALL: [(char, &str, &str); 6] = [
    ('p', "pass", "task_numa_work ticks=@jiffies_64:u64"),
    ('r', "passed", "task_numa_work"),
    ('p', "arm", "change_prot_numa start=$arg2:u64 end=$arg3:u64"),
    ('r', "armed", "change_prot_numa changed=$retval:u64"),
    ('p', "fault", "handle_mm_fault address=$arg2:u64"),
    ('p', "hint", "task_numa_fault node=$arg2:s32"),
];

/// Probes that are removed with this value. All instances that use them must be removed before.
#[derive(Debug)]
pub(super) struct Probes(PathBuf);

impl Probes {
    /// Sets those that this kernel permits.
    pub(super) fn set(tracefs: &Path) -> Probes {
        let probes = Probes(tracefs.join("kprobe_events"));
        for (kind, name, rest) in ALL {
            // A missing probe is detected when its events are enabled.
            let _ = probes.write(&format!("{kind}:{PROBES}/{name} {rest}"));
        }
        probes
    }

    fn write(&self, line: &str) -> io::Result<()> {
        OpenOptions::new().append(true).open(&self.0)?.write_all(line.as_bytes())
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        for (_, name, _) in ALL {
            // The kernel refuses it for those that another recording listens to.
            let _ = self.write(&format!("-:{PROBES}/{name}"));
        }
    }
}
