//! The CPUs that can ever exist, and those that the calling thread may use.

#[cfg(miri)]
use super::described::affinity_bytes;
#[cfg(miri)]
pub(crate) use super::described::current_cpu;
use super::file;
use crate::sys::MAX_CPUS;
use crate::sys::cpuset::CpuSet;

/// Stores the CPUs that the calling thread may run on in `set`. Returns `false` if the kernel does
/// not report them.
///
/// The set is the caller's because it is too large for the stack of a signal handler.
pub(crate) fn read_allowed(set: &mut CpuSet) -> bool {
    affinity_bytes(set.words_mut()).is_some()
}

/// A thread's affinity. One kibibyte.
#[derive(Debug)]
pub(crate) struct Affinity([u64; MAX_CPUS / 64]);

impl Affinity {
    /// Stores the calling thread's affinity in `self`. Returns `false` if the kernel does not
    /// report it. In place, as it is too large for the stack of a signal handler.
    pub(crate) fn read(&mut self) -> bool {
        affinity_bytes(&mut self.0).is_some()
    }

    /// Confines the calling thread, whose stack has room, to `cpu`. The kernel's success is not a
    /// guarantee: the thread may run on another CPU if a cpuset is changed, or if another kernel
    /// only pretends to confine it.
    ///
    /// # Errors
    ///
    /// The `errno`: `EINVAL` if the thread may not run there.
    pub(crate) fn confine(cpu: u32) -> Result<(), i32> {
        #[cfg(test)]
        if let Some(answer) = crate::sys::steps::at(crate::sys::steps::Step::Confine(cpu)) {
            return answer;
        }
        let mut words = [0u64; MAX_CPUS / 64];
        *words.get_mut(cpu as usize / 64).ok_or(libc::EINVAL)? = 1 << (cpu % 64);
        // SAFETY: the kernel reads the given number of bytes.
        // #[gamma::skip(literal, reason = "it would confine another process")]
        let result = unsafe {
            libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&words), words.as_ptr())
        };
        if result == 0 { Ok(()) } else { Err(crate::sys::errno()) }
    }

    /// Returns its CPUs in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let has = |cpu: u32| self.0[cpu as usize / 64] >> (cpu % 64) & 1 == 1;
        (0..MAX_CPUS as u32).filter(move |&cpu| has(cpu))
    }

    /// Returns the set as the kernel's words.
    pub(crate) fn words(&self) -> &[u64] {
        &self.0
    }
}

/// Returns the CPU that runs the calling thread, which may be out of date at once.
#[cfg(not(miri))]
pub(crate) fn current_cpu() -> u32 {
    // SAFETY: the call has no arguments.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// Reads the thread's affinity and returns the number of bytes in the kernel's mask. It uses the
/// raw call because the C library hides that number.
#[cfg(not(miri))]
fn affinity_bytes(words: &mut [u64]) -> Option<usize> {
    // SAFETY: the kernel writes at most the given number of bytes.
    let bytes = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(words), words.as_mut_ptr())
    };
    usize::try_from(bytes).ok().filter(|&bytes| bytes > 0)
}

/// The result of [`possible_count`] in the proofs; 0 for the true number.
#[cfg(any(test, feature = "testing"))]
pub(crate) static PRETENDED: std::sync::atomic::AtomicUsize =
    std::sync::atomic::AtomicUsize::new(0);

/// Returns one more than the largest CPU number that this kernel can ever use, including CPUs that
/// may be plugged in later. This determines the size of tables, never the number of CPUs that are
/// online. Without sysfs it is the maximum of any kernel.
pub(crate) fn possible_count() -> usize {
    #[cfg(any(test, feature = "testing"))]
    if let pretended @ 1.. = PRETENDED.load(std::sync::atomic::Ordering::Relaxed) {
        return pretended;
    }
    let last = file::last_number(c"/sys/devices/system/cpu/possible");
    count(last)
}

fn count(last: Option<u32>) -> usize {
    last.map_or(MAX_CPUS, |last| last as usize + 1).clamp(1, MAX_CPUS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_thread_can_be_confined_to_a_cpu_that_exists() {
        std::thread::spawn(|| {
            let mut home = Affinity([0; MAX_CPUS / 64]);
            assert!(home.read());
            let last = home.iter().last().expect("a CPU");
            assert_eq!(Affinity::confine(last), Ok(()));
            assert!(home.read());
            assert_eq!(home.iter().collect::<Vec<_>>(), [last]);
            assert_eq!(Affinity::confine(MAX_CPUS as u32), Err(libc::EINVAL));
            assert_eq!(Affinity::confine(MAX_CPUS as u32 - 1), Err(libc::EINVAL));
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn there_is_no_cpu_without_a_place_in_the_table() {
        assert_eq!((count(Some(1)), count(None), count(Some(70_000))), (2, MAX_CPUS, MAX_CPUS));
    }

    #[test]
    fn the_possible_count_covers_the_allowed_cpus() {
        let mut set = CpuSet::new();
        assert!(read_allowed(&mut set));
        assert!(possible_count() > set.last().expect("a CPU") as usize);
    }
}
