//! This process, distinguished from its ancestors, and its threads.

pub(crate) use std::process::id;

use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use super::{file, memory};

/// The word that the kernel wipes at a fork: this process's generation, 0 if it has none yet. Null
/// at first. The pointer never changes afterwards, so that all threads of a process agree.
static GENERATION: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// The target of [`GENERATION`] if the kernel cannot wipe memory: always 0.
static NONE: AtomicU32 = AtomicU32::new(0);

/// Number of generations that were assigned in this process and its ancestors.
static GENERATIONS: AtomicU32 = AtomicU32::new(0);

/// Returns a number that differs from those of all ancestors and children of this process; not 0.
/// It shows whether data in memory was left there by a process that this one is a child of.
/// Async-signal-safe.
///
/// The kernel's process numbers are not enough: the first process of another PID namespace has
/// number 1, as its parent may have, and numbers are reused. They are used only before Linux 4.14,
/// which cannot wipe memory.
pub(crate) fn generation() -> u32 {
    let own = generation_word();
    match own.load(Relaxed) {
        0 if ptr::eq(own, &NONE) => id(),
        0 => {
            let next = GENERATIONS.fetch_add(1, Relaxed) + 1;
            // Several threads may get here at once; the first one decides.
            own.compare_exchange(0, next, Relaxed, Relaxed).map_or_else(|first| first, |_| next)
        }
        known => known,
    }
}

/// Returns the addresses that [`generation`] reads or writes.
pub(crate) fn places() -> [usize; 4] {
    let own = ptr::from_ref(generation_word());
    [
        own.addr(),
        (&raw const GENERATION).addr(),
        (&raw const GENERATIONS).addr(),
        (&raw const NONE).addr(),
    ]
}

fn generation_word() -> &'static AtomicU32 {
    // SAFETY: the pointer is null, or leads to a word that is never freed.
    unsafe { GENERATION.load(Acquire).as_ref() }.unwrap_or_else(map_generation)
}

/// Maps the word. Several threads, or a thread and its signal handler, may be here at once: the
/// first to publish wins and the others unmap theirs.
#[cold]
fn map_generation() -> &'static AtomicU32 {
    let page = memory::map_wiped_on_fork(memory::page_size()).map(NonNull::cast::<AtomicU32>);
    let own = page.map_or(ptr::from_ref(&NONE).cast_mut(), NonNull::as_ptr);
    match GENERATION.compare_exchange(ptr::null_mut(), own, AcqRel, Acquire) {
        // SAFETY: the pointer leads to a new zeroed mapping that stays, aligned to a page; or to
        // the static.
        Ok(_) => unsafe { &*own },
        Err(first) => {
            if let Some(page) = page {
                // SAFETY: no other thread has seen this mapping: the exchange failed.
                unsafe { memory::unmap(page.cast(), memory::page_size()) };
            }
            // SAFETY: the pointer was published by another thread: a mapping that stays, or the
            // static.
            unsafe { &*first }
        }
    }
}

/// Returns the calling thread's number, unique among the machine's threads until it ends.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Returns the numbers of all threads of the process; empty without `/proc`. Allocates: not
/// async-signal-safe.
pub(crate) fn thread_ids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A thread of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thread {
    /// The thread's number in `/proc`. It may belong to another PID namespace than the process: an
    /// outer one.
    pub(crate) in_proc: u32,
    /// The thread's number in system calls.
    pub(crate) number: u32,
}

/// Returns all threads of the process; empty without `/proc`. Allocates: not async-signal-safe.
pub(crate) fn threads() -> Vec<Thread> {
    let numbers = |path: &str| numbers_in(&std::fs::read_to_string(path).ok()?);
    let same = numbers("/proc/thread-self/status").is_none_or(|numbers| numbers.len() == 1);
    let thread = |in_proc: u32| {
        let number = match same {
            true => in_proc,
            false => *numbers(&format!("/proc/self/task/{in_proc}/status"))?.last()?,
        };
        Some(Thread { in_proc, number })
    };
    thread_ids().into_iter().filter_map(thread).collect()
}

/// Returns the numbers of a thread, from the namespace of `/proc` to the thread's own; `None`
/// before Linux 4.1.
fn numbers_in(status: &str) -> Option<Vec<u32>> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

/// Returns the CPU that runs a thread of this process, or ran it last; `None` without `/proc`, or
/// if there is no such thread. Three system calls, no allocation.
pub(crate) fn last_cpu(thread: u32) -> Option<u32> {
    const PROCESSOR: usize = 39;
    stat(thread, PROCESSOR)
}

/// Returns `true` if a thread (by its number in `/proc`) is ending or has ended: it does not run
/// the program's instructions any more.
pub(crate) fn is_ending(thread: u32) -> bool {
    const FLAGS: usize = 9;
    /// `PF_EXITING` (`linux/sched.h`), as it has been since Linux 2.4.
    const EXITING: u32 = 4;
    stat(thread, FLAGS).is_none_or(|flags| flags & EXITING != 0)
}

/// Returns a field of a thread's `stat`, counted from 1.
fn stat(thread: u32, field: usize) -> Option<u32> {
    // All fields up to the last one of interest are numbers, except for the name, which has 15
    // bytes, or 63 for a kernel thread.
    let mut text = [0u8; 1024];
    let stat = file::read_start(format_args!("/proc/self/task/{thread}/stat"), &mut text)?;
    field_in_stat(stat, field)
}

/// Returns a field of the text. The second field is the program's name in parentheses and may
/// contain anything, even spaces and parentheses: fields are counted from the last closing one.
fn field_in_stat(text: &[u8], field: usize) -> Option<u32> {
    let name_ends = text.iter().rposition(|&byte| byte == b')')?;
    // After the name's end there is a space, then the third field.
    let field = text[name_ends + 1..].split(|&byte| byte == b' ').nth(field - 2)?;
    std::str::from_utf8(field).ok()?.trim_ascii_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_by_both_of_their_numbers() {
        let mine = thread_id();
        assert!(threads().contains(&Thread { in_proc: mine, number: mine }));
        assert_eq!(numbers_in("Name:\tpercid\nNSpid:\t4711\t12\t1\n"), Some(vec![4711, 12, 1]));
        assert_eq!(numbers_in("Name:\tpercid\n"), None);
    }

    #[test]
    fn the_last_cpu_of_a_thread() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let stat = format!("12 (a) name (b) {}\n", fields.join(" "));
        assert_eq!(
            [9, 39].map(|number| field_in_stat(stat.as_bytes(), number)),
            [Some(9), Some(39)]
        );
        assert_eq!(field_in_stat(b"12 (name) S 1 2", 39), None);
        assert!(!is_ending(thread_id()) && is_ending(1 << 23));
        // Larger than the largest number that Linux gives to a thread, 2^22.
        assert_eq!(last_cpu(1 << 23), None);
        let allowed = percid::machine::read().allowed;
        assert!(allowed.contains(last_cpu(thread_id()).expect("this thread")));
    }
}
