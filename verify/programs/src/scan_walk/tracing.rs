//! The kernel's trace and the scan's settings.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::sync::Mutex;

const TRACING: &str = "/sys/kernel/tracing";
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
const SETTINGS: &str = "/sys/kernel/debug/sched/numa_balancing";

/// Short enough for many passes and windows of activity in a few seconds.
const DELAY_MS: u32 = 100;
/// The smallest there is: regions of a few MiB take several passes.
const SIZE_MB: u32 = 1;
/// The shortest period and the longest one for a whole process: equal, so that passes come at a
/// steady pace.
const PERIOD_MS: u32 = 1000;
/// HZ = 250.
const TICK_MS: u32 = 4;

const PROBES: &str = "\
p:percid/pass task_numa_work ticks=@jiffies_64:u64
p:percid/arm change_prot_numa start=%si:u64 end=%dx:u64
r:percid/armed change_prot_numa changed=$retval:u64
p:percid/fault handle_mm_fault address=%si:u64
p:percid/hint task_numa_fault
";

const EVENTS: [&str; 2] = ["percid", "sched/sched_skip_vma_numa"];

/// A trace that is being recorded.
pub(crate) struct Tracing {
    marker: Mutex<File>,
}

type Failure = (String, io::Error);

impl Tracing {
    /// Sets the scan up and begins to record it, for this process only. Changes nothing on a
    /// machine that lacks what it needs, or whose own balancing is off: that is no machine to try
    /// things on.
    pub(crate) fn begin() -> Result<Tracing, Failure> {
        demand()?;
        put(&format!("{SETTINGS}/scan_delay_ms"), &DELAY_MS.to_string())?;
        put(&format!("{SETTINGS}/scan_size_mb"), &SIZE_MB.to_string())?;
        put(&format!("{SETTINGS}/scan_period_min_ms"), &PERIOD_MS.to_string())?;
        put(&format!("{SETTINGS}/scan_period_max_ms"), &PERIOD_MS.to_string())?;
        // Without huge pages of their own file system there is a region less.
        let _ = put("/proc/sys/vm/nr_hugepages", "2");
        put(&format!("{TRACING}/tracing_on"), "0")?;
        put(&format!("{TRACING}/trace"), "")?;
        put(&format!("{TRACING}/buffer_size_kb"), "4096")?;
        put(&format!("{TRACING}/trace_clock"), "mono")?;
        for probe in PROBES.lines() {
            put(&format!("{TRACING}/kprobe_events"), probe)?;
        }
        put(&format!("{TRACING}/options/event-fork"), "1")?;
        put(&format!("{TRACING}/set_event_pid"), &std::process::id().to_string())?;
        for event in EVENTS {
            put(&format!("{TRACING}/events/{event}/enable"), "1")?;
        }
        let path = format!("{TRACING}/trace_marker");
        let marker = OpenOptions::new().write(true).open(&path).map_err(|error| (path, error))?;
        put(&format!("{TRACING}/tracing_on"), "1")?;
        Ok(Tracing { marker: Mutex::new(marker) })
    }

    /// Writes a line of our own into the trace.
    pub(crate) fn mark(&self, text: &str) -> Result<(), String> {
        let mut marker = self.marker.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        marker.write_all(text.as_bytes()).map_err(|error| format!("trace_marker: {error}"))
    }

    /// Stops recording and returns the trace.
    pub(crate) fn end(self) -> io::Result<String> {
        fs::write(format!("{TRACING}/tracing_on"), "0")?;
        fs::read_to_string(format!("{TRACING}/trace"))
    }
}

/// Returns the first line of the recording.
pub(crate) fn settings(threads: usize) -> String {
    format!("settings delay_ms {DELAY_MS} size_mb {SIZE_MB} tick_ms {TICK_MS} threads {threads}\n")
}

fn demand() -> Result<(), Failure> {
    for path in [SETTINGS, &format!("{TRACING}/events/sched/sched_skip_vma_numa")] {
        fs::metadata(path).map_err(|error| (path.to_owned(), error))?;
    }
    let on = fs::read_to_string(BALANCING).map_err(|error| (BALANCING.to_owned(), error))?;
    let off = || (BALANCING.to_owned(), io::Error::other("expected 1"));
    if on.trim() == "1" { Ok(()) } else { Err(off()) }
}

fn put(path: &str, text: &str) -> Result<(), Failure> {
    // Probes are added, all other files are replaced.
    let mut options = OpenOptions::new();
    options.write(true).append(path.ends_with("kprobe_events"));
    let file = options.open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| (format!("{path}: {text}"), error))
}
