//! The threads that are there when a recording begins, by `/proc`.

use std::fs;
use std::path::Path;

use super::cpus;
use crate::event::Tid;

/// The threads that are there.
#[derive(Debug, Default)]
pub(super) struct ThreadSnapshot {
    /// A time before the first look, on the trace's clock.
    pub(super) began: u64,
    /// A time after the last one.
    pub(super) taken: u64,
    pub(super) threads: Vec<Thread>,
}

/// A thread as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) thread: Tid,
    pub(super) process: Tid,
    pub(super) name: Vec<u8>,
    /// The CPUs on which it may run, if it still existed when they were requested.
    pub(super) cpus: Option<String>,
}

/// The threads of all processes but the kernel's own.
pub(super) fn of_system() -> Vec<Thread> {
    let processes = numbers(Path::new("/proc"));
    processes.into_iter().filter(|&process| !is_kernel(process)).flat_map(of_process).collect()
}

/// The threads of a process; none if there is no such process.
pub(super) fn of_process(process: Tid) -> Vec<Thread> {
    let tasks = Path::new("/proc").join(process.to_string()).join("task");
    let describe = |thread: Tid| {
        let mut name = fs::read(tasks.join(thread.to_string()).join("comm")).ok()?;
        name.pop_if(|last| *last == b'\n');
        Some(Thread { thread, process, name, cpus: cpus::allowed(thread) })
    };
    numbers(&tasks).into_iter().filter_map(describe).collect()
}

/// The numbers of a process's threads.
pub(super) fn threads(process: Tid) -> Vec<Tid> {
    numbers(&Path::new("/proc").join(process.to_string()).join("task"))
}

fn numbers(folder: &Path) -> Vec<Tid> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

const PF_KTHREAD: u64 = 0x20_0000;

fn is_kernel(process: Tid) -> bool {
    let Ok(stat) = fs::read(format!("/proc/{process}/stat")) else { return false };
    let stat = String::from_utf8_lossy(&stat);
    // The name is in brackets and may contain some.
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let flags = fields.split_whitespace().nth(6).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_is_among_them() {
        let own = std::process::id();
        let found = of_process(own);
        let main = found.iter().find(|thread| thread.thread == own).expect("the first thread");
        assert_eq!(main.process, own);
        assert!(!main.name.is_empty() && main.cpus.is_some());
        assert!(of_system().iter().any(|thread| thread.thread == own));
        assert!(of_process(Tid::MAX - 1).is_empty());
    }

    #[test]
    fn kernel_threads_are_told_from_others() {
        assert!(!is_kernel(std::process::id()));
    }
}
