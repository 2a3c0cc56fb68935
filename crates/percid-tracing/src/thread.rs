//! The threads that have recorded something: numbers for records, names for readers.
//!
//! The numbers are percid's own. The system reuses its numbers when a thread has ended, and not
//! every system has a cheap call that returns them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of threads with known names: the newest ones.
const KNOWN: usize = 4096;

thread_local! {
    /// The number of this thread; 0 if it has none yet.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

static NEXT: AtomicU32 = AtomicU32::new(1);
static THREADS: Mutex<BTreeMap<u32, Thread>> = Mutex::new(BTreeMap::new());

/// The known properties of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) name: Option<String>,
    /// The number in the system's tools, if known.
    pub(crate) system_number: Option<u32>,
}

/// Returns the number of this thread. The thread's first record assigns it, which takes a lock and
/// allocates.
pub(crate) fn number() -> u32 {
    match NUMBER.get() {
        0 => register(),
        number => number,
    }
}

/// Returns the known properties of the thread with this number.
pub(crate) fn known(number: u32) -> Thread {
    threads().get(&number).cloned().unwrap_or_default()
}

#[cold]
fn register() -> u32 {
    // #[gamma::skip(literal.int_increment, reason = "numbers need only differ")]
    let number = NEXT.fetch_add(1, Relaxed);
    NUMBER.set(number);
    let name = std::thread::current().name().map(str::to_owned);
    let thread = Thread { name, system_number: system_number() };
    // #[gamma::skip(call_result, reason = "it returns nothing")]
    keep(&mut threads(), number, thread);
    number
}

/// Adds a thread. Removes the oldest one if there are too many.
fn keep(threads: &mut BTreeMap<u32, Thread>, number: u32, thread: Thread) {
    threads.insert(number, thread);
    if threads.len() > KNOWN {
        threads.pop_first();
    }
}

fn threads() -> MutexGuard<'static, BTreeMap<u32, Thread>> {
    // A panic under the lock leaves the map consistent.
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

// #[gamma::skip(try, reason = "the tests run where there is a /proc")]
#[cfg(target_os = "linux")]
fn system_number() -> Option<u32> {
    let link = std::fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn system_number() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_number_and_has_a_name() {
        let ours = number();
        assert_eq!(number(), ours);
        let named = std::thread::Builder::new().name("worker".to_owned());
        let theirs = named.spawn(number).expect("a thread").join().expect("a number");
        assert_ne!(ours, theirs);
        assert_eq!(known(theirs).name.as_deref(), Some("worker"));
        assert_eq!(known(theirs).system_number.is_some(), cfg!(target_os = "linux"));
        assert_eq!(known(u32::MAX), Thread::default());
    }

    #[test]
    fn the_newest_threads_are_known() {
        let (mut threads, most) = (BTreeMap::new(), KNOWN as u32);
        (1..=most + 5).for_each(|number| keep(&mut threads, number, Thread::default()));
        assert!(threads.into_keys().eq(6..=most + 5));
    }
}
