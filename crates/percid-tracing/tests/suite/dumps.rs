//! The number of dumps of a recorder to a folder, counted by the renames of complete dumps. Also
//! detects when no more will follow.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns how often the threads that dump have gone to sleep, or `None` if one of them is awake.
/// If all sleep, earlier signals have been handled, and no dump is being written.
pub(crate) fn sleeps() -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    let all = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    let dump = all.filter(|status| status.starts_with("Name:\tflight-recorder\n"));
    let dump: Vec<String> = dump.collect();
    assert!(!dump.is_empty(), "no thread dumps");
    let sleeps = dump.iter().map(|status| {
        let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        value("State:\tS")?;
        value("voluntary_ctxt_switches:\t")?.parse::<u64>().ok()
    });
    sleeps.sum()
}

/// Counts the renames in a folder.
pub(crate) struct Dumps {
    events: File,
    count: usize,
}

impl Dumps {
    pub(crate) fn to(folder: &Path) -> Dumps {
        let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the calls read a string that ends; the descriptor has no other owner.
        let events = unsafe {
            let watch = libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK);
            assert!(
                watch >= 0 && libc::inotify_add_watch(watch, path.as_ptr(), libc::IN_MOVE) >= 0
            );
            File::from_raw_fd(watch)
        };
        Dumps { events, count: 0 }
    }

    /// Returns the number of renames so far. The kernel merges equal consecutive events. Each
    /// rename has two different events, for the old and the new name.
    pub(crate) fn count(&mut self) -> usize {
        let mut bytes = [0; 4096];
        while let Ok(length) = self.events.read(&mut bytes) {
            let mut rest = &bytes[..length];
            while !rest.is_empty() {
                let (event, behind) = rest.split_at(size_of::<libc::inotify_event>());
                let word =
                    |at: usize| event[at..].first_chunk().map_or(0, |it| u32::from_ne_bytes(*it));
                let (mask, name) = (word(4), word(12));
                rest = &behind[name as usize..];
                self.count += usize::from(mask & libc::IN_MOVED_TO != 0);
            }
        }
        self.count
    }
}
