//! A machine described in memory. Tests of the parsers read it in place of `/proc` and `/sys`;
//! Miri, which has neither, always reads it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CStr;

/// Files by their paths. A directory is a file without text.
pub(crate) type Files<'a> = [(&'a str, &'a str)];

/// Four CPUs: two cores of two threads, one core per node. CPU 1 has no caches, CPU 2 has no third
/// level, and CPU 3 has a fourth one.
#[rustfmt::skip]
pub(crate) const MACHINE: &Files<'static> = &[
    ("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Described CPU @ 1.00GHz\nmodel\t\t: 1\n"),
    ("/proc/self/stat", "7 (a) b (c) R 1 7 7 0 -1 4194304 90 0 0 0 1 2 0 0 20 0 3 0 99 8192 1"),
    ("/sys/devices/system/cpu/possible", "0-3\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0,2\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index1/level", "2\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list", "0,2\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index2/level", "3\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index2/shared_cpu_list", "0-3\n"),
    ("/sys/devices/system/cpu/cpu0/node0", ""),
    ("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n"),
    ("/sys/devices/system/cpu/cpu1/node1", ""),
    ("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n"),
    ("/sys/devices/system/cpu/cpu2/cache/index0/level", "1\n"),
    ("/sys/devices/system/cpu/cpu2/cache/index0/shared_cpu_list", "0,2\n"),
    ("/sys/devices/system/cpu/cpu2/cache/index1/level", "2\n"),
    ("/sys/devices/system/cpu/cpu2/cache/index1/shared_cpu_list", "2\n"),
    ("/sys/devices/system/cpu/cpu2/node0", ""),
    ("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n"),
    ("/sys/devices/system/cpu/cpu3/cache/index0/level", "3\n"),
    ("/sys/devices/system/cpu/cpu3/cache/index0/shared_cpu_list", "3\n"),
    ("/sys/devices/system/cpu/cpu3/cache/index1/level", "4\n"),
    ("/sys/devices/system/cpu/cpu3/cache/index1/shared_cpu_list", "0-3\n"),
    ("/sys/devices/system/cpu/cpu3/node1", ""),
    ("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3\n"),
    ("/sys/devices/system/node/online", "0-1\n"),
];

thread_local! {
    static FILES: RefCell<Option<HashMap<String, String>>> = const { RefCell::new(None) };
}

/// Runs `body` on a machine that has these files and no others.
pub(crate) fn with<T>(files: &Files<'_>, body: impl FnOnce() -> T) -> T {
    let before = FILES.replace(Some(owned(files)));
    let result = body();
    FILES.set(before);
    result
}

fn owned(files: &Files<'_>) -> HashMap<String, String> {
    files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect()
}

/// Returns the described machine's file of this name, if it has one; `None` if the kernel's file
/// must be read.
pub(crate) fn file(path: &CStr) -> Option<Option<String>> {
    FILES.with_borrow_mut(|files| {
        if cfg!(miri) && files.is_none() {
            *files = Some(owned(MACHINE));
        }
        let path = path.to_str().unwrap_or_default();
        files.as_ref().map(|files| files.get(path).cloned())
    })
}

/// Returns the CPU of the calling thread: a different one at each call, as if threads migrated all
/// the time.
#[cfg(miri)]
pub(crate) fn current_cpu() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    static CALLS: AtomicU32 = AtomicU32::new(0);
    CALLS.fetch_add(1, Relaxed) % 4
}

/// Stores the affinity of the calling thread: all of [`MACHINE`]'s CPUs. Returns the size of the
/// kernel's mask in bytes.
#[cfg(miri)]
pub(crate) fn affinity_bytes(words: &mut [u64]) -> Option<usize> {
    words[0] = 0b1111;
    Some(8)
}
