//! Which CPUs there may ever be, and which the calling thread may use.

use super::cpuset::CpuSet;
use super::{MAX_CPUS, file};

/// The CPUs the calling thread may run on; `None` if the kernel does not say.
pub(crate) fn allowed() -> Option<CpuSet> {
    let mut set = CpuSet::new();
    affinity_bytes(&mut set).map(|_| set)
}

/// Asks for the thread's affinity and returns how many bytes the kernel's mask has.
fn affinity_bytes(set: &mut CpuSet) -> Option<usize> {
    let words = set.words_mut();
    // SAFETY: the kernel writes at most the given number of bytes. The raw call is used because the
    // C library hides the size of the kernel's mask.
    let bytes = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(words), words.as_mut_ptr())
    };
    usize::try_from(bytes).ok().filter(|&bytes| bytes > 0)
}

/// One more than the largest CPU number that this kernel can ever use, counting CPUs that may be
/// plugged in later. Tables are sized by this, never by the CPUs that are online.
pub(crate) fn possible_count() -> usize {
    let listed = possible().and_then(|set| set.last()).map(|last| last as usize + 1);
    listed.or_else(mask_size).unwrap_or(MAX_CPUS).clamp(1, MAX_CPUS)
}

/// The CPUs that may ever exist, from sysfs.
pub(crate) fn possible() -> Option<CpuSet> {
    let mut buffer = [0; 4096];
    let text = file::read(c"/sys/devices/system/cpu/possible", &mut buffer)?;
    CpuSet::parse(std::str::from_utf8(text).ok()?).filter(|set| !set.is_empty())
}

/// Without sysfs the size of the kernel's affinity mask is an upper bound.
fn mask_size() -> Option<usize> {
    affinity_bytes(&mut CpuSet::new()).map(|bytes| bytes * 8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_source_of_the_possible_count_covers_the_allowed_cpus() {
        let last = super::allowed().and_then(|set| set.last()).expect("an affinity mask") as usize;
        assert!(super::possible_count() > last);
        assert!(super::mask_size().expect("a mask size") > last);
    }
}
