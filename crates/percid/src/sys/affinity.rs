//! Which CPUs there may ever be, and which the calling thread may use.

use super::cpuset::CpuSet;
use super::{MAX_CPUS, file};

/// Puts the CPUs the calling thread may run on into `set`; `false` if the kernel does not say.
///
/// The set is the caller's because it is too large for the stack of a signal handler.
pub(crate) fn read_allowed(set: &mut CpuSet) -> bool {
    affinity_bytes(set.words_mut()).is_some()
}

/// Asks for the thread's affinity and returns how many bytes the kernel's mask has. The raw call is used
/// because the C library hides that.
fn affinity_bytes(words: &mut [u64]) -> Option<usize> {
    // SAFETY: the kernel writes at most the given number of bytes.
    let bytes = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(words), words.as_mut_ptr())
    };
    usize::try_from(bytes).ok().filter(|&bytes| bytes > 0)
}

/// What the proofs want [`possible_count`] to say; 0 for the truth.
#[cfg(feature = "testing")]
pub(crate) static PRETENDED: std::sync::atomic::AtomicUsize =
    std::sync::atomic::AtomicUsize::new(0);

/// One more than the largest CPU number that this kernel can ever use, counting CPUs that may be
/// plugged in later. Tables are sized by this, never by the CPUs that are online. Without sysfs it is
/// the most that any kernel can use.
pub(crate) fn possible_count() -> usize {
    #[cfg(feature = "testing")]
    if let pretended @ 1.. = PRETENDED.load(std::sync::atomic::Ordering::Relaxed) {
        return pretended;
    }
    let last = file::last_number(c"/sys/devices/system/cpu/possible");
    last.map_or(MAX_CPUS, |last| last as usize + 1).clamp(1, MAX_CPUS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_possible_count_covers_the_allowed_cpus() {
        let mut set = CpuSet::new();
        assert!(read_allowed(&mut set));
        assert!(possible_count() > set.last().expect("a CPU") as usize);
    }
}
