//! The kernel's event trace, in a buffer of our own.

use std::fs;
use std::path::{Path, PathBuf};

const TRACING: &str = "/sys/kernel/tracing";

/// The events without which nothing can be replayed, and where each has the command of a thread
/// that it is about. The others of a machine that starts programs all the time would fill the
/// buffer within seconds.
const EVENTS: [(&str, &[&str]); 6] = [
    ("sched/sched_switch", &["prev_comm", "next_comm"]),
    ("sched/sched_migrate_task", &["comm"]),
    ("sched/sched_process_exec", &["COMM"]),
    ("sched/sched_process_fork", &["parent_comm"]),
    ("sched/sched_process_exit", &["comm"]),
    ("timer/hrtimer_expire_entry", &["COMM"]),
];

/// The end of a timer interrupt, on x86; the ID that a thread returns to user space with, on newer
/// kernels.
const WELCOME: [(&str, &[&str]); 2] =
    [("irq_vectors/local_timer_exit", &["COMM"]), ("rseq/rseq_update", &["COMM"])];

/// Buffer size of each CPU: many times the trace of a process of ten seconds.
const BUFFER_KB: &str = "8192";

/// Returns an error if this process cannot trace.
pub(super) fn missing() -> Result<(), String> {
    let instances = Path::new(TRACING).join("instances");
    if !instances.is_dir() {
        return Err(format!("{TRACING} is no tracefs"));
    }
    let probe = Instance::new()?;
    probe.write("tracing_on", "0")
}

/// A buffer of its own, which goes with this value.
pub(super) struct Instance(PathBuf);

impl Instance {
    pub(super) fn new() -> Result<Instance, String> {
        let name = format!("percid-{}", std::process::id());
        let path = Path::new(TRACING).join("instances").join(name);
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Instance(path))
    }

    /// Begins to record, with the clock that user space reads too.
    pub(super) fn start(&self) -> Result<(), String> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono")?;
        self.write("buffer_size_kb", BUFFER_KB)?;
        let own = fs::read_to_string("/proc/self/comm").map_err(|error| error.to_string())?;
        let offered = |(event, _): &(&str, _)| self.0.join("events").join(event).is_dir();
        for (event, commands) in EVENTS.into_iter().chain(WELCOME.into_iter().filter(offered)) {
            let is_own = |command: &&str| format!("{command} == \"{}\"", own.trim_end());
            let filter: Vec<String> = commands.iter().map(is_own).collect();
            self.write(&format!("events/{event}/filter"), &filter.join(" || "))?;
            self.write(&format!("events/{event}/enable"), "1")?;
        }
        self.write("tracing_on", "1")
    }

    pub(super) fn stop(&self) -> Result<(), String> {
        self.write("tracing_on", "0")
    }

    /// Returns all events, in the order of their times.
    pub(super) fn read(&self) -> Result<String, String> {
        let path = self.0.join("trace");
        let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(file);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A remaining instance costs memory and nothing else.
        let _ = fs::remove_dir(&self.0);
    }
}
