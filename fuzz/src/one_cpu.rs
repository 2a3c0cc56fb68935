//! A thread that stays on one CPU, so that it keeps its ID until a step takes that away.

use std::sync::OnceLock;

use percid::Source;
use percid::testing::{self, Stolen};

/// Keeps the calling thread on the CPU it is on; its number.
///
/// # Panics
///
/// If the kernel refuses.
pub fn stay() -> u32 {
    static CPU: OnceLock<u32> = OnceLock::new();
    *CPU.get_or_init(|| {
        // SAFETY: the set is a valid value, of the size given; the calls concern this thread.
        unsafe {
            let cpu = libc::sched_getcpu();
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu as usize, &mut set);
            let done = libc::sched_setaffinity(0, size_of_val(&set), &set);
            assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
            cpu as u32
        }
    })
}

/// Returns the sources that work here, each with `true` if its IDs can be stolen.
pub fn sources() -> &'static [(Source, bool)] {
    static SOURCES: OnceLock<Vec<(Source, bool)>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let working = [Source::Table, Source::Atomic].into_iter();
        let working = working.filter(|source| source.prepare().is_ok());
        working.map(|source| (source, source == Source::Table)).collect()
    })
}

/// Returns one of the sources.
pub fn source(choice: u8) -> (Source, bool) {
    let sources = sources();
    sources[usize::from(choice) % sources.len()]
}

/// IDs that were taken from this CPU. They are free again when this is dropped.
#[derive(Debug, Default)]
pub struct Thief(Vec<Stolen>);

impl Thief {
    /// Steals the ID that this CPU has in percid's table. Returns `true` if it had one.
    pub fn steal(&mut self) -> bool {
        // Free IDs are assigned first, so without some stolen ones the CPU would get the same ID
        // again.
        let stolen = testing::steal(stay());
        let has_stolen = stolen.is_some();
        self.0.extend(stolen);
        has_stolen
    }

    /// Frees the ID that was taken first.
    pub fn put_back(&mut self) {
        if !self.0.is_empty() {
            self.0.remove(0).put_back(None);
        }
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|stolen| stolen.put_back(None));
    }
}
